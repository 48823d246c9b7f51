"""Labels utterances with a trained classifier: texts, or every turn of a corpus.

>>> Labeller.load("emotion-intent").label(["I lost my job today"])
[Label(name='sad', by='machine', confidence=0.31)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint, HasCheckpoint
from listenwell.classifiers.label_cache import Labels
from listenwell.data.batching import collate, encode, ordered_batches
from listenwell.data.dialogue import Dialogue, Example, Label, Turn
from listenwell.labels.sets import EMOTION_INTENT, LabelSet, label_set
from listenwell.weights import find

DEFAULT = "emotion-intent"
BLOCK = 512
"""Number of dialogues that are held and labelled together: enough for batches of similar length."""


class Labeller(HasCheckpoint):
    """A text classifier with its tokenizer."""

    def __init__(self, ckpt: Checkpoint, labels: str | LabelSet = EMOTION_INTENT) -> None:
        if not ckpt.model.labels_texts:
            raise ValueError(f"{ckpt.name} labels no texts; {DEFAULT} does")
        own, wanted = ckpt.model.label_set, label_set(labels)
        if own.labels != wanted.labels:
            raise ValueError(f"{ckpt.name} labels texts by {own.name}, where {wanted.name} is expected")
        self.name = ckpt.name
        self.names = own.labels
        """The names of the labels, in the order of their ids."""
        self.checkpoint = ckpt
        self.model: Any = ckpt.model.eval()

    @classmethod
    def load(cls, name_or_path: str | Path = DEFAULT, labels: str | LabelSet = EMOTION_INTENT) -> Labeller:
        """Loads a trained classifier by name, or from the folder of a run or checkpoint."""
        return cls(checkpoint.load(find(name_or_path)), labels)

    def log_probs(self, texts: Sequence[str], done: Callable[[int], None] | None = None) -> np.ndarray:
        """(texts, labels) log p(label | text), calibrated if the classifier is.

        Texts are truncated as in training; duplicate texts are read once; `done` is called with the number of texts
        just finished.
        """
        if isinstance(texts, str):
            raise ValueError(f"a list of texts is labelled, found one text: {texts!r}")
        texts = list(texts)
        times = Counter(texts)
        distinct = {text: row for row, text in enumerate(times)}
        items = [Example(text, reply=Turn("speaker", text)) for text in distinct]
        data = encode(items, self.checkpoint.tokenizer, self.checkpoint.encoding, cut_replies=True)
        table = np.zeros((len(distinct), len(self.names)))
        for rows in ordered_batches(data.lengths()):
            batch = collate(data, rows, self.checkpoint.tokenizer.pad)
            with torch.inference_mode():
                table[rows] = self.model.label_log_probs(batch).double().numpy()
            if done is not None:
                done(sum(times[data.ids[row]] for row in rows))
        return table[[distinct[text] for text in texts]]

    def distribution(self, texts: Sequence[str], done: Callable[[int], None] | None = None) -> np.ndarray:
        """(texts, labels) p(label | text)."""
        return np.exp(self.log_probs(texts, done))

    def label(self, texts: Sequence[str], done: Callable[[int], None] | None = None) -> list[Label]:
        """Returns the likeliest label of each text, with its probability."""
        chances = self.distribution(texts, done)
        return [
            Label(self.names[index], "machine", round(min(float(row[index]), 1.0), 4))
            for row, index in zip(chances, chances.argmax(axis=1), strict=True)
        ]


def label_dialogues(
    dialogues: Iterable[Dialogue],
    labeller: Labels,
    overwrite: bool = False,
    done: Callable[[int], None] | None = None,
) -> Iterator[Dialogue]:
    """Yields the dialogues with a label on every turn, a block at a time.

    Gold labels, from whatever label set, are kept unless `overwrite`; machine labels are replaced.
    """
    rest = iter(dialogues)
    while block := list(islice(rest, BLOCK)):
        texts = [turn.text for dialogue in block for turn in dialogue.turns if overwrite or not has_gold(turn)]
        known = dict(zip(texts, labeller.label(texts), strict=True))
        for dialogue in block:
            yield replace(dialogue, turns=tuple(_labelled(turn, known, overwrite) for turn in dialogue.turns))
            if done is not None:
                done(len(dialogue.turns))


def has_gold(turn: Turn) -> bool:
    return turn.label is not None and turn.label.by == "gold"


def _labelled(turn: Turn, known: dict[str, Label], overwrite: bool) -> Turn:
    return replace(turn, label=known[turn.text]) if overwrite or not has_gold(turn) else turn
