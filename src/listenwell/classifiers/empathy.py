"""How much empathy replies show, by a trained EPITOME classifier: pairs of a post and a reply, batched, to levels.

>>> EmpathyClassifier.load("epitome").expected([("I lost my job today", "I am so sorry. What happened?")]).round(1)
array([[1.2, 0.1, 1.8]])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint, HasCheckpoint
from listenwell.data.batching import collate, encode, ordered_batches
from listenwell.data.dialogue import Example, Turn
from listenwell.labels.empathy import LEVELS, MECHANISMS
from listenwell.models.epitome import Epitome
from listenwell.weights import find

DEFAULT = "epitome"

Pair = tuple[str, str]
"""A post, or the turn that is answered, and the reply to it."""


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
        """A trained classifier by name, or by the folder of a run or checkpoint."""
        return cls(checkpoint.load(find(name_or_path)))

    def log_probs(self, pairs: Sequence[Pair], done: Callable[[int], None] | None = None) -> np.ndarray:
        """(pairs, mechanisms, levels) log p(level | post, reply), calibrated where the classifier is.

        Texts are cut where they were cut in training; equal pairs are read once; `done` is called with how many more
        are ready.
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


def expected_levels(chances: np.ndarray) -> np.ndarray:
    """Σ level · p(level): (…, levels) to (…,), from 0 to 2."""
    return chances @ np.arange(len(LEVELS), dtype=np.float64)
