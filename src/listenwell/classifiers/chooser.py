"""Scores how well replies fit their dialogues, with a trained chooser.

>>> chooser = ReplyChooser.load("house-chooser")
>>> context = (Turn("speaker", "My dog died last night."),)
>>> chooser.fit([(context, "I am so sorry. She must have been dear to you."), (context, "That's awesome!")]).argmax()
0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint, HasCheckpoint
from listenwell.data.batching import collate, encode, ordered_batches
from listenwell.data.dialogue import Example, Turn
from listenwell.models.chooser import Chooser
from listenwell.weights import find

DEFAULT = "house-chooser"

Pair = tuple[tuple[Turn, ...], str]
"""A dialogue that ends with the speaker, and a reply to it."""


def chooses(ckpt: Checkpoint) -> bool:
    """Whether a checkpoint is a chooser."""
    return isinstance(ckpt.model, Chooser)


class ReplyChooser(HasCheckpoint):
    """A chooser with its tokenizer."""

    def __init__(self, ckpt: Checkpoint) -> None:
        if not isinstance(ckpt.model, Chooser):
            raise ValueError(f"{ckpt.name} does not choose among replies; {DEFAULT} does")
        self.name = ckpt.name
        self.checkpoint = ckpt
        self.model: Chooser = ckpt.model.eval()

    @classmethod
    def load(cls, name_or_path: str | Path = DEFAULT) -> ReplyChooser:
        """Loads a trained chooser by name, or from the folder of a run or checkpoint."""
        return cls(checkpoint.load(find(name_or_path)))

    def fit(self, pairs: Sequence[Pair], done: Callable[[int], None] | None = None) -> np.ndarray:
        """Returns scores (pairs,), higher if the reply fits better; see models/chooser.py. Turn labels are not read."""
        items = [
            Example(str(row), tuple(replace(turn, label=None) for turn in context), Turn("listener", reply))
            for row, (context, reply) in enumerate(pairs)
        ]
        data = encode(items, self.checkpoint.tokenizer, self.checkpoint.encoding, cut_replies=True)
        fits = np.zeros(len(items))
        for rows in ordered_batches(data.lengths()):
            with torch.inference_mode():
                fits[rows] = self.model.fit(collate(data, rows, self.checkpoint.tokenizer.pad)).double().numpy()
            if done is not None:
                done(len(rows))
        return fits
