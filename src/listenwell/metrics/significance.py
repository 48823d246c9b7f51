"""Is one system better than another? Tests between two scores of one name: paired on the same items, and Welch's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from listenwell.metrics.bootstrap import RESAMPLES, SEED, percentiles, resampled_sums
from listenwell.metrics.extras import need
from listenwell.metrics.score import Better, Score, Signature
from listenwell.metrics.sums import COMBINE, Array, Statistics


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a test between two systems."""

    name: str
    difference: float
    """The first minus the second."""
    low: float
    """Lower end of the 95 % interval of the difference."""
    high: float
    p: float
    """Two-sided."""
    items: int
    better: Better
    signature: Signature

    def winner(self, alpha: float = 0.05) -> int | None:
        """Returns the index of the better system, 0 or 1; None if p is not below `alpha`."""
        if self.p >= alpha or self.difference == 0:
            return None
        return int((self.difference > 0) != (self.better == "higher"))

    def __str__(self) -> str:
        return f"{self.difference:+.2f} [{self.low:+.2f}, {self.high:+.2f}], p = {self.p:.3g}"


def paired_bootstrap(first: Score, second: Score, *, resamples: int = RESAMPLES, seed: int = SEED) -> Comparison:
    """Resamples both systems on the same items; the difference is that of the corpus values.

    p is how often the resampled difference, shifted to mean 0 as if the systems were equal, is at least as large as the
    observed one, with one added to both counts (Riezler and Maxwell 2005, as in sacrebleu).
    """
    if resamples < 1:
        raise ValueError(f"a bootstrap needs at least one resample, found {resamples}")
    items = _pairable(first, second)
    one, other = _statistics(first), _statistics(second)
    if one.combine != other.combine or one.rows.shape[1] != other.rows.shape[1]:
        raise ValueError(
            f"{first.name}: the statistics of the two differ in kind "
            f"({one.combine}, {one.rows.shape[1]} columns; {other.combine}, {other.rows.shape[1]} columns)"
        )
    sums = resampled_sums(np.concatenate([one.rows, other.rows], axis=1), resamples, seed)
    combine, columns = COMBINE[one.combine], one.rows.shape[1]
    differences = combine(sums[:, :columns]) - combine(sums[:, columns:])
    seen = one.value() - other.value()
    # A small tolerance, so that rounding does not make equal systems look different.
    extreme = np.abs(differences - differences.mean()) >= abs(seen) - 1e-12
    low, high = percentiles(differences)
    p = float((extreme.sum() + 1) / (resamples + 1))
    signature = Signature.of("paired-bootstrap", score=first.name, items=items, bs=resamples, rs=seed)
    return Comparison(first.name, seen, low, high, p, items, first.better, signature)


def paired_t_test(first: Score, second: Score) -> Comparison:
    """Student's paired t-test on the items; the difference is that of their means.

    For a mean, that is the difference of the values. For BLEU or F1 it is not: use the bootstrap to test the corpus
    value. Perplexities are compared as logarithms, that is, as differences of mean log-likelihood: otherwise a single
    improbable reply would decide.
    """
    items = _pairable(first, second)
    one, other, on = _samples(first, second)
    differences = one - other
    low, high, p = _t(differences)
    signature = Signature.of("paired-t", score=first.name, on=on, items=items)
    return Comparison(first.name, float(differences.mean()), low, high, p, items, first.better, signature)


def welch_t_test(first: Score, second: Score) -> Comparison:
    """Welch's t-test on the items, which need not be the same or equally many; the difference is that of the means.

    On the same items, a paired test is more powerful. Perplexities are compared as logarithms, as in `paired_t_test`.
    """
    _one_name(first, second)
    one, other, on = _samples(first, second)
    low, high, p = _welch(one, other)
    signature = Signature.of("welch-t", score=first.name, on=on, items=len(one), others=len(other))
    difference = float(one.mean() - other.mean())
    return Comparison(first.name, difference, low, high, p, len(one) + len(other), first.better, signature)


def _samples(first: Score, second: Score) -> tuple[Array, Array, str]:
    """Returns the items of both scores as a t-test compares them, and their name for the signature."""
    if first.items is None or second.items is None:
        raise ValueError(_no_items(first if first.items is None else second))
    if (fewest := min(len(first.items), len(second.items))) < 2:
        raise ValueError(f"{first.name}: a t-test needs at least 2 items, found {fewest}")
    if first.statistics is not None and first.statistics.combine == "exp-ratio":
        return np.log(first.items), np.log(second.items), "log-items"
    return first.items, second.items, "items"


def _welch(one: Array, other: Array) -> tuple[float, float, float]:
    """Returns the interval of the difference of the means, and p under the hypothesis that it is 0."""
    difference = float(one.mean() - other.mean())
    if np.ptp(one) == 0 and np.ptp(other) == 0:  # no variance: scipy would divide by it
        return difference, difference, 1.0 if difference == 0 else 0.0
    result = need("scipy.stats", "Welch's t-test").ttest_ind(one, other, equal_var=False)
    interval = result.confidence_interval(0.95)
    return float(interval.low), float(interval.high), float(result.pvalue)


def _t(differences: Array) -> tuple[float, float, float]:
    """Returns the interval of the mean, and p under the hypothesis that it is 0."""
    mean = float(differences.mean())
    if np.ptp(differences) == 0:  # no variance: scipy would divide by it
        return mean, mean, 1.0 if mean == 0 else 0.0
    result = need("scipy.stats", "the paired t-test").ttest_1samp(differences, 0.0)
    interval = result.confidence_interval(0.95)
    return float(interval.low), float(interval.high), float(result.pvalue)


def _pairable(first: Score, second: Score) -> int:
    """Returns the common number of items; raises ValueError if the scores cannot be paired."""
    _one_name(first, second)
    one, other = len(_statistics(first)), len(_statistics(second))
    if one != other:
        raise ValueError(f"{first.name}: a paired test needs the same items, found {one} and {other}")
    return one


def _one_name(first: Score, second: Score) -> None:
    if first.name != second.name:
        raise ValueError(f"a test compares one score of two systems, found {first.name!r} and {second.name!r}")


def _statistics(score: Score) -> Statistics:
    """Returns what to resample: the score's own statistics, else its items as a plain mean."""
    if score.statistics is not None:
        return score.statistics
    if score.items is None:
        raise ValueError(_no_items(score))
    return Statistics(np.stack([score.items, np.ones(len(score.items))], axis=1), "ratio")


def _no_items(score: Score) -> str:
    return f"{score.name} ({score.signature}) has no per-item values, which a paired test needs"
