"""How varied, long and bland replies are, which BLEU does not measure.

Distinct-n and the share of unique replies have no interval. Both fall as the corpus grows, and a sample drawn with
replacement contains every drawn item about 1.6 times, so its values lie far below that of the corpus, and an interval
of them would not even contain it. Compare them only for the same number of replies, which is in the signature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from listenwell.metrics import stock_zh
from listenwell.metrics.bootstrap import RESAMPLES, SEED, score_with_interval
from listenwell.metrics.material import Material
from listenwell.metrics.overlap import Words, check_words, ngrams
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.stock import LIST, is_bland, says_sorry_to_hear
from listenwell.metrics.sums import Statistics


class Unique(NamedTuple):
    """How many of the replies differ from all before them, in percent and as a count."""

    share: Score
    number: Score


class Bland(NamedTuple):
    """The share of replies that contain "sorry to hear", and the share of bland replies of any kind."""

    sorry: Score
    any: Score


def distinct(replies: Sequence[Words], n: int, *, tok: str = "word") -> Score:
    """Distinct-n: distinct n-grams in percent of all n-grams of the corpus; n-grams do not cross reply boundaries.

    0.0 if no reply has n words.
    """
    if n < 1:
        raise ValueError(f"Distinct-n has n of at least 1, found {n}")
    _some(f"distinct-{n}", replies)
    check_words(replies)
    seen: set[tuple[str, ...]] = set()
    total = 0
    for reply in replies:
        counts = ngrams(reply, n)
        seen.update(counts)
        total += counts.total()
    signature = Signature.of("distinct", n=n, replies=len(replies), tok=tok, ci="none")
    return Score(f"distinct-{n}", 100 * len(seen) / max(1, total), signature=signature, unit="%")


def entropy(replies: Sequence[Words], *, tok: str = "word") -> Score:
    """Ent: the entropy, in nats, of the distribution of words over all replies. 0.0 if there are no words.

    No interval: like Distinct-n, it is biased by drawing with replacement and depends on the number of replies.
    """
    _some("entropy", replies)
    check_words(replies)
    counts = np.array(list(Counter(word for reply in replies for word in reply).values()), dtype=np.float64)
    shares = counts / counts.sum()
    signature = Signature.of("entropy", n=1, log="e", replies=len(replies), tok=tok, ci="none")
    return Score("entropy", float(-(shares * np.log(shares)).sum()), signature=signature)


def unique_replies(replies: Sequence[str | Words]) -> Unique:
    """Share and number of distinct replies, ignoring case and spacing."""
    _some("unique replies", replies)
    count = len({" ".join(_text(reply).lower().split()) for reply in replies})
    signature = Signature.of("unique", replies=len(replies), case="lc", ci="none")
    return Unique(
        Score("unique", 100 * count / len(replies), signature=signature, unit="%"),
        Score("unique-count", float(count), signature=signature),
    )


def mean_length(replies: Sequence[Words], *, tok: str = "word", resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """Words per reply. Marked "higher" because dull replies are short, not because longer is better as such."""
    check_words(replies)
    rows = np.asarray([[len(reply), 1] for reply in replies], dtype=np.float64).reshape(-1, 2)
    signature = Signature.of("length", replies=len(replies), tok=tok)
    return score_with_interval("length", Statistics(rows, "ratio"), signature, "higher", resamples=resamples, seed=seed)


def bland_chinese(replies: Sequence[str], *, resamples: int = RESAMPLES, seed: int = SEED) -> Score:
    """Share of Chinese replies that are nothing but stock phrases; `stock_zh.py` has the closed list."""
    rows = np.asarray([[100 * stock_zh.is_bland(text), 1] for text in replies], dtype=np.float64).reshape(-1, 2)
    signature = Signature.of("bland", kind="any", list=stock_zh.LIST, replies=len(replies))
    return score_with_interval(
        "bland-zh", Statistics(rows, "ratio"), signature, "lower", "%", resamples=resamples, seed=seed
    )


def bland(replies: Sequence[str | Words], *, resamples: int = RESAMPLES, seed: int = SEED) -> Bland:
    """Shares of bland replies among all, including empty ones; texts or words. `stock.py` has the closed list."""
    texts = [_text(reply) for reply in replies]

    def share(name: str, test: Callable[[str], bool], kind: Literal["phrase", "any"]) -> Score:
        rows = np.asarray([[100 * test(text), 1] for text in texts], dtype=np.float64).reshape(-1, 2)
        signature = Signature.of("bland", kind=kind, list=LIST, replies=len(texts))
        return score_with_interval(
            name, Statistics(rows, "ratio"), signature, "lower", "%", resamples=resamples, seed=seed
        )

    return Bland(share("sorry-to-hear", says_sorry_to_hear, "phrase"), share("bland", is_bland, "any"))


def _text(reply: str | Words) -> str:
    return reply if isinstance(reply, str) else " ".join(reply)


def _some(name: str, replies: Sequence[str | Words]) -> None:
    if not len(replies):
        raise ValueError(f"{name}: no replies to score")


def _register(n: int) -> None:
    @metric(f"distinct-{n}", about=f"Different {n}-grams in percent of all {n}-grams of the replies")
    def compute(material: Material) -> Score:
        return distinct(material.reply_words, n, tok=material.tok)


for _n in (1, 2, 3, 4):
    _register(_n)


@metric("entropy")
def _entropy(material: Material) -> Score:
    """Ent: entropy, in nats, of the words of all replies"""
    return entropy(material.reply_words, tok=material.tok)


@metric("unique")
def _unique(material: Material) -> Score:
    """Share of replies that differ from all before them"""
    return unique_replies(material.reply_words).share


@metric("unique-count")
def _unique_count(material: Material) -> Score:
    """Number of different replies"""
    return unique_replies(material.reply_words).number


def _bland(material: Material) -> Bland:
    return material.shared("bland", lambda: bland(material.reply_words, **material.resampling))


@metric("sorry-to-hear", languages=["en"], better="lower")
def _sorry(material: Material) -> Score:
    """Share of replies that say "sorry to hear\""""
    return _bland(material).sorry


@metric("bland", languages=["en"], better="lower")
def _any_bland(material: Material) -> Score:
    """Share of replies that are nothing but stock phrases, or say "sorry to hear\""""
    return _bland(material).any


@metric("bland-zh", languages=["zh"], better="lower")
def _bland_zh(material: Material) -> Score:
    """Share of Chinese replies that are nothing but stock phrases"""
    return bland_chinese(material.replies, **material.resampling)


@metric("length")
def _length(material: Material) -> Score:
    """Words per reply; Chinese characters count as words"""
    return mean_length(material.reply_words, tok=material.tok, **material.resampling)
