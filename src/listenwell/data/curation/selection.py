"""Selects the most emotional dialogues from values on disk: memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

BINS = 1 << 16


class MostEmotional:
    """Selects the `number` rows with the highest values; of equal ones, the earlier.

    Each call of `values` yields the values of all rows, in blocks. The first pass counts how many fall into each of
    many narrow bins; the second sorts those in the one bin that contains the threshold.
    """

    def __init__(self, values: Callable[[], Iterable[np.ndarray]], number: int) -> None:
        if number < 1:
            raise ValueError(f"the number of dialogues to select is {number}, expected at least 1")
        counts = np.zeros(BINS, dtype=np.int64)
        for block in values():
            counts += np.bincount(_bins(block), minlength=BINS)
        above = np.cumsum(counts[::-1])[::-1]  # how many are in each bin or above it
        enough = np.flatnonzero(above >= number)
        self._border = int(enough[-1]) if len(enough) else -1
        missing = number - int(above[self._border + 1]) if 0 <= self._border < BINS - 1 else number
        self._at_border = self._first_of_border(values(), missing) if self._border >= 0 else np.zeros(0, dtype=np.int64)

    def _first_of_border(self, values: Iterable[np.ndarray], missing: int) -> np.ndarray:
        rows: list[np.ndarray] = []
        border_values: list[np.ndarray] = []
        begin = 0
        for block in values:
            inside = np.flatnonzero(_bins(block) == self._border)
            rows.append(begin + inside)
            border_values.append(block[inside])
            begin += len(block)
        order = np.argsort(-np.concatenate(border_values), kind="stable")[:missing]
        return np.sort(np.concatenate(rows)[order])

    def chosen(self, block: np.ndarray, begin: int) -> np.ndarray:
        """A mask of the selected rows in a block; `begin` is the number of its first row."""
        rows = np.arange(begin, begin + len(block))
        return (_bins(block) > self._border) | np.isin(rows, self._at_border)


def _bins(block: np.ndarray) -> np.ndarray:
    return np.clip((block * BINS).astype(np.int64), 0, BINS - 1)
