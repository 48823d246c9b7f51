"""Which polarity the labels of corpora have; `labels.sets` says it of each set.

Label names are the corpus's own, in small letters. A classifier of polarity has three labels, negative, neutral and
positive; `data.relabel` gives them to a corpus.
"""

from __future__ import annotations

from collections.abc import Iterable

from listenwell.labels.sets import EMOTION_INTENT, POLARITY, SET_OF_SOURCE, Polarity
from listenwell.labels.taxonomy import unknown_name

POLARITIES: tuple[str, ...] = POLARITY.labels
"""The labels of a classifier of polarity, in the order of their ids."""

UNMOVED = frozenset({"questioning", "suggesting"})
"""The intents that express no feeling, so that a text with one of them is neutral. The other six answer a feeling, one
way or the other."""


def polarity_in(source: str, label: str) -> Polarity | None:
    """The polarity of a source's label; None where it has none."""
    if source not in SET_OF_SOURCE:
        raise ValueError(unknown_name("source of labels", source, SET_OF_SOURCE))
    return SET_OF_SOURCE[source].polarity.get(label.lower())


def one_polarity(source: str, labels: Iterable[str]) -> str | None:
    """Negative, neutral or positive, where all labels of a text agree in it.

    None where they do not, and where one of them is ambiguous or has no polarity. A source whose labels are not known
    has those of `taxonomy`; what is a polarity already stays.
    """
    known = source if source in SET_OF_SOURCE else "edos"
    polarities = {label if label in POLARITIES else _polarity(known, label) for label in labels}
    only = polarities.pop() if len(polarities) == 1 else None
    return only if only in POLARITIES else None


def _polarity(source: str, label: str) -> str | None:
    unmoved = label in UNMOVED and SET_OF_SOURCE[source] is EMOTION_INTENT
    return "neutral" if unmoved else polarity_in(source, label)
