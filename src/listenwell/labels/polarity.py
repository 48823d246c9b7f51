"""The polarity of corpus labels, as defined for each set in `labels.sets`.

Label names are the corpus's own, in lower case. A polarity classifier has three labels, negative, neutral and positive;
`data.relabel` gives a corpus these labels.
"""

from __future__ import annotations

from collections.abc import Iterable

from listenwell.labels.sets import EMOTION_INTENT, POLARITY, SET_OF_SOURCE, Polarity
from listenwell.labels.taxonomy import unknown_name

POLARITIES: tuple[str, ...] = POLARITY.labels
"""The labels of a polarity classifier, in the order of their ids."""

UNMOVED = frozenset({"questioning", "suggesting"})
"""The intents that express no feeling, so that a text with one of them is neutral. The other six respond to a feeling,
of either polarity."""


def polarity_in(source: str, label: str) -> Polarity | None:
    """Returns the polarity of a source's label; None if it has none."""
    if source not in SET_OF_SOURCE:
        raise ValueError(unknown_name("source of labels", source, SET_OF_SOURCE))
    return SET_OF_SOURCE[source].polarity.get(label.lower())


def one_polarity(source: str, labels: Iterable[str]) -> str | None:
    """Returns negative, neutral or positive if all labels of a text agree.

    Returns None if they do not, or if one of them is ambiguous or has no polarity. Sources with unknown label sets are
    assumed to use those of `taxonomy`; labels that are already a polarity are kept.
    """
    known = source if source in SET_OF_SOURCE else "edos"
    polarities = {label if label in POLARITIES else _polarity(known, label) for label in labels}
    only = polarities.pop() if len(polarities) == 1 else None
    return only if only in POLARITIES else None


def _polarity(source: str, label: str) -> str | None:
    unmoved = label in UNMOVED and SET_OF_SOURCE[source] is EMOTION_INTENT
    return "neutral" if unmoved else polarity_in(source, label)
