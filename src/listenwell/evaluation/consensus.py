"""Is a discrete latent used? Measures its information on the context and its effect on perplexity and replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from listenwell.contract import Controls
from listenwell.data.dialogue import Example
from listenwell.evaluation.evaluate import Progress
from listenwell.evaluation.experiment import StudyResult, contexts_of
from listenwell.metrics import Score, Signature
from listenwell.metrics.bootstrap import score_with_interval
from listenwell.metrics.sums import Statistics
from listenwell.systems.base import LatentScores, System

USED_FROM = 0.01
"""A value counts as used if it is the likeliest one for at least this share of contexts."""


class SystemWithLatent(System, Protocol):
    """A system with a discrete latent that can be inspected."""

    def latent_scores(
        self, items: Sequence[Example], done: Callable[[int], None] | None = None
    ) -> LatentScores | None: ...


def consensus(
    system: SystemWithLatent,
    items: Sequence[Example],
    progress: Progress,
    shown: int = 5,
    values: int = 5,
    resamples: int = 1000,
) -> StudyResult:
    """Scores of the latent over all items, and replies to some contexts for its most common values."""
    contexts = contexts_of(items)
    scores = system.latent_scores(items, progress("latent", len(items)))
    if scores is None:
        raise ValueError(f"{system.name} has no discrete latent; dual-emp and sing-emp have one")
    examples = [contexts[index * len(contexts) // shown] for index in range(min(shown, len(contexts)))]
    counts = np.bincount(scores.log_q.argmax(axis=1), minlength=scores.log_q.shape[1])
    common = counts.argsort(kind="stable")[::-1][:values].tolist()
    done = progress("replies", (len(common) + 1) * len(examples))
    records: list[dict[str, Any]] = [
        {"id": context.id, "context": [turn.text for turn in context.turns], "replies": {}} for context in examples
    ]
    for value in (None, *common):
        replies = system.replies(examples, Controls(latent_value=value), done)
        for record, reply in zip(records, replies, strict=True):
            record["replies"]["chosen" if value is None else str(value)] = {"text": reply.text, **reply.reasons}
    return StudyResult(latent_statistics(scores, resamples), records)


def latent_statistics(scores: LatentScores, resamples: int) -> list[Score]:
    """How informative z is about the context, and how much it lowers the perplexity.

    information: H(mean q) − mean H(q), in nats: 0 if z is the same for every context, log K at most.
    values-used: the number of values that are the likeliest one for at least 1 % of the contexts.
    perplexity-latent: per token, from Σ_z q(z|c) p(y|c,z); perplexity-other-latent: the same with the q of another
    context, half the items away. latent-ratio: the second divided by the first; 1 if z has no effect.
    """
    count, values = scores.log_q.shape
    signature = Signature.of("consensus", values=values, items=count)
    own = _costs(scores.log_q, scores.nll)
    others = _costs(np.roll(scores.log_q, -(count // 2), axis=0), scores.nll)

    def perplexity(name: str, rows: np.ndarray, better: Literal["higher", "lower"] = "lower") -> Score:
        statistics = Statistics(np.stack([rows, scores.tokens], axis=1), "exp-ratio")
        return score_with_interval(name, statistics, signature.plus(unit="token"), better, resamples=resamples)

    q = np.exp(scores.log_q)
    mean = q.mean(axis=0)
    information = -(mean * np.log(np.clip(mean, 1e-12, None))).sum() + (q * scores.log_q).sum(axis=1).mean()
    used = np.bincount(scores.log_q.argmax(axis=1), minlength=values) >= USED_FROM * count
    return [
        Score("information", float(information), signature=signature.plus(ci="none")),
        Score("values-used", float(used.sum()), signature=signature.plus(ci="none")),
        perplexity("perplexity-latent", own),
        perplexity("perplexity-other-latent", others),
        perplexity("latent-ratio", others - own, "higher"),
    ]


def _costs(log_q: np.ndarray, nll: np.ndarray) -> np.ndarray:
    """−log Σ_z q(z) p(reply | z) for each item."""
    return -np.logaddexp.reduce(log_q - nll, axis=1)
