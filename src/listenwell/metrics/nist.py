"""NIST (Doddington 2002): like BLEU, but weights n-grams by their information, as nltk's `corpus_nist` does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from listenwell.metrics.bootstrap import RESAMPLES, SEED, same_length, score_with_interval
from listenwell.metrics.material import Material
from listenwell.metrics.overlap import Words, both_sides, check_words, ngrams
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Statistics


def nist(
    replies: Sequence[Words],
    references: Sequence[Words],
    n: int = 4,
    *,
    tok: str = "word",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Score:
    """NIST-n against one reference per reply. 0.0 if no reply has a word.

    The weights of n-grams come from all references and stay fixed when items are resampled.
    """
    if n < 1:
        raise ValueError(f"NIST-n has n of at least 1, found {n}")
    same_length(replies=replies, references=references)
    check_words([*replies, *references])
    weights = information(references, n)
    rows = np.zeros((len(replies), 2 * n + 2))
    for row, reply, reference in zip(rows, replies, references, strict=True):
        for order in range(1, n + 1):
            shared = ngrams(reply, order) & ngrams(reference, order)
            row[order - 1] = sum(weights[gram] * count for gram, count in shared.items())
            row[n + order - 1] = max(0, len(reply) - order + 1)
        row[-2:] = len(reply), len(reference)
    signature = Signature.of("nist", n=n, nrefs=1, tok=tok, weights="all-references")
    return score_with_interval(
        f"nist-{n}", Statistics(rows, "nist"), signature, "higher", resamples=resamples, seed=seed
    )


def information(references: Sequence[Words], n: int) -> dict[tuple[str, ...], float]:
    """Eq. 2: log2 of the count of an n-gram without its last word, divided by the count of the n-gram."""
    counts: Counter[tuple[str, ...]] = Counter()
    for reference in references:
        for order in range(1, n + 1):
            counts.update(ngrams(reference, order))
    total = sum(map(len, references))
    return {gram: float(np.log2((counts[gram[:-1]] if gram[:-1] else total) / counts[gram])) for gram in counts}


def _register(n: int) -> None:
    @metric(f"nist-{n}", needs=["references"], about=f"NIST-{n}: overlap of n-grams weighed by their information")
    def compute(material: Material) -> Score:
        replies, references, tok = both_sides(material)
        return nist(replies, references, n, tok=tok, **material.resampling)


for _n in (3, 4):
    _register(_n)
