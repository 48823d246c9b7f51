"""From cues to turns, and from turns to dialogues."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from listenwell.data.curation.cues import Cue, CueTurn

MAX_GAP = 5.0
"""Seconds of silence after which another dialogue begins."""

_DASH = "-\u2010-\u2015\u2212\uff0d\ufe63"
# One dash in front of a word, a quote or a bracket. Two are an interruption, and "-=" is decoration.
_LEADING = re.compile(rf"\s*[{_DASH}](?![{_DASH}])\s*(?=[\w\"'“‘「(\[♪#¿¡.…])")
_INNER = re.compile(rf"(?<=[.?!…\"”'’)\]。？！~])\s+[{_DASH}](?![{_DASH}])\s*(?=[\w\"'“‘「(\[♪¿¡.…])")
# In a text that begins with a dash, the next one needs no full stop before it: Chinese subtitles have none.
_INNER_AFTER_DASH = re.compile(rf"\s+[{_DASH}](?![{_DASH}])\s*(?=[\w\"'“‘「(\[♪¿¡.…])")
_NAME = re.compile(r"([A-Z][A-Z.'’\- ]*[A-Z.](?: ?#?\d+)?)\s?:\s+(?=\S)")


def split_dashes(cues: Sequence[Cue]) -> list[Cue]:
    """Cues in which dashes or names mark several speakers, as one cue per speaker, each with its share of the time."""
    parts: list[Cue] = []
    for cue in cues:
        texts = _speaker_texts(cue.text)
        if len(texts) == 1:
            text, dash, name = texts[0]
            if not dash and name is None and "\n" not in cue.text:
                parts.append(cue)
            else:
                parts.append(replace(cue, text=text, dash=dash, speaker=name or cue.speaker))
            continue
        times = _shares(cue, [len(text) for text, _, _ in texts])
        for index, (text, dash, name) in enumerate(texts):
            start, end = times[index], times[index + 1]
            speaker = name or (cue.speaker if index == 0 else None)
            parts.append(replace(cue, start=start, end=end, text=text, part=index, dash=dash, speaker=speaker))
    return parts


def _speaker_texts(text: str) -> list[tuple[str, bool, str | None]]:
    """Text, whether a dash stands before it, and the name before it, for each speaker of a cue; lines are joined."""
    found: list[tuple[list[str], bool, str | None]] = []
    for line in text.split("\n"):
        for piece, dash in _dashed_pieces(line):
            name = _NAME.match(piece)
            words = piece[name.end() :] if name else piece
            if dash or name or not found:
                found.append(([words], dash, name[1] if name else None))
            else:
                found[-1][0].append(words)
    return [(" ".join(lines), dash, name) for lines, dash, name in found]


def _dashed_pieces(line: str) -> list[tuple[str, bool]]:
    lead = _LEADING.match(line)
    inner = _INNER_AFTER_DASH if lead else _INNER
    if lead is None and not any(dash in line for dash in " -–—－"[1:]):
        return [(line, False)]
    pieces = inner.split(line[lead.end() :] if lead else line)
    return [(piece.strip(), index > 0 or lead is not None) for index, piece in enumerate(pieces) if piece.strip()]


def _shares(cue: Cue, lengths: list[int]) -> list[float | None]:
    """The times between the parts of a cue: somebody who says more speaks longer."""
    count = len(lengths)
    if cue.start is None or cue.end is None:
        return [cue.start, *[None] * (count - 1), cue.end]
    total = sum(lengths) or 1
    done = np.cumsum([0, *lengths]) / total
    return [round(float(cue.start + share * (cue.end - cue.start)), 3) for share in done]


def turns_from_cues(cues: Sequence[Cue], scores: np.ndarray, max_gap: float = MAX_GAP) -> list[CueTurn]:
    """Joins consecutive cues whose score is above 0. A gap of more than `max_gap` seconds always ends a turn."""
    if len(scores) != max(len(cues) - 1, 0):
        raise ValueError(f"{len(cues)} cues need {max(len(cues) - 1, 0)} scores between them, found {len(scores)}")
    turns: list[CueTurn] = []
    group: list[Cue] = []
    for index, cue in enumerate(cues):
        if group and not (scores[index - 1] > 0 and not _is_cut(group[-1].end, cue.start, max_gap)):
            turns.append(_turn(group))
            group = []
        group.append(cue)
    if group:
        turns.append(_turn(group))
    return turns


def _turn(group: list[Cue]) -> CueTurn:
    numbers = tuple(dict.fromkeys(cue.number for cue in group))
    text = " ".join(cue.text.replace("\n", " ") for cue in group)
    speaker = next((cue.speaker for cue in group if cue.speaker), None)
    return CueTurn(group[0].file, numbers, group[0].start, group[-1].end, text, speaker)


def cut_dialogues(turns: Sequence[CueTurn], max_gap: float = MAX_GAP) -> list[list[CueTurn]]:
    """Cuts where more than `max_gap` seconds pass between two turns; where a time is missing, they stay together."""
    dialogues: list[list[CueTurn]] = []
    for turn in turns:
        if not dialogues or _is_cut(dialogues[-1][-1].end, turn.start, max_gap):
            dialogues.append([])
        dialogues[-1].append(turn)
    return dialogues


def _is_cut(end: float | None, start: float | None, max_gap: float) -> bool:
    return end is not None and start is not None and start - end > max_gap
