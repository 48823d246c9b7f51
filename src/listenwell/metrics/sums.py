"""From summed per-item statistics to the value of a corpus.

Every score except the diversity ones is a function of a sum over items: n-gram matches, log-likelihoods, hits. Keeping
a row for each item allows a single bootstrap implementation for all of them, and lets two systems be compared on the
corpus value itself rather than on a mean of per-sentence values.

Each function takes sums (..., k) and returns values (...): for many resamples at once, or for every item by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from listenwell.metrics.extras import need

Array = NDArray[np.float64]
Combine = Callable[[Array], Array]


def ratio(sums: Array) -> Array:
    """Columns (amount, weight): a mean or a share."""
    return sums[..., 0] / sums[..., 1]


def exp_ratio(sums: Array) -> Array:
    """Columns (negative log-likelihood, tokens): perplexity."""
    return np.exp(sums[..., 0] / sums[..., 1])


def bleu(sums: Array) -> Array:
    """Columns (matches of order 1…n, n-grams of order 1…n, reply length, reference length): unsmoothed BLEU-n.

    As in multi-bleu.perl, the value is 0 if an order has no match, or a side has no words.
    """
    order = sums.shape[-1] // 2 - 1
    matches, ngrams, (reply, reference) = sums[..., :order], sums[..., order:-2], np.moveaxis(sums[..., -2:], -1, 0)
    counts = np.asarray((matches > 0).all(axis=-1))
    # Where the result is 0 anyway, ones are used to avoid warnings from the logarithm and the division.
    precision = np.where(counts[..., None], matches, 1) / np.where(counts[..., None], ngrams, 1)
    brevity = np.minimum(0, 1 - reference / np.where(counts, reply, 1))
    return np.where(counts, 100 * np.exp(np.log(precision).mean(axis=-1) + brevity), 0)


def average_bleu(sums: Array) -> Array:
    """The columns of `bleu`: mean of BLEU-1…n."""
    order = sums.shape[-1] // 2 - 1
    cut = [[*range(n), *range(order, order + n), -2, -1] for n in range(1, order + 1)]
    return np.mean([bleu(sums[..., columns]) for columns in cut], axis=0)


def sacre_bleu(sums: Array) -> Array:
    """The columns of `bleu`, n = 4, combined by sacrebleu with its default (exponential) smoothing."""
    compute = need("sacrebleu", "BLEU").BLEU.compute_bleu
    # Integers, since sacrebleu formats the lengths as such.
    flat = np.rint(sums).astype(np.int64).reshape(-1, sums.shape[-1]).tolist()
    scores = [compute(row[:4], row[4:8], row[8], row[9], smooth_method="exp").score for row in flat]
    return np.asarray(scores).reshape(sums.shape[:-1])


def nist(sums: Array) -> Array:
    """Columns (information matched, n-grams, each of order 1…n, reply length, reference length): NIST-n.

    The brevity factor is one half if replies have two thirds of the references' words.
    """
    order = sums.shape[-1] // 2 - 1
    matched, ngrams, (reply, reference) = sums[..., :order], sums[..., order:-2], np.moveaxis(sums[..., -2:], -1, 0)
    precision = (matched / np.where(ngrams > 0, ngrams, 1)).sum(axis=-1)
    # An empty reply matches nothing, so the factor does not matter.
    share = np.clip(np.where(reply > 0, reply, 1) / np.where(reference > 0, reference, 1), None, 1)
    return precision * np.exp(np.log(0.5) / np.log(1.5) ** 2 * np.log(share) ** 2)


def _by_class(sums: Array) -> Array:
    """Splits into three groups of columns, each (..., classes): hits, predictions, golds."""
    return np.moveaxis(sums.reshape(*sums.shape[:-1], 3, -1), -2, 0)


def _class_f1(sums: Array) -> tuple[Array, Array, Array]:
    hits, predicted, gold = _by_class(sums)
    present = predicted + gold
    return 2 * hits / np.where(present > 0, present, 1), present, gold


def macro_f1(sums: Array) -> Array:
    """Columns (hits, predictions, golds, each by class): mean F1 of the classes that are predicted or gold."""
    f1, present, _ = _class_f1(sums)
    return 100 * f1.sum(axis=-1) / (present > 0).sum(axis=-1)


def macro_precision(sums: Array) -> Array:
    """The columns of `macro_f1`: mean precision of those classes; 0 for a class that is never predicted."""
    hits, predicted, gold = _by_class(sums)
    return 100 * (hits / np.where(predicted > 0, predicted, 1)).sum(axis=-1) / (predicted + gold > 0).sum(axis=-1)


def macro_recall(sums: Array) -> Array:
    """The columns of `macro_f1`: mean recall of those classes; 0 for a class that is never gold."""
    hits, predicted, gold = _by_class(sums)
    return 100 * (hits / np.where(gold > 0, gold, 1)).sum(axis=-1) / (predicted + gold > 0).sum(axis=-1)


def weighted_f1(sums: Array) -> Array:
    """The columns of `macro_f1`: mean F1 of the classes, weighted by how often each is gold."""
    f1, _, gold = _class_f1(sums)
    return 100 * (f1 * gold).sum(axis=-1) / gold.sum(axis=-1)


def weighted_precision(sums: Array) -> Array:
    """The columns of `macro_f1`: mean precision, weighted in the same way; 0 for a class that is never predicted."""
    hits, predicted, gold = _by_class(sums)
    return 100 * (hits / np.where(predicted > 0, predicted, 1) * gold).sum(axis=-1) / gold.sum(axis=-1)


def weighted_recall(sums: Array) -> Array:
    """The columns of `macro_f1`: mean recall, weighted in the same way, which is the share of hits."""
    hits, _, gold = _by_class(sums)
    return 100 * hits.sum(axis=-1) / gold.sum(axis=-1)


def calibration_error(sums: Array) -> Array:
    """Columns (confidences, hits, items, each by bin): mean gap between confidence and hits, weighted by the items."""
    confidence, hits, items = _by_class(sums)
    return 100 * np.abs(confidence - hits).sum(axis=-1) / items.sum(axis=-1)


COMBINE: dict[str, Combine] = {
    "ratio": ratio,
    "exp-ratio": exp_ratio,
    "bleu": bleu,
    "average-bleu": average_bleu,
    "sacrebleu": sacre_bleu,
    "nist": nist,
    "macro-f1": macro_f1,
    "macro-precision": macro_precision,
    "macro-recall": macro_recall,
    "calibration-error": calibration_error,
    "weighted-f1": weighted_f1,
    "weighted-precision": weighted_precision,
    "weighted-recall": weighted_recall,
}
"""By name, so that statistics read from a file know how to combine."""


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """A row of sufficient statistics for each item, and the name of the function from their sum to a value."""

    rows: Array
    combine: str

    def __post_init__(self) -> None:
        if self.combine not in COMBINE:
            raise ValueError(f"unknown combination {self.combine!r}; known: {', '.join(COMBINE)}")
        rows = np.asarray(self.rows, dtype=np.float64)
        if rows.ndim != 2:
            raise ValueError(f"statistics are an array (items, k), found {rows.ndim} dimensions")
        object.__setattr__(self, "rows", rows)

    def __len__(self) -> int:
        return len(self.rows)

    def value(self) -> float:
        """Returns the value of the whole corpus."""
        return float(COMBINE[self.combine](self.rows.sum(axis=0)))

    def each(self) -> Array:
        """(items,) the value of each item as a corpus of its own."""
        return COMBINE[self.combine](self.rows)

    def to_json(self) -> dict[str, Any]:
        return {"combine": self.combine, "rows": plain(self.rows)}

    @classmethod
    def from_json(cls, record: Any) -> Statistics:
        return cls(np.asarray(record["rows"], dtype=np.float64), record["combine"])


def plain(array: Array) -> list[Any]:
    """Returns the array as lists, with integers if possible: most statistics are counts, and "0.0" wastes space."""
    whole = np.isfinite(array).all() and bool((array == np.rint(array)).all())
    return (array.astype(np.int64) if whole else array).tolist()
