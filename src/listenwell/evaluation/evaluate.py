"""A system on a split: every reply, every score, and a folder with both."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from listenwell import metrics
from listenwell.checkpoint import write_folder, write_json
from listenwell.dialogue import Dialogue, Example, as_heard
from listenwell.metrics import Score
from listenwell.reply import Reply
from listenwell.system import System
from listenwell.taxonomy import EMOTION_ID, EMOTIONS
from listenwell.text import words

Progress = Callable[[str, int], Callable[[int], None]]
"""Told what begins and how many items it has; returns what to tell as they are done."""


@dataclass
class Evaluation:
    """A system's scores on a split, and the replies they were computed from."""

    system: str
    scores: list[Score]
    items: list[Example]
    replies: list[Reply]
    about: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Score:
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(f"no score {name!r}, there are {', '.join(score.name for score in self.scores)}")


def evaluate(
    system: System, items: Sequence[Example], about: dict[str, Any], progress: Progress, resamples: int = 1000
) -> Evaluation:
    """Generates and scores. The system is given contexts alone: no situation, no emotion, no label."""
    items = list(items)
    if not items:
        raise ValueError("there is nothing to evaluate: no reply with a context in the data")
    heard = [as_heard(item) for item in items]
    contexts = [Dialogue(item.id, item.context) for item in heard]
    begun = time.monotonic()
    replies = system.replies(contexts, done=progress("replies", len(items)))
    seconds = time.monotonic() - begun
    likelihoods = system.likelihoods(heard, done=progress("likelihoods", len(items)))
    scores = [] if likelihoods is None else likelihood_scores(likelihoods, resamples)
    scores += emotion_scores(replies, items, resamples)
    scores += reply_scores(replies, items, resamples)
    decoding = getattr(system, "decoding", None)
    about = {
        **about,
        "items": len(items),
        "seconds generating": round(seconds, 1),
        "decoding": decoding.signature() if decoding else None,
    }
    return Evaluation(system.name, scores, items, replies, about)


def likelihood_scores(found: Any, resamples: int) -> list[Score]:
    options = {"unknown": found.unknown, "unseen_types": found.unseen_types, "resamples": resamples}
    return [
        metrics.perplexity_per_word(found.nll, found.words, **options),
        metrics.perplexity(found.nll, found.tokens, **options),
    ]


def emotion_scores(replies: Sequence[Reply], items: Sequence[Example], resamples: int) -> list[Score]:
    """Absent, not zero, for a system that does not listen for emotions or data that does not tell them."""
    gold = np.array([EMOTION_ID.get(item.emotion.name, -100) if item.emotion else -100 for item in items])
    if not all(reply.emotions for reply in replies) or not (gold >= 0).any():
        return []
    chances = np.array([[reply.emotions[name] for name in EMOTIONS] for reply in replies])
    accuracies = [metrics.accuracy_at(chances, gold, k, resamples=resamples) for k in (1, 2, 5)]
    return [*accuracies, metrics.macro_f1(chances, gold, resamples=resamples)]


def reply_scores(replies: Sequence[Reply], items: Sequence[Example], resamples: int) -> list[Score]:
    said = [words(reply.text) for reply in replies]
    references = [words(item.reply.text) if item.reply else [] for item in items]
    raw = [item.reply.text if item.reply else "" for item in items]
    unique = metrics.unique_replies(said)
    bland = metrics.bland(said, resamples=resamples)
    return [
        metrics.bleu(said, references, resamples=resamples),
        metrics.sacre_bleu([reply.text for reply in replies], raw, resamples=resamples),
        metrics.average_bleu(said, references, resamples=resamples),
        metrics.distinct(said, 1),
        metrics.distinct(said, 2),
        unique.share,
        unique.number,
        bland.sorry,
        bland.any,
        metrics.mean_length(said, resamples=resamples),
    ]


def write(evaluation: Evaluation, folder: Path) -> None:
    """scores.json and replies.jsonl, a record an item: the numbers and what they were computed from."""

    def fill(place: Path) -> None:
        with (place / "replies.jsonl").open("w", encoding="utf-8") as lines:
            for item, reply in zip(evaluation.items, evaluation.replies, strict=True):
                record = {
                    "id": item.id,
                    "context": [turn.text for turn in item.context],
                    "reference": item.reply.text if item.reply else None,
                    "gold emotion": item.emotion.name if item.emotion else None,
                    "reply": reply.text,
                    "emotion": reply.emotion,
                    "label": reply.label,
                }
                lines.write(json.dumps(record, ensure_ascii=False) + "\n")
        summary = {"system": evaluation.system, "about": evaluation.about}
        write_json(place / "scores.json", {**summary, "scores": [s.to_json() for s in evaluation.scores]})
        write_json(place / "items.json", [s.to_json(items=True) for s in evaluation.scores])

    write_folder(folder, fill)
