"""Whether replies begin with cheer, which hurts somebody who grieves (`--data grief`).

A reply may end on hope, but its first clause should meet the feeling: it counts as celebratory if a polarity classifier
finds it positive, rather than neutral or negative. That is strict: "I am here for you" is often found positive too, so
read the replies along with the number.
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
"""What ends a clause, once it has a word: punctuation, but not the comma of 1,000 or the period of a.m."""
SHORTEST = 2
"""Minimum number of words or characters in a clause: "oh" and "啊" belong to what follows."""


def first_clause(text: str) -> str:
    """Returns the first clause of a reply without its final punctuation, except an exclamation mark, for its tone."""
    for end in _END.finditer(text):
        begun = text[: end.start()].strip()
        if len(re.findall(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+", begun)) >= SHORTEST:
            return begun + (end.group() if end.group() in "!！" else "")
    return text.strip()


def celebratory(chances: ArrayLike, *, by: str, resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """Percentage of first clauses, given polarity probabilities (items, 3), whose likeliest polarity is positive."""
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
