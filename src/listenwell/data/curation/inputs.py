"""The input of a curation: its files, their names in the records, and how they are divided into chunks.

Files are sorted by name, whatever order they were given in, and a chunk is a sequence of consecutive files; so the same
input gives the same chunks with any engine. The list of all files is never held in memory.
"""

from __future__ import annotations

import gzip
import hashlib
import heapq
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ENDINGS: dict[str, tuple[str, ...]] = {
    "subtitles": (".srt", ".vtt", ".ass", ".ssa", ".xml", ".srt.gz", ".vtt.gz", ".ass.gz", ".ssa.gz", ".xml.gz"),
    "posts": (".jsonl", ".jsonl.gz", ".json", ".json.gz"),
}
"""The files to read from a folder. A file given explicitly is read whatever its name."""

CHUNK_FILES = 16
CHUNK_BYTES = 4 << 20
"""Limits of a chunk; a larger file is a chunk by itself."""

LARGEST_FILE = 64 << 20
"""Maximum bytes of a subtitle file, compressed or not."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file, or a range of its lines."""

    name: str
    """The name in records and reports, independent of where the input is stored."""
    path: str
    size: int
    begin: int = 0
    end: int | None = None
    """Byte offset; None for the end of the file."""
    first_line: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_first(self) -> bool:
        """Whether it is the first piece of a file, so that files are counted once."""
        return not self.begin

    def read(self) -> bytes:
        """Read the bytes, decompressed if necessary. Raises ValueError if the file is too large for subtitles."""
        if self.size > LARGEST_FILE:
            raise ValueError(f"{self.size >> 20} MB, more than a subtitle file can have")
        with open(self.path, "rb") as raw:
            if not self.path.endswith(".gz"):
                return raw.read()
            with gzip.open(raw) as stream:
                data = stream.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise ValueError(f"unpacks to more than {LARGEST_FILE >> 20} MB")
        return data


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files and folders given by the user."""

    kind: str
    roots: tuple[tuple[str, str], ...]
    """The name and the path of each, sorted by name."""

    @classmethod
    def named(cls, kind: str, paths: Sequence[str | Path]) -> Inputs:
        """Build from paths. A path inside another one is read only once; a missing path raises FileNotFoundError."""
        places: dict[Path, None] = {}
        for path in paths:
            place = Path(path).expanduser()
            if not place.exists():
                raise FileNotFoundError(f"{path}: no such file or folder; name the files or folders to read")
            places[place.resolve()] = None
        own = [place for place in places if not any(parent in places for parent in place.parents)]
        return cls(kind, tuple(sorted((name, str(place)) for name, place in _names(own).items())))

    def files(self) -> Iterator[InputFile]:
        """All files, sorted by name."""
        walks = [_walk(name, Path(path), ENDINGS[self.kind]) for name, path in self.roots]
        return heapq.merge(*walks, key=lambda file: tuple(file.name.split("/")))

    def summary(self) -> tuple[int, int, str]:
        """The number of files, their total bytes, and a hash over names, sizes and modification times."""
        number, size, stamp = 0, 0, hashlib.sha256()
        for file in self.files():
            number, size = number + 1, size + file.size
            changed = os.stat(file.path).st_mtime_ns
            stamp.update(json.dumps([file.name, file.size, changed]).encode())
        return number, size, stamp.hexdigest()[:16]

    def chunks(self) -> Iterator[list[InputFile]]:
        """Sequences of files that are processed together, with one output file each."""
        chunk: list[InputFile] = []
        size = 0
        for piece in self._pieces():
            length = (piece.size if piece.end is None else piece.end) - piece.begin
            if chunk and (len(chunk) == CHUNK_FILES or size + length > CHUNK_BYTES):
                yield chunk
                chunk, size = [], 0
            chunk.append(piece)
            size += length
        if chunk:
            yield chunk

    def _pieces(self) -> Iterable[InputFile]:
        if self.kind == "posts":
            return (piece for file in self.files() for piece in line_pieces(file))
        return self.files()


def line_pieces(file: InputFile, size: int = CHUNK_BYTES) -> Iterator[InputFile]:
    """Split a long .jsonl file into ranges of whole lines. Other files are one piece, since they cannot be split
    without reading them."""
    if file.size <= size or not file.path.endswith(".jsonl"):
        yield file
        return
    begin, line = 0, 1
    with open(file.path, "rb") as stream:
        while block := stream.read(size):
            rest = stream.readline()
            end = begin + len(block) + len(rest)
            yield InputFile(file.name, file.path, file.size, begin, end, line)
            begin, line = end, line + block.count(b"\n") + rest.count(b"\n")


def _walk(name: str, place: Path, endings: tuple[str, ...]) -> Iterator[InputFile]:
    if place.is_file():
        yield InputFile(name, str(place), place.stat().st_size)
        return
    with os.scandir(place) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        inner = f"{name}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(inner, Path(entry.path), endings)
        elif entry.name.lower().endswith(endings) and entry.is_file():
            yield InputFile(inner, entry.path, entry.stat().st_size)


def _names(places: Sequence[Path]) -> dict[str, Path]:
    """A unique name for each path: its last part, with as many parts before it as needed."""
    names: dict[str, Path] = {}
    for place in places:
        alike = [other for other in places if other != place and other.name == place.name]
        length = 1
        while any(other.parts[-length:] == place.parts[-length:] for other in alike):
            length += 1
        names["/".join(place.parts[-length:]).lstrip("/") or "root"] = place
    return names
