"""Does a reply have the emotion of the dialogue? Judged by a classifier, where papers ask people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from listenwell.labels.taxonomy import EMOTIONS, LABELS
from listenwell.metrics.bootstrap import RESAMPLES, SEED
from listenwell.metrics.emotion import accuracy_at
from listenwell.metrics.material import Material
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score


def reply_emotion_accuracy(
    distributions: ArrayLike, gold: ArrayLike, k: int = 1, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Score:
    """Percentage of items for which the dialogue's emotion is among the k likeliest emotions of the reply.

    `distributions` (items, 41) are the predictions of a classifier of all labels for each reply's text. Only the
    emotions count: a listener's reply mostly asks, agrees or consoles, so its likeliest label would be no emotion.
    `gold` are the ids of the dialogues' emotions. The caller names the classifier in the signature.
    """
    table = np.asarray(distributions, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(LABELS):
        raise ValueError(f"distributions are an array (items, {len(LABELS)}), found shape {table.shape}")
    score = accuracy_at(table[:, : len(EMOTIONS)], gold, k, resamples=resamples, seed=seed)
    return replace(score, name=f"reply-emotion@{k}", signature=score.signature.plus(of="reply", among="emotions"))


def _register(side: str, about: str) -> None:
    @metric(f"{side}-emotion@1", needs=["references", "dialogue emotions", "classifier emotion-intent"], about=about)
    def compute(material: Material) -> Score:
        read = material.get("classifier emotion-intent")
        gold = material.get("dialogue emotions")
        score = reply_emotion_accuracy(
            read["replies" if side == "reply" else "references"], gold, **material.resampling
        )
        signature = score.signature.plus(of=side, **read.by)
        return replace(score, name=f"{side}-emotion@1", signature=signature)


_register("reply", "How often a classifier finds the dialogue's emotion in the reply")
_register("reference", "The same in the references: what people score")
