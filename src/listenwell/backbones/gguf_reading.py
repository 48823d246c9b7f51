"""Reads a GGUF file: what it says of a model, and its tensors as float32.

Only what Llama-like models of 4 and 8 bits need of the format, so that it takes a second and no other package.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The format's number types as `struct` calls them."""
STRING, ARRAY = 8, 9

Values = np.ndarray[Any, np.dtype[Any]]


def _halves(blocks: Values, place: int) -> Values:
    """One half-precision number of every block, as a column."""
    return blocks[:, place : place + 2].copy().view(np.float16).astype(np.float32)


def _from_q4_1(blocks: Values) -> Values:
    # A block's first 16 values are the low halves of its bytes, the other 16 the high halves.
    quarters = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    return quarters.astype(np.float32) * _halves(blocks, 0) + _halves(blocks, 2)


def _from_q8_0(blocks: Values) -> Values:
    return blocks[:, 2:].view(np.int8).astype(np.float32) * _halves(blocks, 0)


PACKINGS: dict[int, tuple[str, int, int, Callable[[Values], Values]]] = {
    0: ("F32", 1, 4, lambda blocks: blocks.view(np.float32)),
    1: ("F16", 1, 2, lambda blocks: blocks.view(np.float16).astype(np.float32)),
    3: ("Q4_1", 32, 20, _from_q4_1),
    8: ("Q8_0", 32, 34, _from_q8_0),
}
"""By the number in the file: a name, how many values a block has, in how many bytes, and how to read blocks."""


class GgufError(ValueError):
    """Not a GGUF file, or one with something in it that is not read here."""


@dataclass(frozen=True)
class Place:
    """Where a tensor lies in the file."""

    shape: tuple[int, ...]
    packing: int
    start: int


class GgufFile:
    """`said` is what the file says of the model, by key; `tensors()` are its weights, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Mapped, not read: the weights are most of the file, and are wanted one by one.
        self._bytes = np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size else np.zeros(0, np.uint8)
        self._at = 0
        self._view = memoryview(self._bytes)  # type: ignore[arg-type]
        try:
            self.said, self.places = self._read()
        except (struct.error, KeyError, UnicodeDecodeError, OverflowError, MemoryError) as problem:
            raise GgufError(f"{path}: damaged at byte {self._at}: {problem!r}") from problem

    def tensors(self) -> Iterator[tuple[str, Values]]:
        for name, place in self.places.items():
            if place.packing not in PACKINGS:
                known = ", ".join(packing[0] for packing in PACKINGS.values())
                raise GgufError(f"{self.path}: {name} is packed as number {place.packing}; read are {known}")
            _, values, size, unpack = PACKINGS[place.packing]
            end = place.start + prod(place.shape) // values * size
            if end > len(self._bytes):
                raise GgufError(f"{self.path}: ends before the end of {name}")
            blocks = np.asarray(self._bytes[place.start : end]).reshape(-1, size)
            yield name, unpack(blocks).reshape(place.shape)

    def _read(self) -> tuple[dict[str, Any], dict[str, Place]]:
        magic, version, tensors, entries = self._take("4sIQQ")
        if magic != b"GGUF" or version not in (2, 3):
            raise GgufError(f"{self.path}: not a GGUF file of version 2 or 3")
        said = {self._string(): self._value(*self._take("I")) for _ in range(entries)}
        found = {self._string(): self._place() for _ in range(tensors)}
        whole = int(said.get("general.alignment", 32))
        begin = -(-self._at // whole) * whole
        return said, {name: Place(at.shape, at.packing, begin + at.start) for name, at in found.items()}

    def _place(self) -> Place:
        (dimensions,) = self._take("I")
        # The format names the dimension that varies fastest first.
        shape = tuple(reversed(self._take(f"{dimensions}Q")))
        packing, start = self._take("IQ")
        return Place(shape, packing, start)

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind != ARRAY:
            return self._take(NUMBERS[kind])[0]
        kind, count = self._take("IQ")
        if kind in NUMBERS:
            return list(self._take(f"{count}{NUMBERS[kind]}"))
        return [self._value(kind) for _ in range(count)]

    def _string(self) -> str:
        (length,) = self._take("Q")
        if self._at + length > len(self._view):
            raise struct.error("a text goes beyond the end of the file")
        text = bytes(self._view[self._at : self._at + length]).decode()
        self._at += length
        return text

    def _take(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self._view, self._at)
        self._at += struct.calcsize(f"<{form}")
        return found
