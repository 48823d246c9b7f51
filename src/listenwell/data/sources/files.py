"""Finds and reads the files of a corpus: lines, CSV rows, items of a JSON array.

Everything is streamed, and anything that cannot be read raises a SourceError that names file and line.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, NamedTuple

from listenwell.data.sources.report import SourceError, shorten
from listenwell.data.sources.splits import split_name, split_of_file
from listenwell.labels.taxonomy import unknown_name

BLOCK = 1 << 16
LARGEST_ITEM = 1 << 24
"""Maximum characters of one item of a JSON array; beyond that, a quote or bracket was never closed."""

_SPACE = re.compile(r"[ \t\r\n]*")


class Piece(NamedTuple):
    """A file that a corpus may have: its split, its possible names, and its part if the corpus has parts."""

    split: str
    names: tuple[str, ...]
    part: str | None = None


class DataFile(NamedTuple):
    """An existing file. The path comes first, as `sources.data_files` expects."""

    path: Path
    split: str | None
    part: str | None = None

    @property
    def file(self) -> str:
        return self.path.name

    @property
    def stem(self) -> str:
        """The prefix of its dialogues' ids."""
        return "-".join(name for name in (self.part, self.split) if name) or self.path.stem


def choose(
    path: str | Path, pieces: Sequence[Piece], split: str | None = None, part: str | None = None, *, how_to_get: str
) -> list[DataFile]:
    """The files of a split and part; all existing files by default. `path` is the folder, or one file of it."""
    path = Path(path)
    wanted = None if split is None else split_name(split)
    parts = dict.fromkeys(piece.part for piece in pieces if piece.part)
    if part is not None and part not in parts:
        raise ValueError(unknown_name("part", part, parts) if parts else f"no parts to choose from, found {part!r}")
    if path.is_file():
        known = next((piece for piece in pieces if path.name in {Path(name).name for name in piece.names}), None)
        file_split = known.split if known else split_of_file(path.name)
        return [DataFile(path, wanted or file_split, part or (known.part if known else None))]
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: no such file or folder; {how_to_get}")
    wanted_pieces = [piece for piece in pieces if wanted in (None, piece.split) and part in (None, piece.part)]
    if not wanted_pieces:
        there = dict.fromkeys(piece.split for piece in pieces if part in (None, piece.part))
        raise ValueError(f"no split {wanted!r} in {part or 'this corpus'}; there is: {', '.join(there)}")
    chosen = [DataFile(file, piece.split, piece.part) for piece in wanted_pieces if (file := _first(path, piece.names))]
    if not chosen:
        names = ", ".join(piece.names[0] for piece in wanted_pieces)
        missing = f"{names} is not there" if len(wanted_pieces) == 1 else f"none of {names} is there"
        raise FileNotFoundError(f"{path}: {missing}, found {listing(path)}; {how_to_get}")
    return chosen


def choose_all(path: str | Path, pieces: Sequence[Piece], split: str | None, *, how_to_get: str) -> list[DataFile]:
    """The files of a corpus that was published without splits: each file holds conversations of every split."""
    if split is not None:
        split_name(split)  # a wrong name raises before anything is read
    return choose(path, pieces, how_to_get=how_to_get)


def listing(folder: Path) -> str:
    """The contents of a folder, for an error message."""
    return ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"


