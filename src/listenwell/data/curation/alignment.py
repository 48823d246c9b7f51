"""Finds the speaker of each cue by aligning the words of a subtitle file with those of a script that names speakers.

Each is treated as one long sequence of words, and both are aligned globally (Needleman–Wunsch), so that omitted,
shortened or reworded lines have only a local effect. A cue has a speaker if its words were found in the script.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listenwell.data.curation.cues import Cue

MISMATCH, GAP = -1.5, -0.5
MIN_MATCHED = 0.6
"""Minimum share of a cue's words that must be found in the script."""

_WORDS = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a script."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Alignment:
    """For one cue: its first and last speaker, or None if the script does not tell, and the share of words found."""

    first: str | None
    last: str | None
    matched: float


def read_script(path: Path) -> list[Line]:
    """Read a script with lines of "speaker text"."""
    lines = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        speaker, _, text = line.strip().partition(" ")
        if text.strip():
            lines.append(Line(speaker, text.strip()))
    return lines


def words(text: str) -> list[str]:
    """Lower-case words without apostrophes: "Y'know, don't" gives "yknow", "dont"."""
    return _WORDS.findall(text.lower().replace("'", "").replace("’", ""))


def align(cues: Sequence[Cue], script: Sequence[Line]) -> list[Alignment]:
    """The speakers of each cue."""
    cue_words = [(word, index) for index, cue in enumerate(cues) for word in words(cue.text)]
    script_words = [(word, index) for index, line in enumerate(script) for word in words(line.text)]
    if not cue_words or not script_words:
        return [Alignment(None, None, 0.0) for _ in cues]
    pairs = align_words([word for word, _ in cue_words], [word for word, _ in script_words])
    lines: list[list[int | None]] = [[] for _ in cues]
    partner = dict(pairs)
    for position, (_, index) in enumerate(cue_words):
        other = partner.get(position)
        lines[index].append(None if other is None else script_words[other][1])
    return [_alignment(line_numbers, script) for line_numbers in lines]


def _alignment(line_numbers: list[int | None], script: Sequence[Line]) -> Alignment:
    known = [line for line in line_numbers if line is not None]
    matched = len(known) / len(line_numbers) if line_numbers else 0.0
    if not known or matched < MIN_MATCHED:
        return Alignment(None, None, matched)
    return Alignment(_speaker(script[known[0]]), _speaker(script[known[-1]]), matched)


def _speaker(line: Line) -> str | None:
    """None for several people, "all@" or "chandler@joey": such a line has no single speaker."""
    return None if "@" in line.speaker else line.speaker.lower()


def align_words(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of equal words in the best alignment of two sequences, in order.

    Computed row by row with numpy: within a row, gaps are a running maximum, since a gap costs the same everywhere.
    """
    ids: dict[str, int] = {}
    a = np.array([ids.setdefault(word, len(ids)) for word in left])
    b = np.array([ids.setdefault(word, len(ids)) for word in right])
    # A long word is better evidence than "I".
    weight = np.array([1.0 + 0.15 * min(len(word), 8) for word in ids])
    slope = GAP * np.arange(len(b) + 1)
    row = slope.copy()
    choices = np.empty((len(a), len(b)), dtype=np.int8)  # 0: both, 1: only a word of `left`, 2: only a word of `right`
    for i, word in enumerate(a):
        both = row[:-1] + np.where(b == word, weight[word], MISMATCH)
        up = row[1:] + GAP
        best = np.maximum(both, up)
        start = row[0] + GAP
        new = np.maximum.accumulate(np.concatenate(([start], best)) - slope) + slope
        choices[i] = np.where(new[1:] > best + 1e-9, 2, np.where(both >= up, 0, 1))
        row = new
    return _trace(choices, a, b)


def _trace(choices: np.ndarray, a: np.ndarray, b: np.ndarray) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    i, j = len(a) - 1, len(b) - 1
    while i >= 0 and j >= 0:
        choice = choices[i, j]
        if choice == 0:
            if a[i] == b[j]:
                pairs.append((i, j))
            i, j = i - 1, j - 1
        elif choice == 1:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]
