"""EPITOME's classifier as a machine rater in studies. It judges only what it was trained on.

It predicts three things about a reply: the levels of emotional reaction, interpretation and exploration. So it answers

- the `epitome` scales, which ask for exactly that: with the predicted level of each;
- an empathy scale from 1 to 5 (mime, dual-emp): with the sum of the three expected levels, 0 to 6, mapped linearly to
  the points. People use the scale differently, so the order of its ratings is meaningful but their height is not;
- which of two replies is better: with the one that has more empathy by that sum. It does not see whether a reply fits
  the context or is good English.

It refuses all other questions, and all languages other than the one it was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from listenwell.classifiers.empathy import EmpathyClassifier, Pair, expected_levels
from listenwell.labels.empathy import LEVELS, MECHANISMS
from listenwell.studies.kinds import LEFT, RIGHT, TIE, Kind, Scale

EMPATHY_SCALE = "empathy"
MOST = (len(LEVELS) - 1) * len(MECHANISMS)
"""The highest possible sum of levels."""
EQUAL = 0.3
"""Two sums of expected levels (0 to 6) that differ by no more than this are a tie."""


@dataclass(frozen=True, slots=True)
class EmpathyJudge:
    name: str
    classifier: EmpathyClassifier

    @property
    def languages(self) -> Sequence[str]:
        return self.classifier.checkpoint.languages

    def judge(self, kind: Kind, items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        self._check(kind)
        pairs: list[Pair] = [
            (item["context"][-1]["text"], reply["text"]) for item in items for reply in item["replies"]
        ]
        if not pairs:
            return []
        log_probs = self.classifier.log_probs(pairs)
        levels, sums = self.classifier.choose(log_probs), expected_levels(np.exp(log_probs)).sum(axis=1)
        answers, first = [], 0
        for item in items:
            rows = slice(first, first + len(item["replies"]))
            answers.append(self._answer(kind, item, levels[rows], sums[rows]))
            first = rows.stop
        return answers

    def _check(self, kind: Kind) -> None:
        if kind.name == "ab" or (kind.name == "likert" and self._own_scales(kind)):
            return
        raise ValueError(
            f"{self.name} judges emotional reactions, interpretations and explorations, and this {kind.name} study "
            "asks for none of them; it rates likert studies with --scales epitome, mime or dual-emp, and ab studies"
        )

    @staticmethod
    def _own_scales(kind: Kind) -> list[Scale]:
        return [scale for scale in kind.scales if scale.key in (*MECHANISMS, EMPATHY_SCALE)]

    def _answer(self, kind: Kind, item: Mapping[str, Any], levels: np.ndarray, sums: np.ndarray) -> Mapping[str, Any]:
        if kind.name == "ab":
            gap = float(sums[0] - sums[1])
            return {"choice": TIE if abs(gap) <= EQUAL else LEFT if gap > 0 else RIGHT}
        keys, scales = [reply["key"] for reply in item["replies"]], self._own_scales(kind)
        return {
            key: {scale.key: _points(scale, levels[row], float(sums[row])) for scale in scales}
            for row, key in enumerate(keys)
        }


def _points(scale: Scale, levels: np.ndarray, total: float) -> int:
    if scale.key in MECHANISMS:
        return int(levels[MECHANISMS.index(scale.key)])
    return round(scale.min + total / MOST * (scale.max - scale.min))
