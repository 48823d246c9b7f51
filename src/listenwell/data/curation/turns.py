"""From cues to turns, and from turns to dialogues."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from listenwell.data.curation.cues import Cue, CueTurn

MAX_GAP = 5.0
"""Seconds of silence after which another dialogue begins."""


def split_dashes(cues: Sequence[Cue]) -> list[Cue]:
    """Cues in which dashes mark several speakers, as one cue per speaker, with their share of the time."""
    raise NotImplementedError


def turns_from_cues(cues: Sequence[Cue], scores: np.ndarray, max_gap: float = MAX_GAP) -> list[CueTurn]:
    """Joins consecutive cues whose score is above 0. A gap of more than `max_gap` seconds always ends a turn."""
    raise NotImplementedError


def cut_dialogues(turns: Sequence[CueTurn], max_gap: float = MAX_GAP) -> list[list[CueTurn]]:
    """Cuts where more than `max_gap` seconds pass between two turns. Where a timestamp is missing, they stay together."""
    raise NotImplementedError
