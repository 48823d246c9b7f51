"""How sure a classifier may be: one temperature a head, fitted on validation data (Guo et al., 2017).

Dividing all logits by one number changes no label, only the confidence in it. The number is fitted on a trained
checkpoint and kept in it, not learned in a stage: training needs no second look at validation data, and a checkpoint
that is labelled with, shipped or put into another system is calibrated wherever it goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from listenwell import metrics
from listenwell.checkpoint import Checkpoint
from listenwell.dialogue import Example, Turn
from listenwell.house.listening import Listening
from listenwell.labelling import Labeller
from listenwell.metrics.emotion import ABSENT
from listenwell.models.listener import HEADS
from listenwell.taxonomy import EMOTION_ID, LABEL_ID

LEAST, MOST = 0.05, 20.0
"""Between these a temperature is looked for: without a mistake in the data there is no best one."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the temperature did on the data it was fitted on."""

    temperature: float
    items: int
    nll_before: float
    nll_after: float
    ece_before: float
    ece_after: float


def fit_temperature(log_probs: np.ndarray, gold: np.ndarray) -> float:
    """The temperature at which the gold labels are likeliest, given logits or log-probabilities (items, classes).

    By golden section over its logarithm: the likelihood has one maximum.
    """
    ratio = (math.sqrt(5) - 1) / 2
    low, high = math.log(LEAST), math.log(MOST)
    while high - low > 1e-6:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if _nll(log_probs, gold, math.exp(left)) < _nll(log_probs, gold, math.exp(right)):
            high = right
        else:
            low = left
    return math.exp((low + high) / 2)


def tempered(log_probs: np.ndarray, temperature: float) -> np.ndarray:
    """The log-probabilities of all logits divided by the temperature."""
    scaled = log_probs / temperature
    highest = scaled.max(axis=1, keepdims=True)
    return scaled - highest - np.log(np.exp(scaled - highest).sum(axis=1, keepdims=True))


def _nll(log_probs: np.ndarray, gold: np.ndarray, temperature: float) -> float:
    return -float(tempered(log_probs, temperature)[np.arange(len(gold)), gold].mean())


def _ece(log_probs: np.ndarray, gold: np.ndarray, temperature: float) -> float:
    return metrics.calibration_error(np.exp(tempered(log_probs, temperature)), gold, resamples=0).value


def calibrate(made: Checkpoint, turns: Sequence[Turn], done: Callable[[int], None] | None = None) -> Calibration:
    """Sets the temperature of a classifier's checkpoint by labelled turns; an earlier temperature is forgotten."""
    labeller = Labeller(made, made.model.label_set)
    ids = {name: index for index, name in enumerate(labeller.names)}
    known = [(turn.text, ids[turn.label.name]) for turn in turns if turn.label and turn.label.name in ids]
    if not known:
        raise ValueError(f"there is nothing to calibrate by: no turn has one of the {len(ids)} labels")
    labeller.model.temperature.fill_(1.0)
    gold = np.array([label for _, label in known])
    log_probs = labeller.log_probs([text for text, _ in known], done)
    temperature = fit_temperature(log_probs, gold)
    labeller.model.temperature.fill_(temperature)
    found = _compared(log_probs, gold, temperature)
    made.meta["calibration"] = asdict(found)
    return found


def calibrate_listener(
    made: Checkpoint, items: Sequence[Example], done: Callable[[int], None] | None = None
) -> dict[str, Calibration]:
    """Sets the temperature of each head of a listener's checkpoint by dialogues whose emotion and replies are labelled.

    A head that the data has no label for keeps a temperature of 1. Earlier temperatures are forgotten.
    """
    gold = {"emotion": [gold_emotion(item) for item in items], "label": [gold_label(item) for item in items]}
    if all(label == ABSENT for labels in gold.values() for label in labels):
        raise ValueError("there is nothing to calibrate by: no dialogue has an emotion, and no reply one of the labels")
    listening = Listening(made)
    heads = {name: listening.model.head(name) for name in HEADS}
    for head in heads.values():
        head.temperature.fill_(1.0)
    log_probs = listening.log_probs([item.context for item in items], done)
    found = {}
    for name, head in heads.items():
        labels = np.array(gold[name])
        known = labels != ABSENT
        if known.any():
            temperature = fit_temperature(log_probs[name][known], labels[known])
            head.temperature.fill_(temperature)
            found[name] = _compared(log_probs[name][known], labels[known], temperature)
    made.meta["calibration"] = {name: asdict(one) for name, one in found.items()}
    return found


def gold_emotion(item: Example) -> int:
    return EMOTION_ID.get(item.emotion.name, ABSENT) if item.emotion else ABSENT


def gold_label(item: Example) -> int:
    return LABEL_ID.get(item.reply.label.name, ABSENT) if item.reply and item.reply.label else ABSENT


def _compared(log_probs: np.ndarray, gold: np.ndarray, temperature: float) -> Calibration:
    return Calibration(
        temperature=temperature,
        items=len(gold),
        nll_before=_nll(log_probs, gold, 1.0),
        nll_after=_nll(log_probs, gold, temperature),
        ece_before=_ece(log_probs, gold, 1.0),
        ece_after=_ece(log_probs, gold, temperature),
    )
