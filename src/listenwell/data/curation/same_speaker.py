"""Predicts whether consecutive sentences have the same speaker: a linear SVM on the features of Lison & Meena (2016).

The weights are in `same_speaker.safetensors`: for each language a list of feature codes, with one weight each. They
were trained on two series (`training.py`) and contain no text: the only words are those in `word_classes.py`.
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
"""The score if the file itself tells who speaks, far beyond the scores of the model."""
MIN_LONE_DASHES = 0.1
"""If at least this share of cues has a single dash, such a dash marks a new speaker."""


@dataclass(frozen=True, slots=True)
class SameSpeakerModel:
    """A bias, and a weight for each sufficiently frequent feature code. Codes are sorted."""

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
    """For each template, one code per pair. Codes of different templates are distinct."""
    pair_features = features(cues, language)
    columns = []
    offset = 0
    for template in TEMPLATES:
        values, size = codes(pair_features, template)
        columns.append(values + offset)
        offset += size
    return columns


def same_speaker(cues: Sequence[Cue], language: str = "en") -> np.ndarray:
    """One score for each pair of consecutive cues, `len(cues) - 1` in all.

    Above 0, the second cue continues the turn of the first. If the file names both speakers, or marks every new speaker
    with a dash, that decides. Chinese has its own weights; other languages use the English ones, of which timing and
    punctuation still apply.
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
    """The numbers of the cues with a single dash, if these are common in the file.

    Most files only use dashes for two speakers in one cue, the first of whom may continue from the cue before. But some
    put a dash before every new speaker, which the model cannot know, since its training files do not.
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
