"""Means, shares, significance tests and their correction, for a report's tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval, or without one if there are too few judgements."""

    value: float
    low: float | None = None
    high: float | None = None
    number: int = 0
    """The number of items behind it."""


def mean_of_items(values: Sequence[float]) -> Estimate | None:
    """The mean over items, each the mean over its raters, with Student's t interval.

    Items are the unit of analysis, because raters of the same item are not independent.
    """
    if not values:
        return None
    array = np.asarray(values, dtype=float)
    mean = float(array.mean())
    if len(array) < 2:
        return Estimate(mean, number=len(array))
    margin = float(stats.t.ppf(1 - ALPHA / 2, len(array) - 1) * array.std(ddof=1) / math.sqrt(len(array)))
    return Estimate(mean, mean - margin, mean + margin, len(array))


def share(count: int, total: int) -> Estimate | None:
    """A share with Wilson's interval."""
    if not total:
        return None
    z = float(stats.norm.ppf(1 - ALPHA / 2))
    p = count / total
    centre = (p + z * z / (2 * total)) / (1 + z * z / total)
    margin = z / (1 + z * z / total) * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total))
    return Estimate(p, max(0.0, centre - margin), min(1.0, centre + margin), total)


def paired_t(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The p-value of a paired t-test over items; None if the differences do not vary or there are fewer than two."""
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    if len(differences) < 2 or not differences.std(ddof=1) > 0:
        return None
    statistic = differences.mean() / (differences.std(ddof=1) / math.sqrt(len(differences)))
    return float(2 * stats.t.sf(abs(statistic), len(differences) - 1))


def sign_test(wins: int, losses: int) -> float | None:
    """The p-value of an exact two-sided sign test, without ties; None if there are neither wins nor losses."""
    return float(stats.binomtest(wins, wins + losses, 0.5).pvalue) if wins + losses else None


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction over the tests that have a p-value; the others stay None."""
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(tested):
        largest = max(largest, min(1.0, p * (len(tested) - rank)))
        adjusted[place] = largest
    return adjusted
