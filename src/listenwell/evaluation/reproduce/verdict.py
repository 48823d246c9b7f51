"""Compares published with measured numbers, by a rule that was fixed before anything was measured.

- *reproduced*: the published number lies within the measured 95 % interval, or the measured number differs from it by
  at most 5 % of the published one.
- *better*, *worse*: neither holds, and the measured number is on the better or the worse side.
- *not possible here*: with the reason.
- *not yet measured*: it can be measured, but has not been.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean
from typing import Literal

from listenwell.metrics.score import Score

TOLERANCE = 0.05

Verdict = Literal["reproduced", "better", "worse", "not possible here", "not yet measured"]


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured number: from one run, or the mean over several seeds."""

    value: float
    low: float | None
    high: float | None
    better: Literal["higher", "lower"]
    seeds: int = 1

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Measured:
        """A single score with its interval, or the mean of several with the range of their intervals."""
        lows = [score.low for score in scores if score.low is not None]
        highs = [score.high for score in scores if score.high is not None]
        value = fmean(score.value for score in scores)
        if len(scores) > 1 and not lows:
            lows, highs = [score.value for score in scores], [score.value for score in scores]
        return cls(value, min(lows, default=None), max(highs, default=None), scores[0].better, len(scores))


def judge(published: Decimal, measured: Measured) -> Verdict:
    stated = float(published)
    inside = measured.low is not None and measured.high is not None and measured.low <= stated <= measured.high
    if inside or abs(measured.value - stated) <= TOLERANCE * abs(stated):
        return "reproduced"
    higher = measured.value > stated
    return "better" if higher == (measured.better == "higher") else "worse"
