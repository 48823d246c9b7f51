"""Inter-rater agreement: Fleiss' kappa, Krippendorff's alpha, Cohen's weighted kappa.

A unit is what is judged: a reply on one scale, or a pair of replies. Its values are the judgements of its raters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import numpy as np

Level = Literal["nominal", "ordinal", "interval"]
Value = float | str
Units = Mapping[Hashable, Mapping[str, Value]]
"""By unit and rater."""


def fleiss_kappa(units: Units) -> tuple[float, int, int] | None:
    """Kappa, the number of units and the raters per unit that it is computed over; None if it is undefined.

    Fleiss' kappa needs the same number of raters for every unit, so only units with the most common number (two or
    more) are counted.
    """
    sizes = Counter(len(values) for values in units.values() if len(values) >= 2)
    if not sizes:
        return None
    raters = max(sizes, key=lambda size: (sizes[size], size))
    chosen = [list(values.values()) for values in units.values() if len(values) == raters]
    categories = sorted({str(value) for values in chosen for value in values})
    place = {category: number for number, category in enumerate(categories)}
    table = np.zeros((len(chosen), len(categories)))
    for row, values in enumerate(chosen):
        for value in values:
            table[row, place[str(value)]] += 1
    observed = ((table**2).sum(axis=1) - raters) / (raters * (raters - 1))
    shares = table.sum(axis=0) / table.sum()
    expected = float((shares**2).sum())
    if expected == 1.0:  # all raters gave the same answer to everything
        return None
    return (float(observed.mean()) - expected) / (1 - expected), len(chosen), raters


def krippendorff_alpha(units: Units, level: Level, order: Sequence[Value] = ()) -> float | None:
    """Alpha over all units with two or more values; None if no disagreement is expected by chance.

    `order` lists the values of an ordinal scale from lowest to highest; without it, numbers are in numeric order.
    """
    pairable = [list(values.values()) for values in units.values() if len(values) >= 2]
    given = {value for values in pairable for value in values}
    known = [value for value in order if value in given] if order else sorted(given, key=_number_or_text)
    if len(known) < 2:
        return None
    place = {value: number for number, value in enumerate(known)}
    coincidences = np.zeros((len(known), len(known)))
    for values in pairable:
        counts = np.zeros(len(known))
        for value in values:
            counts[place[value]] += 1
        coincidences += (np.outer(counts, counts) - np.diag(counts)) / (len(values) - 1)
    totals = coincidences.sum(axis=1)
    distance = _distances(known, totals, level)
    everything = totals.sum()
    expected = (np.outer(totals, totals) - np.diag(totals)) / (everything - 1)
    return float(1 - (coincidences * distance).sum() / (expected * distance).sum())


def _number_or_text(value: Value) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))


def _distances(values: Sequence[Value], totals: np.ndarray, level: Level) -> np.ndarray:
    """Squared differences between any two values, as Krippendorff defines them for each level."""
    size = len(values)
    if level == "nominal":
        return 1.0 - np.eye(size)
    if level == "interval":
        numbers = np.array([float(value) for value in values])
        return (numbers[:, None] - numbers[None, :]) ** 2
    # Ordinal: the number of values between the two, counting each end as half.
    below = np.concatenate([[0.0], np.cumsum(totals)])
    middle = (below[:-1] + below[1:]) / 2
    return (middle[:, None] - middle[None, :]) ** 2


def weighted_kappa(
    first: Sequence[Value], second: Sequence[Value], scale: Sequence[Value], weights: Literal["linear", "quadratic"]
) -> float | None:
    """Cohen's weighted kappa of two raters on an ordered scale; None if both always give the same single value."""
    place = {value: number for number, value in enumerate(scale)}
    table = np.zeros((len(scale), len(scale)))
    for one, other in zip(first, second, strict=True):
        table[place[one], place[other]] += 1
    steps = np.abs(np.subtract.outer(np.arange(len(scale)), np.arange(len(scale)))).astype(float)
    cost = steps if weights == "linear" else steps**2
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    at_random = float((cost * expected).sum())
    return None if at_random == 0 else float(1 - (cost * table).sum() / at_random)


def mean_over_pairs(
    units: Units, pairwise: Callable[[list[Value], list[Value]], float | None], least: int = 2
) -> tuple[float, int] | None:
    """The mean of a two-rater statistic over all pairs of raters with at least `least` units in common, weighted by
    their number of common units; and the number of pairs."""
    by_rater: dict[str, dict[Hashable, Value]] = {}
    for unit, values in units.items():
        for rater, value in values.items():
            by_rater.setdefault(rater, {})[unit] = value
    agreements = []
    for one, other in combinations(sorted(by_rater), 2):
        both = [unit for unit in by_rater[one] if unit in by_rater[other]]
        if len(both) < least:
            continue
        agreement = pairwise([by_rater[one][unit] for unit in both], [by_rater[other][unit] for unit in both])
        if agreement is not None:
            agreements.append((agreement, len(both)))
    if not agreements:
        return None
    return sum(kappa * number for kappa, number in agreements) / sum(number for _, number in agreements), len(
        agreements
    )
