"""Does a system reply with the requested intent? Measures the share of replies in which a classifier finds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from listenwell.classifiers.label_cache import Labels
from listenwell.contract import Controls
from listenwell.data.dialogue import Example
from listenwell.decoding import Decoding
from listenwell.evaluation.evaluate import Progress
from listenwell.evaluation.experiment import StudyResult, contexts_of
from listenwell.evaluation.material import labeller_fields
from listenwell.labels.taxonomy import INTENTS, label_id
from listenwell.metrics import Score, Signature
from listenwell.metrics.bootstrap import score_with_interval
from listenwell.metrics.sums import Statistics
from listenwell.systems.base import System
from listenwell.systems.capabilities import Capabilities
from listenwell.systems.house.options import HouseDecoding


def control(
    system: System,
    items: Sequence[Example],
    labeller: Labels,
    progress: Progress,
    intents: Sequence[str] = INTENTS,
    resamples: int = 1000,
) -> StudyResult:
    """Generate a reply to every context with each intent, and check the intent with a classifier.

    The classifier is not used to select replies here. A system that reranks candidates itself may use the same
    classifier; the signature records how it reranks.
    """
    check_takes_intent(system)
    for intent in intents:
        label_id(intent)
    contexts = contexts_of(items)
    records: list[dict[str, Any]] = []
    hits = np.zeros((len(items), len(intents)))
    for column, intent in enumerate(intents):
        replies = system.replies(contexts, Controls(label=intent), progress(intent, len(items)))
        labels = labeller.label([reply.text for reply in replies])
        hits[:, column] = [label.name == intent for label in labels]
        records += [
            {"id": context.id, "asked": intent, "reply": reply.text, "recognised": label.name}
            for context, reply, label in zip(contexts, replies, labels, strict=True)
        ]
    decoding = HouseDecoding.extend(Capabilities.of(system).decoding or Decoding())  # an endpoint's is unknown
    how = {"intents": len(intents), "items": len(items), **labeller_fields(labeller)}
    how |= {"guidance": f"{decoding.guidance:g}"} if decoding.guidance else {}
    signature = Signature.of("control", **how, reranked=decoding.rerank.signature() or "no")
    return StudyResult(control_scores(hits, intents, signature, resamples), records)


def check_takes_intent(system: System) -> None:
    if not Capabilities.of(system).takes_label:
        raise ValueError(f"{system.name} does not take an intent; house and meed2 do")


def control_scores(hits: np.ndarray, intents: Sequence[str], signature: Signature, resamples: int) -> list[Score]:
    """In percent: the mean over all intents, the minimum, and each. hits: (items, intents), 1 if recognized.

    The minimum over intents has no interval, since resampling would bias it downward.
    """
    shares = {"mean": hits.mean(axis=1), **dict(zip(intents, hits.T, strict=True))}
    scores = []
    for name, share in shares.items():
        statistics = Statistics(np.stack([100 * share, np.ones(len(hits))], axis=1), "ratio")
        scores.append(score_with_interval(f"control-{name}", statistics, signature, "higher", "%", resamples=resamples))
    mean, *each = scores
    least = min(score.value for score in each)
    return [mean, Score("control-least", least, signature=signature.plus(ci="none"), unit="%"), *each]
