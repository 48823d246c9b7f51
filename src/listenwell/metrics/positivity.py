"""How positive replies are, from -1 to 1, and how much more so than what they answer.

By a classifier of polarity it is p(positive) − p(negative); by VADER (Hutto and Gilbert, 2014), rules and a lexicon,
its compound score. Whoever judges must not be what the system chose its replies by.

A classifier gives every text a polarity, also one that is not language, and gibberish often a high one. Such a reply
counts as neutral, 0 (`listenwell.metrics.language` says what is told by that). What the judge does not see: whether
the words stand in a sensible order, fit the context, or are true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version

import numpy as np
from numpy.typing import ArrayLike

from listenwell.labels.polarity import POLARITIES
from listenwell.metrics.bootstrap import RESAMPLES, SEED, measured, same_length
from listenwell.metrics.extras import need
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Array, Statistics


def leaning(chances: ArrayLike) -> Array:
    """p(positive) − p(negative) of each text, from what a classifier of polarity makes of them (items, 3)."""
    table = np.asarray(chances, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(POLARITIES):
        raise ValueError(f"chances are an array (items, {len(POLARITIES)}), found shape {table.shape}")
    return table[:, POLARITIES.index("positive")] - table[:, POLARITIES.index("negative")]


def readable(texts: Sequence[str]) -> np.ndarray:
    """Which texts are language, so that what a judge says of them means something: (texts,) booleans."""
    from listenwell.metrics.language import is_language  # which reads words, and so brings up the tokenizers

    known = {text: is_language(text) for text in set(texts)}
    return np.array([known[text] for text in texts], dtype=bool)


def vader(texts: Sequence[str], done: Callable[[int], None] | None = None) -> Array:
    """VADER's compound score of each text. English only."""
    analyse = need("vaderSentiment.vaderSentiment", "VADER").SentimentIntensityAnalyzer().polarity_scores
    known: dict[str, float] = {}
    for text, times in Counter(texts).items():
        known[text] = analyse(text)["compound"]
        if done is not None:
            done(times)
    return np.array([known[text] for text in texts], dtype=np.float64)


def vader_version() -> str:
    return f"vader{version('vaderSentiment')}"


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
    """The mean of `values`, how positive each reply is.

    With `before`, how positive the turns are that they answer, the mean gain over those, called `name`-gain. `by` names
    the judge. With `language`, which replies are: those that are not count as neutral, 0, in the gain too.
    """
    found = np.asarray(values, dtype=np.float64)
    of, how = "reply", {"by": by}
    if before is not None:
        same_length(replies=found, before=np.asarray(before))
        found, name, of = found - np.asarray(before, dtype=np.float64), f"{name}-gain", "reply-turn"
    if language is not None:
        found, how["gibberish"] = np.where(language, found, 0.0), "neutral"
    statistics = Statistics(np.stack([found, np.ones(len(found))], axis=1), "ratio")
    signature = Signature.of("positivity", of=of, **how)
    return measured(name, statistics, signature, "higher", resamples=resamples, seed=seed)
