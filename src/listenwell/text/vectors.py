"""Word vectors in text files: a word and its numbers on each line, as in GloVe, possibly after a header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from listenwell.configuration import ConfigError


def vector_lines(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Line number, word and vector of each line; all vectors have the same width."""
    width = 0
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            # From the right: a few of GloVe's "words" have spaces in them.
            word, *values = line.rstrip().rsplit(" ", width or -1)
            if number == 1 and len(values) == 1:
                continue  # word2vec's header: how many, how wide
            width = width or len(values)
            if len(values) != width:
                raise ConfigError(f"{path} line {number}: {len(values)} numbers, expected {width}")
            yield number, word, values
