"""Confidence intervals by the percentile bootstrap over items, from per-item sufficient statistics.

An item is one reply. Replies of one dialogue are not quite independent, so the intervals are a little too narrow; this
affects all rows of a table alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import COMBINE, Array, Combine, Statistics

RESAMPLES = 1000
SEED = 12345

BLOCK_CELLS = 4_000_000
"""Number of drawn indices held at once: 32 MB, whatever the corpus."""


def resampled_sums(rows: Array, resamples: int = RESAMPLES, seed: int = SEED) -> Array:
    """(resamples, k): the column sums of bootstrap samples, each as large as the corpus, drawn with replacement.

    The draw depends only on the seed and the number of items, so two systems scored on the same items are resampled
    alike.
    """
    items = len(rows)
    if not items:
        raise ValueError("no items to resample")
    generator = np.random.default_rng(seed)
    blocks = []
    for size in _blocks(resamples, max(1, BLOCK_CELLS // items)):
        drawn = generator.integers(0, items, size=(size, items))
        # The count of each item times its row is one matrix product instead of a gather of every row.
        times = np.stack([np.bincount(row, minlength=items) for row in drawn]).astype(np.float64)
        blocks.append(times @ rows)
    return np.concatenate(blocks) if blocks else np.empty((0, rows.shape[1]))


def _blocks(total: int, size: int) -> Iterator[int]:
    for start in range(0, total, size):
        yield min(size, total - start)


def bootstrap_interval(
    rows: Array, value: Combine, *, resamples: int = RESAMPLES, seed: int = SEED, level: float = 0.95
) -> tuple[float, float]:
    """Returns the interval of `value`, a function of summed statistics (..., k) -> (...), over rows (items, k)."""
    return percentiles(value(resampled_sums(np.asarray(rows, dtype=np.float64), resamples, seed)), level)


def percentiles(values: Array, level: float = 0.95) -> tuple[float, float]:
    """Returns the bounds of the central `level` part of `values`."""
    if not 0 < level < 1:
        raise ValueError(f"a level is between 0 and 1, found {level}")
    if not values.size:
        raise ValueError("an interval needs at least one resample")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def score_with_interval(
    name: str,
    statistics: Statistics,
    signature: Signature,
    better: Literal["higher", "lower"],
    unit: Literal["%", ""] = "",
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Score:
    """Returns the score of `statistics` with its interval. Without resamples, or with one item, there is none."""
    if not len(statistics):
        raise ValueError(f"{name}: no items to score")
    low: float | None = None
    high: float | None = None
    interval: dict[str, Any] = {"ci": "none"}
    if resamples > 0 and len(statistics) > 1:
        low, high = bootstrap_interval(statistics.rows, COMBINE[statistics.combine], resamples=resamples, seed=seed)
        interval = {"bs": resamples, "rs": seed}
    return Score(
        name=name,
        value=statistics.value(),
        low=low,
        high=high,
        items=statistics.each(),
        signature=signature.plus(**interval),
        better=better,
        unit=unit,
        statistics=statistics,
    )


def same_length(**parts: Any) -> int:
    """Returns the common length of all parts; raises ValueError if they differ."""
    lengths = {name: len(part) for name, part in parts.items() if part is not None}
    if len(set(lengths.values())) > 1:
        raise ValueError("as many of each are needed, found " + ", ".join(f"{n} {name}" for name, n in lengths.items()))
    return next(iter(lengths.values()))
