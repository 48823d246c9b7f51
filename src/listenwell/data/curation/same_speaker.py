"""Whether consecutive cues are said by the same speaker: a linear model over the features of Lison & Meena (2016)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from listenwell.data.curation.cues import Cue


def same_speaker(cues: Sequence[Cue], language: str = "en") -> np.ndarray:
    """One score for each two consecutive cues, `len(cues) - 1` in all: above 0, the second goes on with the first's turn."""
    raise NotImplementedError
