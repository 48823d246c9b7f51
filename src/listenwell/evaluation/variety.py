"""How varied are a system's replies to the same input? Every context is answered several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from listenwell.data.dialogue import Example
from listenwell.decoding import Decoding
from listenwell.evaluation.evaluate import Progress
from listenwell.evaluation.experiment import StudyResult, contexts_of
from listenwell.metrics import Score, Signature
from listenwell.metrics.bootstrap import score_with_interval
from listenwell.metrics.diversity import distinct, unique_replies
from listenwell.metrics.sums import Statistics
from listenwell.systems.base import System
from listenwell.text import words


class SystemWithDecoding(System, Protocol):
    """A system whose decoding can be changed."""

    decoding: Decoding


def variety(
    system: SystemWithDecoding, items: Sequence[Example], progress: Progress, draws: int = 5, resamples: int = 1000
) -> StudyResult:
    """Generate `draws` replies to every context. Each draw has its own seed, for system noise and for sampling."""
    if draws < 2:
        raise ValueError(f"{draws} draws do not show how replies differ, expected at least 2")
    contexts = contexts_of(items)
    own = system.decoding
    drawn: list[list[str]] = []
    try:
        for seed in range(draws):
            system.decoding = replace(own, seed=seed)
            replies = system.replies(contexts, None, progress(f"draw {seed + 1}", len(contexts)))
            drawn.append([reply.text for reply in replies])
    finally:
        system.decoding = own
    each = list(zip(*drawn, strict=True))
    records: list[dict[str, Any]] = [
        {"id": context.id, "replies": list(replies)} for context, replies in zip(contexts, each, strict=True)
    ]
    return StudyResult(variety_scores(each, resamples), records)


def variety_scores(replies: Sequence[Sequence[str]], resamples: int) -> list[Score]:
    """Scores of the replies to each context, with the same number of replies to every context.

    different: the number of distinct replies, from 1 to the number of draws; varied: the share of contexts with more
    than one. Distinct-n and the share of unique replies are computed over all draws together.
    """
    draws = len(replies[0])
    signature = Signature.of("variety", draws=draws, items=len(replies), case="lc")
    counts = np.asarray([len({" ".join(reply.lower().split()) for reply in each}) for each in replies], dtype=float)
    ones = np.ones(len(counts))

    def mean(name: str, rows: np.ndarray, unit: Any = "") -> Score:
        statistics = Statistics(np.stack([rows, ones], axis=1), "ratio")
        return score_with_interval(name, statistics, signature, "higher", unit, resamples=resamples)

    texts = [reply for each in replies for reply in each]
    spoken = [words(text) for text in texts]
    return [
        mean("different", counts),
        mean("varied", 100.0 * (counts > 1), "%"),
        distinct(spoken, 1),
        distinct(spoken, 2),
        unique_replies(texts).share,
    ]
