"""The label sets of other corpora, and which polarity their labels have.

Label names are the corpus's own, in small letters. Four polarities: "ambiguous" is a feeling that may be either
(surprise), "neutral" none at all. That is finer than MIME's two groups of the 32 emotions
(`taxonomy.polarity`), which count "surprised" as positive. A label whose polarity is not well defined has none:
EDOS's intents are what a reply does, not what is felt.

A classifier of polarity has three labels, negative, neutral and positive; `data.relabel` gives them to a corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from listenwell.labels.taxonomy import EMOTIONS, LABELS, NEUTRAL, unknown_name
from listenwell.labels.taxonomy import polarity as mime_polarity

Polarity = Literal["positive", "negative", "ambiguous", "neutral"]

POLARITIES: tuple[str, ...] = ("negative", "neutral", "positive")
"""The labels of a classifier of polarity, in the order of their ids."""

LabelSet = Literal["emotion-intent", "polarity"]

LABEL_SETS: dict[LabelSet, tuple[str, ...]] = {"emotion-intent": LABELS, "polarity": POLARITIES}
"""What a classifier may tell apart; an id is a place in the tuple."""

UNMOVED = frozenset({"questioning", "suggesting"})
"""The intents that tell of no feeling, so that a text with one of them is neutral. The other six answer a feeling, one
way or the other."""


def _grouped(**groups: str) -> dict[str, Polarity]:
    polarities: tuple[Polarity, ...] = ("positive", "negative", "ambiguous", "neutral")
    return {label: name for name in polarities for label in groups.get(name, "").split(", ") if label}


DAILYDIALOG: Mapping[str, Polarity] = _grouped(
    positive="happiness",
    negative="anger, disgust, fear, sadness",
    ambiguous="surprise",
    neutral="no emotion",
)
"""DailyDialog and XDailyDialog: Ekman's six, and none."""

EMOTIONLINES: Mapping[str, Polarity] = _grouped(
    positive="joy",
    negative="anger, disgust, fear, sadness",
    ambiguous="surprise, non-neutral",
    neutral="neutral",
)
"""EmotionLines. "non-neutral": the five annotators felt something, but not the same."""

GOEMOTIONS: Mapping[str, Polarity] = _grouped(
    positive=(
        "admiration, amusement, approval, caring, desire, excitement, gratitude, joy, love, optimism, pride, relief"
    ),
    negative=(
        "anger, annoyance, disappointment, disapproval, disgust, embarrassment, fear, grief, nervousness, remorse, "
        "sadness"
    ),
    ambiguous="confusion, curiosity, realization, surprise",
    neutral="neutral",
)
"""GoEmotions, grouped as its authors do (their sentiment_mapping.json)."""

SMP2020_EWECT: Mapping[str, Polarity] = _grouped(
    positive="happy", negative="angry, fear, sad", ambiguous="surprise", neutral="neutral"
)
"""The SMP2020-EWECT evaluation's six."""

NLPCC2014: Mapping[str, Polarity] = _grouped(
    positive="happiness, like", negative="anger, disgust, fear, sadness", ambiguous="surprise", neutral="none"
)
"""NLPCC 2014's seven, and none; NLPCC 2013 has the same, nlpcc-sentences all of them but fear and surprise."""

WEIBO_SENTI: Mapping[str, Polarity] = {"positive": "positive", "negative": "negative"}
"""weibo_senti_100k is labelled by polarity, and has no neutral posts."""

EDOS: Mapping[str, Polarity] = {**{name: mime_polarity(name) for name in EMOTIONS}, NEUTRAL: "neutral"}
"""EDOS has the 41 labels of `taxonomy`: MIME's groups, and neutral; the eight intents have no polarity."""

LABEL_MAPS: dict[str, Mapping[str, Polarity]] = {
    "dailydialog": DAILYDIALOG,
    "xdailydialog": DAILYDIALOG,
    "edos": EDOS,
    "empathetic-intents": EDOS,
    "emotionlines": EMOTIONLINES,
    "goemotions": GOEMOTIONS,
    "smp2020-ewect": SMP2020_EWECT,
    "nlpcc2014": NLPCC2014,
    "nlpcc2013": NLPCC2014,
    "nlpcc-sentences": NLPCC2014,
    "weibo-senti": WEIBO_SENTI,
}
"""By the name of the source."""


def polarity_in(source: str, label: str) -> Polarity | None:
    """The polarity of a source's label; None where it has none."""
    if source not in LABEL_MAPS:
        raise ValueError(unknown_name("label set", source, LABEL_MAPS))
    return LABEL_MAPS[source].get(label.lower())


def one_polarity(source: str, labels: Iterable[str]) -> str | None:
    """Negative, neutral or positive, where all labels of a text agree in it.

    None where they do not, and where one of them is ambiguous or has no polarity. A source whose labels are not known
    has those of `taxonomy`; what is a polarity already stays.
    """
    known = source if source in LABEL_MAPS else "edos"
    found = {label if label in POLARITIES else _felt(known, label) for label in labels}
    only = found.pop() if len(found) == 1 else None
    return only if only in POLARITIES else None


def _felt(source: str, label: str) -> str | None:
    return "neutral" if label in UNMOVED and LABEL_MAPS[source] is EDOS else polarity_in(source, label)
