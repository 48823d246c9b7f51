"""Semantic similarity of replies to their references: the cosine of sentence embeddings (SES, MEED2's Table 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from listenwell.metrics.bootstrap import RESAMPLES, SEED, same_length, score_with_interval
from listenwell.metrics.material import Material
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Statistics


def sentence_similarity(
    replies: ArrayLike, references: ArrayLike, *, encoder: str, resamples: int = RESAMPLES, seed: int = SEED
) -> Score:
    """Mean over items of the cosine between the embeddings of reply and reference, each (items, width).

    `encoder` names the encoder of the embeddings; another encoder gives another scale.
    """
    ours, theirs = (np.asarray(side, dtype=np.float64) for side in (replies, references))
    same_length(replies=ours, references=theirs)
    if ours.ndim != 2 or ours.shape != theirs.shape:
        raise ValueError(f"embeddings are two arrays (items, width), found shapes {ours.shape} and {theirs.shape}")
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    if not lengths.all():
        raise ValueError("an embedding of length 0 has no direction to compare")
    cosines = (ours * theirs).sum(axis=1) / lengths
    statistics = Statistics(np.stack([cosines, np.ones(len(cosines))], axis=1), "ratio")
    signature = Signature.of("ses", encoder=encoder, of="cosine")
    return score_with_interval("ses", statistics, signature, "higher", resamples=resamples, seed=seed)


@metric("ses", needs=["references", "sentence vectors"], languages=["en"])
def _ses(material: Material) -> Score:
    """Cosine between the sentence embeddings of reply and reference"""
    encoder, replies, references = material.get("sentence vectors")
    return sentence_similarity(replies, references, encoder=encoder, **material.resampling)
