"""Builds turns from cues, and dialogues from turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from listenwell.data.curation.cues import Cue, CueTurn
from listenwell.data.curation.dashes import spoken_pieces

MAX_GAP = 5.0
"""Maximum seconds of silence within a dialogue."""


def split_dashes(cues: Sequence[Cue]) -> list[Cue]:
    """Split cues into sentences, and where dashes or names mark a new speaker; each part gets its share of the time."""
    parts: list[Cue] = []
    for cue in cues:
        texts = spoken_pieces(cue.text)
        if len(texts) == 1:
            text, dash, name = texts[0]
            if not dash and name is None and "\n" not in cue.text:
                parts.append(cue)
            else:
                parts.append(replace(cue, text=text, dash=dash, speaker=name or cue.speaker))
            continue
        times = _shares(cue, [len(text) for text, _, _ in texts])
        known = cue.speaker
        for index, (text, dash, name) in enumerate(texts):
            start, end = times[index], times[index + 1]
            known = None if dash and index else known  # the name given by the file is that of the first speaker
            speaker = name or known
            parts.append(replace(cue, start=start, end=end, text=text, part=index, dash=dash, speaker=speaker))
    return parts


def _shares(cue: Cue, lengths: list[int]) -> list[float | None]:
    """The times at the boundaries of a cue's parts, in proportion to their lengths."""
    count = len(lengths)
    if cue.start is None or cue.end is None:
        return [cue.start, *[None] * (count - 1), cue.end]
    total = sum(lengths) or 1
    done = np.cumsum([0, *lengths]) / total
    return [round(float(cue.start + share * (cue.end - cue.start)), 3) for share in done]


def turns_from_cues(cues: Sequence[Cue], scores: np.ndarray, max_gap: float = MAX_GAP) -> list[CueTurn]:
    """Join consecutive cues whose score is above 0. A gap of more than `max_gap` seconds always ends a turn."""
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
    """Split at gaps of more than `max_gap` seconds between turns; if a time is missing, turns stay together."""
    dialogues: list[list[CueTurn]] = []
    for turn in turns:
        if not dialogues or _is_cut(dialogues[-1][-1].end, turn.start, max_gap):
            dialogues.append([])
        dialogues[-1].append(turn)
    return dialogues


def _is_cut(end: float | None, start: float | None, max_gap: float) -> bool:
    return end is not None and start is not None and start - end > max_gap
