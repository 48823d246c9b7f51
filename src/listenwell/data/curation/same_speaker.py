"""Whether consecutive sentences are said by the same speaker: a linear SVM over the features of Lison & Meena (2016).

The weights are `same_speaker.safetensors`: for each language a list of feature codes and one weight for each. They were
learned from two series (`training.py`) and hold no text: the only words are those of `word_classes.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from safetensors import safe_open

from listenwell.data.curation.cues import Cue
from listenwell.data.curation.speaker_features import TEMPLATES, codes, features

WEIGHTS = Path(__file__).with_name("same_speaker.safetensors")
LANGUAGES = ("en", "zh")
CERTAIN = 10.0
"""The score where the file itself tells who speaks: far beyond what the model gives."""
MIN_LONE_DASHES = 0.1
"""The share of cues with a single dash from which on such a dash means that somebody else begins."""


@dataclass(frozen=True, slots=True)
class SameSpeakerModel:
    """A weight for each feature code that was seen often enough, and a bias. Codes are sorted."""

    codes: np.ndarray
    weights: np.ndarray
    bias: float

    def scores(self, cues: Sequence[Cue], language: str) -> np.ndarray:
        if len(cues) < 2:
            return np.zeros(0)
        total = np.full(len(cues) - 1, self.bias)
        for column in feature_codes(cues, language):
            place = np.minimum(np.searchsorted(self.codes, column), len(self.codes) - 1)
            total += np.where(self.codes[place] == column, self.weights[place], 0.0)
        return total


def feature_codes(cues: Sequence[Cue], language: str) -> list[np.ndarray]:
    """For each template one code per pair. No two templates share a code."""
    pair_features = features(cues, language)
    columns = []
    offset = 0
    for template in TEMPLATES:
        values, size = codes(pair_features, template)
        columns.append(values + offset)
        offset += size
    return columns


def same_speaker(cues: Sequence[Cue], language: str = "en") -> np.ndarray:
    """One score for each two consecutive cues, `len(cues) - 1` in all.

    Above 0, the second goes on with the first's turn. Where the file names both speakers, or begins every speaker with
    a dash, that decides. Chinese has its own weights; other languages are read with the English ones, of which timing
    and punctuation still apply.
    """
    language = language if language in LANGUAGES else "en"
    scores = shipped_model(language).scores(cues, language)
    begins = _beginning_speakers(cues)
    for index, (before, after) in enumerate(pairwise(cues)):
        if before.speaker and after.speaker:
            scores[index] = CERTAIN if before.speaker == after.speaker else -CERTAIN
        elif after.number in begins and after.dash:
            scores[index] = -CERTAIN
    return scores


def _beginning_speakers(cues: Sequence[Cue]) -> set[int]:
    """The cues with a single dash, in a file where these are common.

    Most files use dashes only for two speakers in one cue, and the first of them may go on from the cue before. But
    some put a dash wherever somebody else begins. The files that the model learned from do not, so it cannot know.
    """
    dashes = Counter(cue.number for cue in cues if cue.dash)
    alone = {number for number, count in dashes.items() if count == 1}
    return alone if len(alone) >= MIN_LONE_DASHES * len({cue.number for cue in cues}) else set()


@cache
def shipped_model(language: str) -> SameSpeakerModel:
    with safe_open(WEIGHTS, framework="numpy") as file:
        about = json.loads(file.metadata()["about"])
        if about["templates"] != list(TEMPLATES):
            raise ValueError(f"{WEIGHTS.name} was trained with other features: run listenwell.data.curation.training")
        return SameSpeakerModel(
            file.get_tensor(f"{language}.codes"),
            file.get_tensor(f"{language}.weights").astype(np.float64),
            float(about["bias"][language]),
        )
