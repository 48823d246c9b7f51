"""The n-gram overlap of replies and references: BLEU as reported in the papers, and as computed by sacrebleu."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from listenwell.metrics.bootstrap import RESAMPLES, SEED, same_length, score_with_interval
from listenwell.metrics.extras import need
from listenwell.metrics.material import Material
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Array, Statistics

Words = Sequence[str]
References = Sequence[Words] | Sequence[Sequence[Words]]
"""For each item, one reference as words, or several."""


def bleu(
    replies: Sequence[Words],
    references: References,
    n: int = 4,
    *,
    tok: str = "word",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Score:
    """Corpus BLEU-n (orders 1…n, unsmoothed) on given words: the number that multi-bleu.perl prints for n = 4.

    0.0 if some order has no match at all, or no reply has a word. (nltk's corpus_bleu gives a little less if some
    replies are shorter than n words: it counts one n-gram for each of them, multi-bleu.perl none.)

    Words are used as they are: the signature says `case:lc` only if none has a capital. `tok` names the tokenizer that
    made them. The items are unsmoothed sentence BLEU, mostly 0 for n = 4; tests between systems resample the statistics
    instead.
    """
    if n < 1:
        raise ValueError(f"BLEU-n has n of at least 1, found {n}")
    rows, fields = _match(replies, references, n)
    signature = Signature.of("bleu", n=n, **fields, tok=tok, smooth="none")
    return score_with_interval(
        f"bleu-{n}", Statistics(rows, "bleu"), signature, "higher", resamples=resamples, seed=seed
    )


def average_bleu(
    replies: Sequence[Words],
    references: References,
    *,
    tok: str = "word",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Score:
    """AVG BLEU: the mean of corpus BLEU-1, -2, -3 and -4, each cumulative.

    `tok` names the tokenizer that made the words: "word" is `listenwell.text.words`.
    """
    rows, fields = _match(replies, references, 4)
    signature = Signature.of("avg-bleu", n="1-4", **fields, tok=tok, smooth="none")
    statistics = Statistics(rows, "average-bleu")
    return score_with_interval("average-bleu", statistics, signature, "higher", resamples=resamples, seed=seed)


def sacre_bleu(
    replies: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    tokenize: str = "13a",
    name: str = "sacrebleu",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Score:
    """BLEU by sacrebleu on raw texts, which it lower-cases and tokenizes; its own signature is part of ours.

    The tokenizer "13a" is for European languages, "zh" for Chinese.
    """
    same_length(replies=replies, references=references)
    if not replies:
        raise ValueError(f"{name}: no items to score")
    refs = [[item] if isinstance(item, str) else list(item) for item in references]
    for index, (reply, texts) in enumerate(zip(replies, refs, strict=True)):
        if not isinstance(reply, str) or not texts or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"item {index}: sacrebleu expects a text and one or more reference texts, not words")
    metric_class = need("sacrebleu", "BLEU").BLEU
    # `force` and `effective_order` only suppress warnings: neither changes the counts used here.
    corpus = metric_class(lowercase=True, tokenize=tokenize, force=True)
    sentence = metric_class(lowercase=True, tokenize=tokenize, force=True, effective_order=True)
    streams = [[texts[i] if i < len(texts) else None for texts in refs] for i in range(max(map(len, refs)))]
    corpus.corpus_score(list(replies), streams)  # it knows its signature only after a score
    theirs = dict(part.split(":", 1) for part in str(corpus.get_signature()).split("|"))
    scores = [sentence.sentence_score(reply, texts) for reply, texts in zip(replies, refs, strict=True)]
    rows = np.asarray([[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in scores], dtype=np.float64)
    signature = Signature.of("sacrebleu", **theirs)
    return score_with_interval(name, Statistics(rows, "sacrebleu"), signature, "higher", resamples=resamples, seed=seed)


def ngrams(words: Words, n: int) -> Counter[tuple[str, ...]]:
    """How often each n-gram occurs in `words`."""
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def check_words(replies: Iterable[Words]) -> None:
    """Raises TypeError for texts instead of lists of words: a text's n-grams would silently be those of its letters."""
    for index, reply in enumerate(replies):
        if isinstance(reply, str):
            raise TypeError(f"item {index}: a list of words is wanted, found the text {reply[:40]!r}")


