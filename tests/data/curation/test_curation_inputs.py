"""Which files are read, how they are named, and how they are split into chunks."""

import gzip
import json

import pytest

from listenwell.data.curation import inputs
from listenwell.data.curation.inputs import InputFile, Inputs, line_pieces


@pytest.fixture
def folder(tmp_path):
    for name in ("b/2.srt", "b/1.ass", "a.srt", "a/x.xml.gz", "b.vtt", "notes.txt", "b/deep/er/3.SRT"):
        path = tmp_path / "subs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "subs"


def names(*paths, kind="subtitles"):
    return [file.name for file in Inputs.named(kind, paths).files()]


def test_files_come_by_name_with_the_name_of_their_folder(folder):
    assert names(folder) == [
        "subs/a/x.xml.gz",
        "subs/a.srt",
        "subs/b/1.ass",
        "subs/b/2.srt",
        "subs/b/deep/er/3.SRT",
        "subs/b.vtt",
    ]


def test_the_order_in_which_they_are_given_does_not_matter(folder):
    first, second = folder / "a.srt", folder / "b"
    assert names(first, second) == names(second, first) == ["a.srt", "b/1.ass", "b/2.srt", "b/deep/er/3.SRT"]


def test_what_is_named_twice_or_lies_inside_another_is_read_once(folder):
    assert names(folder, folder / "b", folder / "a.srt", folder) == names(folder)


def test_folders_of_one_name_are_told_apart_by_the_one_above(tmp_path):
    for film in ("one", "two"):
        (tmp_path / film / "en").mkdir(parents=True)
        (tmp_path / film / "en" / "x.srt").write_text("x")
    assert names(tmp_path / "two" / "en", tmp_path / "one" / "en") == ["one/en/x.srt", "two/en/x.srt"]


def test_a_file_that_is_named_is_read_whatever_it_is_called(folder):
    assert names(folder / "notes.txt") == ["notes.txt"]


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: no such file or folder"):
        names(tmp_path / "nowhere")


def test_a_chunk_has_so_many_files_or_so_many_bytes(folder, monkeypatch):
    monkeypatch.setattr(inputs, "CHUNK_FILES", 2)
    found = Inputs.named("subtitles", [folder])
    assert [len(chunk) for chunk in found.chunks()] == [2, 2, 2]
    monkeypatch.setattr(inputs, "CHUNK_BYTES", 10)
    assert [len(chunk) for chunk in found.chunks()] == [1, 1, 1, 1, 1, 1]


def test_the_summary_changes_with_the_files(folder):
    found = Inputs.named("subtitles", [folder])
    number, size, stamp = found.summary()
    assert (number, size) == (6, sum(file.size for file in found.files()))
    (folder / "a.srt").write_text("longer than before")
    assert found.summary()[2] != stamp


def test_a_long_file_of_lines_is_cut_between_them(tmp_path):
    path = tmp_path / "threads.jsonl"
    lines = [json.dumps(["line", str(number), "你好" * (number % 7)]) for number in range(500)]
    path.write_text("\n".join(lines), encoding="utf-8")
    pieces = list(line_pieces(InputFile("threads.jsonl", str(path), path.stat().st_size), size=1000))
    assert len(pieces) > 10
    data = path.read_bytes()
    for piece in pieces:
        first = data[piece.begin : piece.end].decode().splitlines()[0]
        assert first == lines[piece.first_line - 1]
    assert b"".join(data[piece.begin : piece.end] for piece in pieces) == data


def test_a_packed_file_is_unpacked_and_a_bomb_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.srt.gz"
    path.write_bytes(gzip.compress(b"x" * 5000))
    file = InputFile("a.srt.gz", str(path), path.stat().st_size)
    assert file.read() == b"x" * 5000
    monkeypatch.setattr(inputs, "LARGEST_FILE", 4999)
    with pytest.raises(ValueError, match="unpacks to more than"):
        file.read()
