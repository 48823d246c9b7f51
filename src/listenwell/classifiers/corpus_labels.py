"""Labels for a corpus that is being curated: a classifier by name, loaded in whichever process labels a part of it."""

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
    """Whether its labels have the 32 emotions among them, so that there is an emotionality."""

    @classmethod
    def named(cls, name: str, language: str) -> CorpusLabelling:
        """ValueError for one that labels no texts, or did not learn from texts of the language."""
        trained = checkpoint.load(find(name))
        labeller = Labeller(trained, trained.model.label_set)  # says what is wrong with it
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
    """The likeliest label of every text, and the emotionality of each dialogue, where the labels are of the 41."""
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
    """Each worker has one; and sums come out the same whatever the number of processors."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
