"""Calibration on validation data: the temperatures of classifiers, and how MEED2 chooses the label of its reply.

A classifier has one temperature per head (Guo et al., 2017): dividing all logits by one number changes no label, only
the confidence in it. MEED2's predictor has one too, and `label_scale` and `label_offset` for choosing the label of its
reply. These numbers are stored in the checkpoint and not learned in a training stage: training does not need a second
pass over the validation data, and a checkpoint stays calibrated wherever it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch.nn import functional as F

from listenwell import metrics
from listenwell.checkpoint import Checkpoint
from listenwell.classifiers.label_cache import (
    LABELLER,
    Begin,
    cached_labeller,
    label_all,
    label_contexts,
    labelled_with,
)
from listenwell.classifiers.labeller import Labeller
from listenwell.classifiers.listener import ListenerClassifier
from listenwell.data.batching import Targets, collate, encode, ordered_batches
from listenwell.data.dialogue import Example, Turn, without_annotations
from listenwell.layers.head import Head
from listenwell.metrics.emotion import ABSENT
from listenwell.metrics.extras import need
from listenwell.models.listener import HEADS

LEAST, MOST = 0.05, 20.0
"""Bounds of the search for a temperature: if the data has no errors, there is no optimum."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The effect of a temperature on the data it was fitted on."""

    temperature: float
    items: int
    nll_before: float
    nll_after: float
    ece_before: float
    ece_after: float


ROUNDS = 200
"""Iterations of the search for the best way to choose labels."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The effect of the fitted choice of reply labels on the contexts it was fitted on."""

    items: int
    labels: Literal["the corpus", "the labeller"]
    """Whose labels of the replies the choice is evaluated against."""
    f1_before: float
    """Weighted F1 of the likeliest labels, in percent."""
    f1_after: float
    accuracy_before: float
    accuracy_after: float
    temperature: float
    """The predictor's temperature that maximizes the likelihood of the labels."""
    nll_before: float
    nll_after: float


def fit_temperature(log_probs: np.ndarray, gold: np.ndarray) -> float:
    """Returns the temperature that maximizes the likelihood of the gold labels, given logits or log-probabilities
    (items, classes).

    The search is over its logarithm, between LEAST and MOST: the likelihood has a single maximum.
    """
    result = need("scipy.optimize", "calibration").minimize_scalar(
        lambda log_temperature: _nll(log_probs, gold, math.exp(log_temperature)),
        bounds=(math.log(LEAST), math.log(MOST)),
        method="bounded",
        options={"xatol": 1e-8},
    )
    return math.exp(result.x)


def tempered(log_probs: np.ndarray, temperature: float) -> np.ndarray:
    """Returns the log-probabilities after dividing all logits by the temperature."""
    scaled = log_probs / temperature
    highest = scaled.max(axis=1, keepdims=True)
    return scaled - highest - np.log(np.exp(scaled - highest).sum(axis=1, keepdims=True))


def _nll(log_probs: np.ndarray, gold: np.ndarray, temperature: float) -> float:
    return -float(tempered(log_probs, temperature)[np.arange(len(gold)), gold].mean())


def _ece(log_probs: np.ndarray, gold: np.ndarray, temperature: float) -> float:
    return metrics.calibration_error(np.exp(tempered(log_probs, temperature)), gold, resamples=0).value


def calibrate(ckpt: Checkpoint, turns: Sequence[Turn], done: Callable[[int], None] | None = None) -> Calibration:
    """Fits the temperature of a classifier's checkpoint on labelled turns, replacing any earlier one."""
    labeller = Labeller(ckpt, ckpt.model.label_set)
    ids = {name: index for index, name in enumerate(labeller.names)}
    known = [(turn.text, ids[turn.label.name]) for turn in turns if turn.label and turn.label.name in ids]
    if not known:
        raise ValueError(f"there is nothing to calibrate by: no turn has one of the {len(ids)} labels")
    labeller.model.temperature.fill_(1.0)
    gold = np.array([label for _, label in known])
    log_probs = labeller.log_probs([text for text, _ in known], done)
    temperature = fit_temperature(log_probs, gold)
    labeller.model.temperature.fill_(temperature)
    calibration = _compared(log_probs, gold, temperature)
    ckpt.meta["calibration"] = asdict(calibration)
    return calibration


def calibrate_listener(
    ckpt: Checkpoint, items: Sequence[Example], done: Callable[[int], None] | None = None
) -> dict[str, Calibration]:
    """Fits the temperature of each head of a listener's checkpoint on dialogues with labelled emotions and replies.

    A head without labels in the data gets a temperature of 1. Earlier temperatures are replaced.
    """
    listening = ListenerClassifier(ckpt)
    targets = Targets(listening.model.label_set, emotions=listening.model.emotions)
    gold = {"emotion": [targets.emotion(item) for item in items], "label": [targets.label(item) for item in items]}
    if all(label == ABSENT for labels in gold.values() for label in labels):
        raise ValueError("there is nothing to calibrate by: no dialogue has an emotion, and no reply one of the labels")
    heads = {name: listening.model.head(name) for name in HEADS}
    for head in heads.values():
        head.temperature.fill_(1.0)
    log_probs = listening.log_probs([item.context for item in items], done)
    fitted = {name: fit_head(head, log_probs[name], np.array(gold[name])) for name, head in heads.items()}
    calibrations = {name: one for name, one in fitted.items() if one is not None}
    ckpt.meta["calibration"] = {name: asdict(one) for name, one in calibrations.items()}
    return calibrations


