"""Whether replies begin with cheer, which hurts where somebody grieves (`--data grief`).

A reply may end on hope. What is asked is that its first clause meets the feeling: it counts as celebratory where a
classifier of polarity finds it positive, rather than neutral or negative. That is strict: "I am here for you" is often
found positive too, so all replies are read beside the number.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import ArrayLike

from listenwell.labels.polarity import POLARITIES
from listenwell.metrics.bootstrap import RESAMPLES, SEED, score_with_interval
from listenwell.metrics.material import ClassifierOutput, Material
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Statistics

_END = re.compile(r"(?<=\w)(?:[,;:!?…~](?!\d)|\.(?!\w)|[，。！？；：、～]|\s[-–—]+\s|——|\n)")
"""What ends a clause, once it has a word: a mark, but not the comma of 1,000 or the point of a.m."""
SHORTEST = 2
"""Words or characters of a clause, at least: "oh" and "啊" belong to what follows."""


def first_clause(text: str) -> str:
    """How a reply begins, without the mark that ends it; an exclamation mark stays, which changes the tone."""
    for end in _END.finditer(text):
        begun = text[: end.start()].strip()
        if len(re.findall(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+", begun)) >= SHORTEST:
            return begun + (end.group() if end.group() in "!！" else "")
    return text.strip()


def celebratory(chances: ArrayLike, *, by: str, resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """The share of first clauses (items, 3) whose likeliest polarity is positive."""
    table = np.asarray(chances, dtype=np.float64)
    hits = 100.0 * (table.argmax(axis=1) == POLARITIES.index("positive"))
    statistics = Statistics(np.stack([hits, np.ones(len(hits))], axis=1), "ratio")
    signature = Signature.of("celebratory", of="first-clause", by=by, classes=len(POLARITIES))
    return score_with_interval("celebratory", statistics, signature, "lower", "%", resamples=resamples, seed=seed)


@metric("celebratory", needs=["first clauses' polarity"], better="lower")
def _celebratory(material: Material) -> Score:
    """Share of replies whose first clause a classifier finds positive; for messages of grief"""
    read: ClassifierOutput = material.get("first clauses' polarity")
    return celebratory(read["replies"], by=" ".join(read.by.values()), **material.resampling)
