import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.data.sources import files
from listenwell.data.sources.files import DataFile, Piece, aligned, choose, csv_rows, json_items, lines
from listenwell.data.sources.report import SourceError

PIECES = (
    Piece("train", ("a_train.txt", "old/train.txt"), "a"),
    Piece("test", ("a_test.txt",), "a"),
    Piece("test", ("b_test.txt",), "b"),
)


def file_of(folder, text, name="some.json"):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def chosen(path, *choice):
    return [(actual.file, actual.split, actual.part) for actual in choose(path, PIECES, *choice, how_to_get="ask")]


def test_files_are_chosen_by_split_and_part_and_all_by_default(tmp_path):
    for name in ("old/train.txt", "a_test.txt", "b_test.txt"):
        file_of(tmp_path, "", name)
    everything = [("train.txt", "train", "a"), ("a_test.txt", "test", "a"), ("b_test.txt", "test", "b")]
    assert chosen(tmp_path) == everything
    assert chosen(tmp_path, "test") == everything[1:]
    assert chosen(tmp_path, "test", "b") == everything[2:]
    assert chosen(tmp_path / "b_test.txt") == everything[2:]
    assert DataFile(tmp_path / "b_test.txt", "test", "b").stem == "b-test"


def test_what_was_asked_for_and_is_not_there_is_named(tmp_path):
    file_of(tmp_path, "", "a_test.txt")
    with pytest.raises(FileNotFoundError, match=r"a_train\.txt is not there, found a_test\.txt; ask"):
        chosen(tmp_path, "train")
    with pytest.raises(FileNotFoundError, match="no such file or folder; ask"):
        chosen(tmp_path / "none")
    with pytest.raises(ValueError, match="no split 'train' in b; there is: test"):
        chosen(tmp_path, "train", "b")
    with pytest.raises(ValueError, match="unknown part 'c'; known: a, b"):
        chosen(tmp_path, None, "c")
    (tmp_path / "a_test.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"none of a_test\.txt, b_test\.txt is there, found nothing; ask"):
        chosen(tmp_path, "test")


def test_lines_end_at_line_feeds_only_and_wrong_bytes_are_named(tmp_path):
    path = file_of(tmp_path, "\ufeffone\u2028two\nthree\n")
    assert list(lines(path)) == [(1, "one\u2028two\n"), (2, "three\n")]
    with pytest.raises(SourceError, match=r"some\.json line 2: the byte 0xe9, expected UTF-8; save the file as UTF-8"):
        list(lines(file_of(tmp_path, b"fine\ncaf\xe9\n")))


def test_aligned_files_must_end_together(tmp_path):
    first = file_of(tmp_path, "a\n\nb\n\n\n", "first.txt")
    second = file_of(tmp_path, "1\r\n\n2\n", "second.txt")
    assert list(aligned(first, second)) == [(1, ("a", "1")), (3, ("b", "2"))]
    file_of(tmp_path, "1\n", "second.txt")
    with pytest.raises(SourceError) as caught:
        list(aligned(first, second))
    assert str(caught.value) == (
        "second.txt line 3: the end of the file, expected a line as in first.txt; "
        "the files go line by line: download them again, together"
    )


def test_csv_rows_know_the_line_they_begin_on(tmp_path):
    path = file_of(tmp_path, 'a,b\n"one\ntwo",2\n\n3,4\n')
    assert list(csv_rows(path)) == [(1, ["a", "b"]), (2, ["one\ntwo", "2"]), (5, ["3", "4"])]
    with pytest.raises(
        SourceError, match=r"some\.json line 2: .*, expected CSV with balanced quotes; repair the quotes"
    ):
        list(csv_rows(file_of(tmp_path, 'a,b\n"one,2\n3,4\n')))


@settings(max_examples=40, deadline=None)
@given(
    items=st.lists(st.lists(st.text() | st.integers() | st.none()) | st.dictionaries(st.text(), st.booleans())),
    indent=st.none() | st.just(1),
    plain=st.booleans(),
    block=st.integers(1, 9),
)
def test_the_items_of_a_json_array_are_those_of_the_parser_wherever_a_block_ends(
    tmp_path_factory, items, indent, plain, block
):
    written = json.dumps(items, indent=indent, ensure_ascii=not plain).encode("utf-8", "surrogatepass")
    path = file_of(tmp_path_factory.mktemp("array"), written)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK", block)
        assert [item for _, item in json_items(path)] == items


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: '', expected a JSON array"),
        ('{"a": 1}', "line 1: '{\"a\": 1}', expected a JSON array"),
        ('[\n["a"],\n["b" "c"]\n]', "line 3: Expecting ',' delimiter at '\"c\"]\\n]', expected a whole JSON item"),
        ('[\n["a"]\n["b"]]', "line 3: '[', expected ',' or ']' after an item"),
        ('[\n["a"],\n["b', "line 3: Unterminated string starting at at '\"b', expected a whole JSON item"),
        ('[\n["a"],\n', "line 3: the end of the file, expected a whole JSON item"),
        ('[["a"]]\n5', "line 2: '5' after the array, expected the end of the file"),
        (b'[\n["a"],\n["\xe9"]]', "line 3: the byte 0xe9, expected UTF-8"),
        ("[" * 100_000, "line 1: endless nesting, expected an item of the array"),
    ],
)
def test_a_broken_array_is_named(tmp_path, text, message):
    with pytest.raises(SourceError) as caught:
        list(json_items(file_of(tmp_path, text)))
    assert str(caught.value).startswith(f"some.json {message}")


def test_items_come_with_their_lines_before_the_file_is_read_whole(tmp_path):
    reading = json_items(file_of(tmp_path, '[\n["a"],\n\n["b"],\noops'))
    assert [next(reading), next(reading)] == [(2, ["a"]), (4, ["b"])]
    with pytest.raises(SourceError, match="line 5: Expecting value"):
        next(reading)
    assert list(json_items(file_of(tmp_path, " [ ] \n"))) == []


def test_a_quote_that_is_never_closed_does_not_take_the_whole_file_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_ITEM", 100)
    monkeypatch.setattr(files, "BLOCK", 50)
    path = file_of(tmp_path, '[["open, ' + "x" * 5000)
    with pytest.raises(SourceError, match="line 1: Unterminated string"):
        list(json_items(path))
