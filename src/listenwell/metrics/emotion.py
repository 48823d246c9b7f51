"""Is the predicted emotion the right one? Accuracy at k, F1 and the confusion matrix, from the scores of all classes.

`scores` are probabilities or log-probabilities (items, classes): only their order matters. Ties go to the lower id.
Items whose gold id is ABSENT are left out and counted in the signature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from listenwell.metrics.bootstrap import RESAMPLES, SEED, same_length, score_with_interval
from listenwell.metrics.material import Material, UnavailableError
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Array, Statistics

ABSENT = -100
"""The gold id of items without a label. The same as contract.ABSENT, which would import torch."""


def accuracy_at(
    scores: ArrayLike, gold: ArrayLike, k: int = 1, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Score:
    """Percentage of items whose gold class is among the k highest."""
    table, target, fields = _checked(scores, gold)
    if not 1 <= k <= table.shape[1]:
        raise ValueError(f"accuracy@{k} of {table.shape[1]} classes: k is between 1 and the number of classes")
    own = table[np.arange(len(table)), target][:, None]
    ahead = (table > own) | ((table == own) & (np.arange(table.shape[1]) < target[:, None]))
    hits = ahead.sum(axis=1) < k
    statistics = Statistics(np.stack([100.0 * hits, np.ones(len(hits))], axis=1), "ratio")
    signature = Signature.of("accuracy", k=k, **fields)
    return score_with_interval(f"accuracy@{k}", statistics, signature, "higher", "%", resamples=resamples, seed=seed)


def macro_f1(scores: ArrayLike, gold: ArrayLike, *, resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """Mean F1, in percent, of the classes that are predicted or gold at least once (as scikit-learn's default)."""
    return _by_class("macro-f1", scores, gold, resamples, seed)


def macro_precision(scores: ArrayLike, gold: ArrayLike, *, resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """Mean precision, in percent, of the classes that `macro_f1` averages over; 0 for a class never predicted."""
    return _by_class("macro-precision", scores, gold, resamples, seed)


def macro_recall(scores: ArrayLike, gold: ArrayLike, *, resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """Mean recall, in percent, of the classes that `macro_f1` averages over; 0 for a class never gold."""
    return _by_class("macro-recall", scores, gold, resamples, seed)


def weighted_f1(scores: ArrayLike, gold: ArrayLike, *, resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """Mean F1 of the classes, in percent, weighted by how often each is gold."""
    return _by_class("weighted-f1", scores, gold, resamples, seed)


def weighted_precision(scores: ArrayLike, gold: ArrayLike, *, resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """Mean precision of the classes, in percent, weighted by how often each is gold; 0 for a class never predicted."""
    return _by_class("weighted-precision", scores, gold, resamples, seed)


def weighted_recall(scores: ArrayLike, gold: ArrayLike, *, resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """Mean recall of the classes, in percent, weighted by how often each is gold."""
    return _by_class("weighted-recall", scores, gold, resamples, seed)


def calibration_error(
    chances: ArrayLike, gold: ArrayLike, bins: int = 15, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Score:
    """Expected calibration error, in percent: the gap between confidence and accuracy (Guo et al. 2017).

    Items are put in bins of equal width by the probability of the predicted class; each bin's gap between the mean
    probability and the share of hits is weighted by its items. `chances` are probabilities (items, classes).
    """
    table, target, fields = _checked(chances, gold)
    if (table < 0).any() or not np.allclose(table.sum(axis=1), 1, atol=1e-3):
        raise ValueError("a calibration error is that of probabilities, which are at least 0 and sum to 1")
    confidence, hits = table.max(axis=1), table.argmax(axis=1) == target
    of_bin = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)[:, None] == np.arange(bins)
    rows = np.concatenate([of_bin * confidence[:, None], of_bin & hits[:, None], of_bin], axis=1).astype(np.float64)
    signature = Signature.of("ece", bins=bins, width="equal", **fields)
    statistics = Statistics(rows, "calibration-error")
    return score_with_interval("ece", statistics, signature, "lower", "%", resamples=resamples, seed=seed)


def confusion(scores: ArrayLike, gold: ArrayLike) -> NDArray[np.int64]:
    """(classes, classes) counts of gold class i (row) predicted as class j (column)."""
    table, target, _ = _checked(scores, gold)
    classes = table.shape[1]
    cells = np.bincount(target * classes + table.argmax(axis=1), minlength=classes * classes)
    return cells.reshape(classes, classes).astype(np.int64)


def _by_class(name: str, scores: ArrayLike, gold: ArrayLike, resamples: int, seed: int) -> Score:
    table, target, fields = _checked(scores, gold)
    classes = np.arange(table.shape[1])
    is_gold = target[:, None] == classes
    is_predicted = table.argmax(axis=1)[:, None] == classes  # argmax resolves ties to the first, the lower id
    # A single item scores 100 if right and 0 if wrong, so `items` are hits.
    rows = np.concatenate([is_gold & is_predicted, is_predicted, is_gold], axis=1).astype(np.float64)
    average, metric = name.split("-")
    signature = Signature.of(metric, average=average, **fields)
    return score_with_interval(name, Statistics(rows, name), signature, "higher", "%", resamples=resamples, seed=seed)


def _checked(scores: ArrayLike, gold: ArrayLike) -> tuple[Array, NDArray[np.int64], dict[str, Any]]:
    """Returns the scores and gold ids of the items that have gold, and their fields for the signature."""
    table = np.asarray(scores, dtype=np.float64)
    ids = np.asarray(gold)
    if table.ndim != 2:
        raise ValueError(f"scores are an array (items, classes), found shape {table.shape}")
    if ids.ndim != 1 or (ids.size and not np.issubdtype(ids.dtype, np.integer)):
        raise ValueError(f"gold is one whole number an item, found shape {ids.shape} of {ids.dtype}")
    same_length(scores=table, gold=ids)
    present = ids != ABSENT
    classes = table.shape[1]
    if len(wrong := np.flatnonzero(present & ((ids < 0) | (ids >= classes)))):
        raise ValueError(f"item {wrong[0]}: gold id {ids[wrong[0]]}, but there are {classes} classes")
    if len(wrong := np.flatnonzero(present & np.isnan(table).any(axis=1))):
        raise ValueError(f"item {wrong[0]}: a score is nan")
    if not present.any():
        raise ValueError(f"none of {len(ids)} items has a gold id")
    fields = {"classes": classes, "items": int(present.sum()), "absent": int((~present).sum()), "ties": "lower-id"}
    return table[present], ids[present].astype(np.int64), fields


def _register(name: str, measure: Callable[..., Score], about: str, k: int = 1) -> None:
    @metric(
        name, needs=["true emotions", "predicted emotions"], about=f"{about} of the emotion that the system predicts"
    )
    def compute(material: Material) -> Score:
        chances = material.get("predicted emotions")
        if k >= chances.shape[1]:
            raise UnavailableError(f"the system knows {chances.shape[1]} emotions: one is always among {k}")
        return measure(chances, material.get("true emotions"), **material.resampling)


for _k in (1, 2, 5):
    _register(f"accuracy@{_k}", partial(accuracy_at, k=_k), f"Accuracy at {_k}", _k)
_register("macro-f1", macro_f1, "Mean F1 over the classes")
_register("weighted-f1", weighted_f1, "Mean F1, weighted by how frequent a class is,")


def _register_labels(prefix: str, measure: Callable[..., Score], whose: str, chosen: str, reference: str) -> None:
    part = measure.__name__.removeprefix("weighted_")
    name, shown = f"{prefix}-{part}", "F1" if part == "f1" else part.capitalize()
    by = {"chosen labels": "system", "likeliest labels": "likeliest", "": "uniform"}[chosen]

    @metric(name, needs=[chosen or "chosen labels", reference], about=f"{shown}, weighted, of {whose}")
    def compute(material: Material) -> Score:
        gold = material.get(reference)
        labels = material.get(chosen or "chosen labels")
        if not chosen:
            count = labels.shape[1]
            labels = np.eye(count)[np.random.default_rng(0).integers(count, size=len(gold))]
        score = measure(labels, gold, **material.resampling)
        fields = {"chosen": by} | ({"reference": "machine"} if reference == "machine labels" else {})
        return replace(score, name=name, signature=score.signature.plus(**fields))


_MACHINE = "against a classifier's labels of the references"
for _prefix, _whose, _chosen in (
    ("label", "the label that the system chooses", "chosen labels"),
    ("likeliest-label", "the label that the system finds likeliest", "likeliest labels"),
    ("random-label", "a label drawn uniformly, to compare with", ""),
):
    for _measure in (weighted_precision, weighted_recall, weighted_f1):
        _register_labels(_prefix, _measure, _whose, _chosen, "reference labels")
        _register_labels(f"machine-{_prefix}", _measure, f"{_whose}, {_MACHINE}", _chosen, "machine labels")
