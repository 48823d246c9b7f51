"""Labels for a corpus that is being curated: each process that labels a part of it loads the classifier by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch

from listenwell import checkpoint
from listenwell.classifiers.label_cache import fingerprint
from listenwell.classifiers.labeller import Labeller
from listenwell.data.curation.settings import DialogueLabels, Label
from listenwell.labels.taxonomy import EMOTIONS
from listenwell.weights import find


@dataclass(frozen=True)
class CorpusLabelling:
    """A trained classifier: its name or folder, and the fingerprint of its weights."""

    name: str
    fingerprint: str
    knows_emotions: bool = True
    """Whether its labels include the 32 emotions, so that emotionality is defined."""

    @classmethod
    def named(cls, name: str, language: str) -> CorpusLabelling:
        """Raises ValueError for one that does not label texts or was not trained on texts in the language."""
        trained = checkpoint.load(find(name))
        labeller = Labeller(trained, trained.model.label_set)  # raises if it cannot label texts
        if language not in trained.languages:
            known = ", ".join(trained.languages)
            way_out = "name another with --labeller, or none"
            raise ValueError(f"{name} learned from texts in {known}, not in {language}; {way_out}")
        return cls(name, fingerprint(trained), {*EMOTIONS} <= {*labeller.names})

    def load(self) -> Label:
        trained = checkpoint.load(find(self.name))
        if fingerprint(trained) != self.fingerprint:
            raise RuntimeError(f"{self.name} has other weights than when the curation began; start it again")
        labeller = Labeller(trained, trained.model.label_set)
        return lambda dialogues: label_texts(labeller, dialogues)


def label_texts(labeller: Labeller, dialogues: Sequence[Sequence[str]]) -> list[DialogueLabels]:
    """Returns the likeliest label of every text and, if the labels include the 32 emotions, each dialogue's
    emotionality."""
    with _one_thread():
        chances = labeller.distribution([text for texts in dialogues for text in texts])
    best = chances.argmax(axis=1)
    names = [labeller.names[index] for index in best]
    sure = [round(min(float(row[index]), 1.0), 4) for row, index in zip(chances, best, strict=True)]
    emotions = [index for index, name in enumerate(labeller.names) if name in EMOTIONS]
    emotional = chances[:, emotions].sum(axis=1) if {*EMOTIONS} <= {*labeller.names} else None
    ends = accumulate((len(texts) for texts in dialogues), initial=0)
    return [
        DialogueLabels(
            tuple(names[begin:end]),
            tuple(sure[begin:end]),
            None if emotional is None else round(float(emotional[begin:end].mean()), 6),
        )
        for begin, end in pairwise(ends)
    ]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Each worker uses one thread, which also makes sums independent of the number of processors."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