def fit_head(head: Head, log_probs: np.ndarray, gold: np.ndarray) -> Calibration | None:
    """Fits the temperature of a head on the items that have a gold label; returns None if there are none."""
    known = gold != ABSENT
    if not known.any():
        return None
    temperature = fit_temperature(log_probs[known], gold[known])
    head.temperature.fill_(temperature)
    return _compared(log_probs[known], gold[known], temperature)


def calibrate_choice(ckpt: Checkpoint, items: Sequence[Example], begin: Begin | None = None) -> Choice:
    """Fits the temperature of a MEED2 predictor, and the choice of labels that maximizes the expected weighted F1.
    Earlier values are replaced.

    The contexts are read once, by the predictor alone; no reply is written. The labels of the replies are the corpus's
    own if they are from the model's label set, else the labeller's, as in training. The temperature is fitted to these
    labels; the choice is fitted to the predictor's probabilities alone and only evaluated against the labels.
    """
    model: Any = ckpt.model
    part = ckpt.parts.get(LABELLER)
    labels = ckpt.model.label_set
    labeller = None if part is None else cached_labeller(part, begin, labels)
    own = labelled_with(labels, (item.reply for item in items))
    if not own:
        if labeller is None or not items:
            raise ValueError(f"there is nothing to calibrate by: no reply has one of the {len(labels)} labels")
        items = label_all(items, labeller, labels)
    gold = np.array([Targets(labels).label(item) for item in items])
    labelled = [without_annotations(item) for item in items] if labeller is None else label_contexts(items, labeller)
    if model.predictor is not None:
        model.predictor.temperature.fill_(1.0)
    raw, known = _expected(ckpt, labelled, begin).double().numpy(), gold != ABSENT
    sure = _compared(raw[known], gold[known], fit_temperature(raw[known], gold[known]))
    model.predictor.temperature.fill_(sure.temperature)
    expected = torch.from_numpy(tempered(raw, sure.temperature))
    scale, offset = fit_choice(expected.exp().numpy())
    model.label_scale.copy_(torch.from_numpy(scale))
    model.label_offset.copy_(torch.from_numpy(offset))
    ways = [F.one_hot(chosen, len(labels)).numpy() for chosen in (expected.argmax(dim=-1), model.choose(expected))]
    f1 = [metrics.weighted_f1(way, gold, resamples=0).value for way in ways]
    accuracy = [metrics.accuracy_at(way, gold, resamples=0).value for way in ways]
    by: Literal["the corpus", "the labeller"] = "the corpus" if own else "the labeller"
    choice = Choice(
        items=sure.items,
        labels=by,
        f1_before=f1[0],
        f1_after=f1[1],
        accuracy_before=accuracy[0],
        accuracy_after=accuracy[1],
        temperature=sure.temperature,
        nll_before=sure.nll_before,
        nll_after=sure.nll_after,
    )
    ckpt.meta["calibration"] = asdict(choice)
    return choice


def fit_choice(chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns `scale` and `offset` (classes,): choosing argmax scale · (p − offset) maximizes the expected weighted F1
    on items with these probabilities (items, classes).

    With π a class's share of the gold labels, q its share of the choices and h the share in which both agree, its F1 is
    2h / (π + q). The objective is the sum of these, weighted by π. One more choice adds its probability p to h and 1 to
    q, which is worth π · (2p / (π + q) − 2h / (π + q)²) = 2π / (π + q) · (p − F1 / 2). Since q and h follow from the
    choices, they are found iteratively with decreasing steps (Frank-Wolfe; Narasimhan et al., 2015). The best round is
    returned; the first round chooses the likeliest classes.
    """
    share = chances.mean(axis=0)
    taken, hits = np.zeros_like(share), np.zeros_like(share)
    scale, offset = np.ones_like(share), np.zeros_like(share)
    best, fitted = -1.0, (scale, offset)
    rows = np.arange(len(chances))
    for number in range(ROUNDS):
        chosen = (scale * (chances - offset)).argmax(axis=1)
        mine = np.bincount(chosen, minlength=len(share)) / len(rows)
        right = np.bincount(chosen, weights=chances[rows, chosen], minlength=len(share)) / len(rows)
        reached = float((share * 2 * right / (share + mine)).sum())
        if reached > best:
            best, fitted = reached, (scale, offset)
        step = 2 / (number + 2)
        taken, hits = taken + step * (mine - taken), hits + step * (right - hits)
        scale, offset = 2 * share / (share + taken), hits / (share + taken)
    return fitted


def _expected(ckpt: Checkpoint, items: Sequence[Example], begin: Begin | None) -> torch.Tensor:
    """log p(label of the reply | context), (items, labels)."""
    model: Any = ckpt.model.eval()
    data = encode(items, ckpt.tokenizer, ckpt.encoding, cut_replies=True, targets=Targets(model.label_set))
    done = begin("reading", len(items)) if begin is not None else None
    expected = torch.zeros(len(items), len(model.label_set))
    for rows in ordered_batches(data.lengths()):
        with torch.inference_mode():
            expected[rows] = model.predict(collate(data, rows, ckpt.tokenizer.pad))
        if done is not None:
            done(len(rows))
    return expected


def _compared(log_probs: np.ndarray, gold: np.ndarray, temperature: float) -> Calibration:
    return Calibration(
        temperature=temperature,
        items=len(gold),
        nll_before=_nll(log_probs, gold, 1.0),
        nll_after=_nll(log_probs, gold, temperature),
        ece_before=_ece(log_probs, gold, 1.0),
        ece_after=_ece(log_probs, gold, temperature),
    )