def _match(replies: Sequence[Words], references: References, order: int) -> tuple[Array, dict[str, Any]]:
    """Returns the rows of `sums.bleu`, and the signature's fields for the words."""
    same_length(replies=replies, references=references)
    check_words(replies)
    check_words(references)  # type: ignore[arg-type]
    # An item's references are one list of words, or a list of such lists. An empty list is one empty reference.
    refs: list[list[Words]] = [
        [item] if not item or isinstance(item[0], str) else list(item)  # type: ignore[list-item]
        for item in references
    ]
    rows = np.zeros((len(replies), 2 * order + 2))
    for row, reply, candidates in zip(rows, replies, refs, strict=True):
        for n in range(1, order + 1):
            best: Counter[tuple[str, ...]] = Counter()
            for reference in candidates:
                best |= ngrams(reference, n)
            row[n - 1] = (ngrams(reply, n) & best).total()
            row[order + n - 1] = max(0, len(reply) - n + 1)
        # The reference closest in length counts for brevity; of two equally close, the shorter.
        row[-2:] = len(reply), min((abs(len(ref) - len(reply)), len(ref)) for ref in candidates)[1]
    words = (word for item, several in zip(replies, refs, strict=True) for text in (item, *several) for word in text)
    numbers = {len(several) for several in refs}
    return rows, {
        "nrefs": numbers.pop() if len(numbers) == 1 else "var",
        "case": "mixed" if any(word != word.lower() for word in words) else "lc",
    }


def chinese_words(texts: Sequence[str]) -> list[list[str]]:
    """Returns the texts lower-cased and split by sacrebleu's Chinese tokenizer: each character is a word."""
    tokenizer = need("sacrebleu.tokenizers.tokenizer_zh", "BLEU on Chinese").TokenizerZh()
    return [tokenizer(text.lower()).split() for text in texts]


def both_sides(material: Material) -> tuple[list[list[str]], list[list[str]], str]:
    """Returns the words of replies and references, and the tokenizer's name. Chinese is split as by sacrebleu."""
    if material.languages == ("zh",):
        texts = (material.replies, material.get("references"))
        replies, references = material.shared("sacrebleu's zh words", lambda: tuple(map(chinese_words, texts)))
        return replies, references, "zh"
    return material.reply_words, material.reference_words, "word"


def _register(n: int) -> None:
    @metric(f"bleu-{n}", needs=["references"], about=f"Corpus BLEU-{n}, unsmoothed, as multi-bleu.perl computes it")
    def compute(material: Material) -> Score:
        replies, references, tok = both_sides(material)
        return bleu(replies, references, n, tok=tok, **material.resampling)


for _n in (1, 2, 3, 4):
    _register(_n)


@metric("average-bleu", needs=["references"])
def _average(material: Material) -> Score:
    """Mean of BLEU-1, -2, -3 and -4"""
    replies, references, tok = both_sides(material)
    return average_bleu(replies, references, tok=tok, **material.resampling)


@metric("sacrebleu", needs=["references"], packages=["sacrebleu"], languages=["en"])
def _sacrebleu(material: Material) -> Score:
    """BLEU by sacrebleu, 13a-tokenized, lower-cased"""
    return sacre_bleu(material.replies, material.get("references"), **material.resampling)


@metric("sacrebleu-zh", needs=["references"], packages=["sacrebleu"], languages=["zh"])
def _sacrebleu_zh(material: Material) -> Score:
    """BLEU by sacrebleu with its tokenizer for Chinese"""
    references = material.get("references")
    return sacre_bleu(material.replies, references, tokenize="zh", name="sacrebleu-zh", **material.resampling)
