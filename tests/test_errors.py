"""File and terminal errors as users see them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from listenwell import cli
from listenwell.commands.errors import describe
from listenwell.commands.terminal import plain


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/data/out"), "/data/out: no permission"),
        (OSError(errno.EROFS, "Read-only file system", "/data/out"), "/data/out: is on a read-only file system"),
        (OSError(errno.ENOSPC, "No space left on device"), "no space is left on the disk; free some"),
        (FileNotFoundError(errno.ENOENT, "No such file", "a/b"), "a/b: no such file or folder; check the name"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "/d/.out.3f.tmp", None, "/d/out"), "/d/out: is a folder"),
        (PermissionError(errno.EACCES, "Permission denied", "/d/.out.jsonl.3fa0.tmp"), "/d/out.jsonl: no permission"),
        (PermissionError(errno.EACCES, "Permission denied", "runs/.best.writing"), "runs/best: no permission"),
        (FileNotFoundError("x.jsonl: a message of our own"), "x.jsonl: a message of our own"),
        (
            UnicodeDecodeError("utf-8", b"caf\xe9", 3, 4, "bad"),
            "the byte 0xe9 at position 4 of what was read is not UTF",
        ),
    ],
)
def test_a_problem_of_a_file_names_it_and_the_way_out(problem: Exception, expected: str):
    assert describe(problem).startswith(expected)
    assert "Errno" not in describe(problem)


def failing(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    said = str(ended.value.code) if isinstance(ended.value.code, str) else capsys.readouterr().err
    assert "\n" not in said.strip()
    assert not any(word in said for word in ("Errno", "codec", "Traceback"))
    return said


def test_files_that_cannot_be_read_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    files = {
        "x.csv": b"a,b\n1,2\n",
        "latin.yaml": b"name: caf\xe9\n",
        "bad.yaml": b"name: [\n",
        "recipe.json": b"{}",
        "binary.jsonl": bytes(range(128, 256)),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.yaml").mkdir()
    for words, expected in {
        ("data", "x.csv"): "x.csv: expected a file of dialogues that ends in .jsonl",
        ("data", "binary.jsonl"): "binary.jsonl line 1: the byte 0x80 at position 1, expected UTF-8",
        ("train", "latin.yaml"): "latin.yaml: the byte 0xe9 at position 10, expected UTF-8",
        ("train", "bad.yaml"): "bad.yaml line 2: not valid YAML",
        ("train", "recipe.json"): "recipe.json: expected a recipe file that ends in .yaml",
        ("train", "folder.yaml"): "folder.yaml: is a folder",
    }.items():
        assert expected in failing([words[0], str(tmp_path / words[1])], capsys)


def test_places_that_cannot_be_written_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch):
    (tmp_path / "folder").mkdir()
    convert = ["data", "convert", "shipped", "--out"]
    assert "is a folder, where a file is expected" in failing([*convert, str(tmp_path / "folder")], capsys)
    (tmp_path / "file").write_text("")
    inside = failing([*convert, str(tmp_path / "file" / "x.jsonl")], capsys)
    assert "/file is a file, not a folder" in inside

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / "locked"))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert "/locked: no permission to read or write there" in failing(
        [*convert, str(tmp_path / "a" / "x.jsonl")], capsys
    )


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [("…", "..."), ("≥", ">="), ("—", "-"), ("│", "|"), ("━", "-"), ("┏", "+"), ("é", "e"), ("你", "?"), ("█", "#")],
)
def test_a_symbol_has_a_plain_stand_in(symbol: str, expected: str):
    assert plain(symbol) == expected
