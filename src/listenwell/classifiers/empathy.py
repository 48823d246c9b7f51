"""Predicts how much empathy replies show, with a trained EPITOME classifier on pairs of a post and a reply.

>>> EmpathyClassifier.load("epitome").expected([("I lost my job today", "I am so sorry. What happened?")]).round(1)
array([[1.7, 0.3, 1. ]])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint, HasCheckpoint
from listenwell.classifiers.calibration import Calibration, fit_head
from listenwell.contract import ABSENT
from listenwell.data.batching import collate, encode, label_id_in, ordered_batches
from listenwell.data.dialogue import Example, Turn
from listenwell.labels.empathy import LEVELS, MECHANISMS
from listenwell.labels.sets import EMPATHY
from listenwell.models.epitome import Epitome, levels_of
from listenwell.weights import find

DEFAULT = "epitome"

Pair = tuple[str, str]
"""A post, or the turn being answered, and the reply to it."""


def judges_empathy(ckpt: Checkpoint) -> bool:
    """Whether a checkpoint is a classifier of empathy."""
    return isinstance(ckpt.model, Epitome)


class EmpathyClassifier(HasCheckpoint):
    """An EPITOME classifier with its tokenizer."""

    def __init__(self, ckpt: Checkpoint) -> None:
        if not isinstance(ckpt.model, Epitome):
            raise ValueError(f"{ckpt.name} does not judge the empathy of replies; {DEFAULT} does")
        self.name = ckpt.name
        self.checkpoint = ckpt
        self.model: Epitome = ckpt.model.eval()

    @classmethod
    def load(cls, name_or_path: str | Path = DEFAULT) -> EmpathyClassifier:
        """Loads a trained classifier by name, or from the folder of a run or checkpoint."""
        return cls(checkpoint.load(find(name_or_path)))

    def log_probs(self, pairs: Sequence[Pair], done: Callable[[int], None] | None = None) -> np.ndarray:
        """(pairs, mechanisms, levels) log p(level | post, reply), calibrated if the classifier is.

        Texts are truncated as in training; duplicate pairs are read once; `done` is called with the number of pairs
        just finished.
        """
        times = Counter(pairs)
        distinct = {pair: row for row, pair in enumerate(times)}
        items = [
            Example(str(row), (Turn("speaker", post),), Turn("listener", reply))
            for (post, reply), row in distinct.items()
        ]
        data = encode(items, self.checkpoint.tokenizer, self.checkpoint.encoding, cut_replies=True)
        table, number = np.zeros((len(distinct), len(MECHANISMS), len(LEVELS))), list(times.values())
        for rows in ordered_batches(data.lengths()):
            batch = collate(data, rows, self.checkpoint.tokenizer.pad)
            with torch.inference_mode():
                table[rows] = self.model.level_log_probs(batch).double().numpy()
            if done is not None:
                done(sum(number[row] for row in rows))
        return table[[distinct[pair] for pair in pairs]]

    def distribution(self, pairs: Sequence[Pair], done: Callable[[int], None] | None = None) -> np.ndarray:
        """(pairs, mechanisms, levels) p(level | post, reply)."""
        return np.exp(self.log_probs(pairs, done))

    def expected(self, pairs: Sequence[Pair], done: Callable[[int], None] | None = None) -> np.ndarray:
        """(pairs, mechanisms) the expected level, from 0 (none) to 2 (strong)."""
        return expected_levels(self.distribution(pairs, done))

    def choose(self, log_probs: np.ndarray) -> np.ndarray:
        """(pairs, mechanisms) the level chosen from `log_probs`; rare levels are chosen from a lower probability on.

        Levels are weighted as in training; the likeliest level would almost never be a rare one.
        """
        return (log_probs + self.model.log_weights.double().numpy()).argmax(axis=-1)


def expected_levels(chances: np.ndarray) -> np.ndarray:
    """Σ level · p(level): (…, levels) to (…,), from 0 to 2."""
    return chances @ np.arange(len(LEVELS), dtype=np.float64)


def gold_levels(items: Sequence[Example]) -> np.ndarray:
    """(items, mechanisms) the levels that people gave the replies; ABSENT if there is none."""
    labels = [label_id_in(EMPATHY, None if item.reply is None else item.reply.label) for item in items]
    return levels_of(torch.tensor(labels, dtype=torch.long)).numpy()


def pair_of(item: Example) -> Pair:
    """Returns the turn being answered and the reply in the data."""
    if not item.context or item.reply is None:
        raise ValueError(f"{item.id}: empathy is judged in a reply to a post, and one of them is missing")
    return item.context[-1].text, item.reply.text


def calibrate_empathy(
    ckpt: Checkpoint, items: Sequence[Example], done: Callable[[int], None] | None = None
) -> dict[str, Calibration]:
    """Fits the temperature of each head on pairs that people rated, replacing earlier temperatures."""
    gold = gold_levels(items)
    if (gold == ABSENT).all():
        raise ValueError("there is nothing to calibrate by: no reply has levels of empathy (epitome, part levels)")
    classifier = EmpathyClassifier(ckpt)
    heads = [classifier.model.head(name) for name in MECHANISMS]
    for head in heads:
        head.temperature.fill_(1.0)
    log_probs = classifier.log_probs([pair_of(item) for item in items], done)
    fitted = [fit_head(head, log_probs[:, index], gold[:, index]) for index, head in enumerate(heads)]
    calibrations = {name: one for name, one in zip(MECHANISMS, fitted, strict=True) if one is not None}
    ckpt.meta["calibration"] = {name: asdict(one) for name, one in calibrations.items()}
    return calibrations
