"""Finds near-duplicate dialogues: MinHash over word trigrams, grouped on disk.

Two dialogues are near duplicates if the Jaccard similarity of their word trigrams is at least 0.8. Candidates share a
band of the MinHash signature; each is verified on the trigrams themselves. Near duplicates of near duplicates are one
group, of which the first record stays: the result does not depend on the order of the input. Memory holds eight bytes
per record, and one of many partitions at a time.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

SHINGLE = 3
BANDS, ROWS = 16, 6
"""Two dialogues with a similarity of 80 % are found with a probability of 0.99, those with 90 % practically always."""
THRESHOLD = 0.8
PARTITIONS = 256
MOST_LEADERS = 64
"""Maximum number of distinct records in a bucket that others are compared with."""

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_APOSTROPHES = str.maketrans("", "", "'’")


def _constants(name: str, number: int) -> np.ndarray:
    """Pseudo-random odd 64-bit numbers, the same on every machine and in every version."""
    digests = (hashlib.blake2b(f"{name} {index}".encode(), digest_size=8).digest() for index in range(number))
    return np.frombuffer(b"".join(digests), dtype="<u8") | np.uint64(1)


_POSITION = _constants("position", SHINGLE)
_FACTORS = _constants("factor", BANDS * ROWS)
_OFFSETS = _constants("offset", BANDS * ROWS)
_MIX = _constants("mix", ROWS)
_BAND = _constants("band", BANDS)


@lru_cache(maxsize=1 << 14)
def _word_hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def plain_words(text: str) -> list[str]:
    """The words in lower case, without marks; "don't" is "dont". A Chinese character is a word."""
    return _WORD.findall(text.casefold().translate(_APOSTROPHES))


def shingles(words: Sequence[str]) -> np.ndarray:
    """The distinct hashes of all word trigrams, sorted (uint32); with fewer than three words, of all of them at
    once."""
    if not words:
        return np.zeros(0, dtype="<u4")
    hashes = np.array([_word_hash(word) for word in words], dtype="<u8")
    size = min(SHINGLE, len(hashes))
    count = len(hashes) - size + 1
    mixed = np.zeros(count, dtype="<u8")
    for place in range(size):
        mixed += hashes[place : place + count] * _POSITION[place]
    mixed ^= mixed >> np.uint64(29)
    return np.unique((mixed * _MIX[0] >> np.uint64(32)).astype("<u4"))


def band_keys(marks: np.ndarray) -> np.ndarray:
    """The band keys of a MinHash signature (BANDS × uint64): near duplicates have at least one in common."""
    values = marks.astype("<u8")[:, None] * _FACTORS + _OFFSETS
    signature = (values >> np.uint64(32)).min(axis=0).reshape(BANDS, ROWS)
    keys = (signature * _MIX).sum(axis=1, dtype="<u8") * _BAND
    return keys ^ (keys >> np.uint64(31))


def jaccard(first: np.ndarray, second: np.ndarray) -> float:
    """The Jaccard similarity of two sets of shingles."""
    both = len(np.intersect1d(first, second, assume_unique=True))
    return both / (len(first) + len(second) - both) if both else 0.0


class RowStore:
    """Byte strings on disk, by row number: appended once, then read in any order."""

    def __init__(self, path: Path) -> None:
        self._data, self._ends = path.with_suffix(".data").open("w+b"), path.with_suffix(".ends").open("w+b")
        self._size = self.rows = 0

    def append(self, entry: bytes) -> None:
        self._data.write(entry)
        self._size += len(entry)
        self._ends.write(self._size.to_bytes(8, "little"))
        self.rows += 1

    def flush(self) -> None:
        self._data.flush()
        self._ends.flush()

    def __getitem__(self, row: int) -> bytes:
        # pread does not map the file, so what was read does not stay in memory.
        ends = os.pread(self._ends.fileno(), 16 if row else 8, 8 * max(0, row - 1))
        begin = int.from_bytes(ends[:8], "little") if row else 0
        end = int.from_bytes(ends[-8:], "little")
        return os.pread(self._data.fileno(), end - begin, begin)

    def close(self) -> None:
        self._data.close()
        self._ends.close()


class Match(NamedTuple):
    """A record that is a near duplicate of another one."""

    row: int
    id: str
    match: str
    """The id of the record that is kept."""
    similarity: float
    """The Jaccard similarity of their word trigrams."""


class NearDuplicates:
    """Takes all records in order, then finds those that are near duplicates of earlier ones."""

    def __init__(self, folder: Path, threshold: float = THRESHOLD, partitions: int = PARTITIONS) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.threshold = threshold
        self._ids, self._marks = RowStore(folder / "ids"), RowStore(folder / "shingles")
        self._partitions = [(folder / f"bands-{index:03}").open("w+b") for index in range(partitions)]
        self._parent = np.zeros(0, dtype=np.int64)

    def add(self, ids: Sequence[str], marks: Sequence[bytes], keys: np.ndarray) -> None:
        """Add records: their ids, shingles and band keys (records × BANDS)."""
        first = self._ids.rows
        for name, mark in zip(ids, marks, strict=True):
            self._ids.append(name.encode())
            self._marks.append(mark)
        entries = np.empty(keys.size, dtype=[("key", "<u8"), ("row", "<i8")])
        entries["key"] = keys.ravel()
        entries["row"] = np.repeat(np.arange(first, first + len(ids)), BANDS)
        part = entries["key"] % np.uint64(len(self._partitions))
        entries = entries[np.argsort(part, kind="stable")]
        ends = np.cumsum(np.bincount(part.astype(np.int64), minlength=len(self._partitions)))
        for file, begin, end in zip(self._partitions, (0, *ends), ends, strict=False):
            if end > begin:
                file.write(entries[begin:end].tobytes())

    def find(self) -> None:
        """Group all records."""
        self._ids.flush()
        self._marks.flush()
        self._parent = np.arange(self._ids.rows, dtype=np.int64)
        for file in self._partitions:
            file.flush()
            file.seek(0)
            entries = np.frombuffer(file.read(), dtype=[("key", "<u8"), ("row", "<i8")])
            for bucket in _buckets(entries):
                self._join(bucket)
        while not np.array_equal(parents := self._parent[self._parent], self._parent):
            self._parent = parents

    def matches(self, begin: int, end: int) -> Iterator[Match]:
        """The near duplicates among the records from `begin` up to, but not including, `end`."""
        for row in (begin + np.flatnonzero(self._parent[begin:end] != np.arange(begin, end))).tolist():
            first = int(self._parent[row])
            similarity = jaccard(self._shingles(row), self._shingles(first))
            yield Match(row, self.name(row), self.name(first), round(similarity, 4))

    def name(self, row: int) -> str:
        """The id of a record."""
        return self._ids[row].decode()

    def remaining(self) -> int:
        """The number of records that are kept."""
        return int((self._parent == np.arange(len(self._parent))).sum())

    def close(self) -> None:
        self._ids.close()
        self._marks.close()
        for file in self._partitions:
            file.close()

    def _shingles(self, row: int) -> np.ndarray:
        return np.frombuffer(self._marks[row], dtype="<u4")

    def _join(self, bucket: Sequence[int]) -> None:
        leaders: list[tuple[int, np.ndarray]] = []
        for row in bucket:
            root = self._root(row)
            if any(self._root(leader) == root for leader, _ in leaders):
                continue
            marks = self._shingles(row)
            for leader, others in leaders:
                if jaccard(marks, others) >= self.threshold:
                    self._unite(leader, row)
                    break
            else:
                if len(leaders) < MOST_LEADERS:
                    leaders.append((row, marks))

    def _root(self, row: int) -> int:
        parent = self._parent
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = int(parent[row])
        return row

    def _unite(self, first: int, second: int) -> None:
        low, high = sorted((self._root(first), self._root(second)))
        self._parent[high] = low


def _buckets(entries: np.ndarray) -> Iterator[list[int]]:
    """The rows that share a key, for keys with more than one row, in order."""
    entries = entries[np.lexsort((entries["row"], entries["key"]))]
    borders = np.flatnonzero(entries["key"][1:] != entries["key"][:-1]) + 1
    starts, ends = np.concatenate(([0], borders)), np.concatenate((borders, [len(entries)]))
    for begin, end in zip(starts[ends - starts > 1], ends[ends - starts > 1], strict=True):
        yield entries["row"][begin:end].tolist()