def _first(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file, including line ends, with numbers from 1."""
    with path.open("rb") as stream:
        yield from _decoded(stream, path.name)


def _decoded(stream: IO[bytes], file: str) -> Iterator[tuple[int, str]]:
    # Lines end at \n only: str.splitlines would also split at U+2028 or \x85.
    for number, raw in enumerate(stream, start=1):
        try:
            yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise _not_utf8(file, number, error) from error


def _not_utf8(file: str, line: int, error: UnicodeDecodeError) -> SourceError:
    return SourceError.at(file, line, f"the byte 0x{error.object[error.start]:02x}", "UTF-8", "save the file as UTF-8")


def aligned(*paths: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The lines of parallel files, with line numbers. Lines that are blank in all files are skipped."""
    with ExitStack() as stack:
        streams = [_decoded(stack.enter_context(path.open("rb")), path.name) for path in paths]
        for number, row in enumerate(zip_longest(*streams), start=1):
            texts = tuple(entry[1].rstrip("\r\n") if entry else "" for entry in row)
            if not any(text.strip() for text in texts):
                continue
            if None in row:
                short = paths[row.index(None)].name
                long = next(path.name for path, text in zip(paths, texts, strict=True) if text.strip())
                way_out = "the files go line by line: download them again, together"
                raise SourceError.at(short, number, "the end of the file", f"a line as in {long}", way_out)
            yield number, texts


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file, each with the number of its first line."""
    reader = csv.reader((text for _, text in lines(path)), strict=True)
    while True:
        begins = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            # The parser cannot resynchronize, so no row after this one can be trusted.
            actual, way_out = f"{error}", "repair the quotes of this row"
            raise SourceError.at(path.name, begins, actual, "CSV with balanced quotes", way_out) from error
        if row is None:
            return
        if any(row):  # a blank line is not a row
            yield begins, row


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a file with one JSON value per line, with line numbers; blank lines are skipped."""
    for number, text in lines(path):
        if not text.strip():
            continue
        try:
            yield number, json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            actual = f"{shorten(text.strip())!r} ({getattr(error, 'msg', 'endless nesting')})"
            raise SourceError.at(path.name, number, actual, "one JSON value per line", "correct the line") from error


def json_items(path: Path) -> Iterator[tuple[int, Any]]:
    """The items of a file that is one JSON array, one at a time, each with the number of its first line."""
    with path.open("rb") as stream:
        yield from _Array(stream, path.name).items()


class _Array:
    """Decodes a JSON array item by item, since a gigabyte corpus that is one array should not be in memory at once."""

    _decoder = json.JSONDecoder()

    def __init__(self, stream: IO[bytes], file: str) -> None:
        self._stream = stream
        self._file = file
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._line = 1
        self._ended = False

    def items(self) -> Iterator[tuple[int, Any]]:
        if self._next() != "[":
            raise self._error(f"{shorten(self._text[self._at : self._at + 30])!r}", "a JSON array: [ … ]")
        self._move(self._at + 1)
        if self._next() == "]":
            return self._finish()
        while True:
            self._next()
            yield self._line, self._item()
            mark = self._next()
            if mark == "]":
                return self._finish()
            if mark != ",":
                raise self._error(f"{mark!r}" if mark else "the end of the file", "',' or ']' after an item")
            self._move(self._at + 1)

    def _finish(self) -> None:
        self._move(self._at + 1)
        if self._next():
            raise self._error(f"{shorten(self._text[self._at :])!r} after the array", "the end of the file")

    def _item(self) -> Any:
        while True:
            try:
                item, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError as error:
                raise self._error("endless nesting", "an item of the array") from error
            except json.JSONDecodeError as error:
                if self._may_go_on(error) and self._more():
                    continue
                self._move(error.pos)
                near = self._text[self._at : self._at + 30]
                actual = f"{error.msg} at {shorten(near)!r}" if near else "the end of the file"
                raise self._error(actual, "a whole JSON item") from error
            self._move(end)
            return item

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Whether more text may fix the error: an open string, or an error at the very end of what was read."""
        if len(self._text) - self._at > LARGEST_ITEM:
            return False
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - 12

    def _next(self) -> str:
        """Skips whitespace and peeks at the next character; "" at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._move(match.end() if match else self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _more(self) -> bool:
        if self._ended:
            return False
        # Doubles what is held, so that a long item is not parsed again for every block.
        block = self._stream.read(max(BLOCK, len(self._text) - self._at))
        self._ended = not block
        try:
            text = self._utf8.decode(block, final=self._ended)
        except UnicodeDecodeError as error:
            before = self._text.count("\n", self._at) + error.object.count(b"\n", 0, error.start)
            raise _not_utf8(self._file, self._line + before, error) from error
        self._text, self._at = self._text[self._at :] + text, 0
        return True

    def _move(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _error(self, actual: str, expected: str) -> SourceError:
        return SourceError.at(self._file, self._line, actual, expected, "repair the file, or download it again")
