"""How positive replies are, from -1 to 1, and how much more so than the turns they answer.

With a polarity classifier, this is p(positive) − p(negative); with VADER (Hutto and Gilbert, 2014), which is rules and
a lexicon, its compound score. The judge must not be what the system chose its replies by.

A classifier gives every text a polarity, even one that is not language, and gibberish often gets a high one. Such a
reply counts as neutral, 0 (see `listenwell.metrics.language` for what is recognised). The judge does not see whether
the words are in a sensible order, fit the context, or are true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from listenwell.labels.polarity import POLARITIES
from listenwell.metrics.bootstrap import RESAMPLES, SEED, same_length, score_with_interval
from listenwell.metrics.extras import need
from listenwell.metrics.material import ClassifierOutput, Material
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Array, Statistics


def leaning(chances: ArrayLike) -> Array:
    """Returns p(positive) − p(negative) for each text, from the probabilities of a polarity classifier (items, 3)."""
    table = np.asarray(chances, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(POLARITIES):
        raise ValueError(f"chances are an array (items, {len(POLARITIES)}), found shape {table.shape}")
    return table[:, POLARITIES.index("positive")] - table[:, POLARITIES.index("negative")]


def readable(texts: Sequence[str]) -> np.ndarray:
    """(texts,) booleans: which texts are language, so that a judge's score for them means something."""
    from listenwell.metrics.language import is_language  # imports the tokenizers

    known = {text: is_language(text) for text in set(texts)}
    return np.array([known[text] for text in texts], dtype=bool)


def vader(texts: Sequence[str], done: Callable[[int], None] | None = None) -> Array:
    """Returns VADER's compound score of each text. English only."""
    analyse = need("vaderSentiment.vaderSentiment", "VADER").SentimentIntensityAnalyzer().polarity_scores
    known: dict[str, float] = {}
    for text, times in Counter(texts).items():
        known[text] = analyse(text)["compound"]
        if done is not None:
            done(times)
    return np.array([known[text] for text in texts], dtype=np.float64)


def vader_version() -> str:
    return f"vader{version('vaderSentiment')}"


def sentiment(chances: ArrayLike, *, by: str, resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """Sent: the mean of P(positive) / (P(positive) + P(negative)), from 0 to 1, given probabilities (items, 3)."""
    table = np.asarray(chances, dtype=np.float64)
    leaning(table)  # checks the shape
    high, low = (table[:, POLARITIES.index(name)] for name in ("positive", "negative"))
    either = high + low
    positive = np.where(either > 0, high / np.where(either > 0, either, 1), 0.5)
    statistics = Statistics(np.stack([positive, np.ones(len(positive))], axis=1), "ratio")
    return score_with_interval(
        "sent", statistics, Signature.of("sent", by=by), "higher", resamples=resamples, seed=seed
    )


def positive_share(chances: ArrayLike, *, by: str, resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """Posi%: the percentage of texts whose likeliest polarity is positive, given probabilities (items, 3)."""
    table = np.asarray(chances, dtype=np.float64)
    leaning(table)  # checks the shape
    hits = 100.0 * (table.argmax(axis=1) == POLARITIES.index("positive"))
    statistics = Statistics(np.stack([hits, np.ones(len(hits))], axis=1), "ratio")
    signature = Signature.of("posi", by=by, classes=len(POLARITIES))
    return score_with_interval("posi", statistics, signature, "higher", "%", resamples=resamples, seed=seed)


def positivity(
    values: ArrayLike,
    *,
    by: str,
    before: ArrayLike | None = None,
    language: ArrayLike | None = None,
    name: str = "positivity",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Score:
    """Mean of `values`, which tell how positive each reply is.

    With `before`, how positive the turns are that they answer, it is the mean gain over those, called `name`-gain. `by`
    names the judge. `language` tells which replies are language; the others count as neutral, 0, in the gain too.
    """
    scores = np.asarray(values, dtype=np.float64)
    of, how = "reply", {"by": by}
    if before is not None:
        same_length(replies=scores, before=np.asarray(before))
        scores, name, of = scores - np.asarray(before, dtype=np.float64), f"{name}-gain", "reply-turn"
    if language is not None:
        scores, how["gibberish"] = np.where(language, scores, 0.0), "neutral"
    statistics = Statistics(np.stack([scores, np.ones(len(scores))], axis=1), "ratio")
    signature = Signature.of("positivity", of=of, **how)
    return score_with_interval(name, statistics, signature, "higher", resamples=resamples, seed=seed)


def _judged(material: Material) -> dict[str, Any]:
    """Returns how positive a classifier finds replies and contexts, and which replies are language."""
    read: ClassifierOutput = material.get("classifier polarity")
    # Only English can be recognised as language.
    language = readable(material.replies) if material.languages == ("en",) else None
    values = {side: leaning(read[side]) for side in ("replies", "contexts")}
    return {**values, "by": _by(read), "language": language}


def _by(read: ClassifierOutput) -> str:
    return " ".join(read.by.values())


def _ruled(material: Material) -> dict[str, Any]:
    """Returns how positive VADER finds replies and contexts."""
    texts = [*material.replies, *material.get("contexts")]
    replies, before = np.split(vader(texts, material.progress("VADER", len(texts))), 2)
    return {"replies": replies, "contexts": before, "by": vader_version(), "language": None}


def _register(
    name: str, whose: str, judge: Callable[[Material], dict[str, Any]], needs: list[str], **limits: Any
) -> None:
    def scored(material: Material, gain: bool) -> Score:
        judged = material.shared(name, lambda: judge(material))
        before = judged["contexts"] if gain else None
        how = {"by": judged["by"], "language": judged["language"], "name": name}
        return positivity(judged["replies"], before=before, **how, **material.resampling)

    @metric(name, needs=needs, **limits, about=f"How positive replies are, from -1 to 1, by {whose}")
    def compute(material: Material) -> Score:
        return scored(material, gain=False)

    @metric(
        f"{name}-gain", needs=needs, **limits, about=f"How much more positive than the turns they answer, by {whose}"
    )
    def compute_gain(material: Material) -> Score:
        return scored(material, gain=True)


_register("positivity", "a classifier", _judged, ["contexts", "classifier polarity"])
_register("vader", "VADER", _ruled, ["contexts"], packages=["vaderSentiment"], languages=["en"])


@metric("sent", needs=["contexts", "classifier polarity"])
def _sent(material: Material) -> Score:
    """Sent: mean of P(positive) / (P(positive) + P(negative)) of the replies"""
    read: ClassifierOutput = material.get("classifier polarity")
    return sentiment(read["replies"], by=_by(read), **material.resampling)


@metric("posi", needs=["contexts", "classifier polarity"])
def _posi(material: Material) -> Score:
    """Posi%: share of replies that a classifier finds positive, rather than neutral or negative"""
    read: ClassifierOutput = material.get("classifier polarity")
    return positive_share(read["replies"], by=_by(read), **material.resampling)
