"""Unpaired emotional texts from open-domain talk, which Dual-Emp is trained on besides pairs (§ 4.2).

Every utterance of a few words is classified, and kept if the probability of its likeliest emotion among the 32 reaches
the threshold. No dialogue gives both a context and a response, so that no pair can be reassembled.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from listenwell.classifiers.labeller import Labeller
from listenwell.data.dialogue import Dialogue, Label, Role, Turn
from listenwell.labels.taxonomy import EMOTIONS, LABEL_ID
from listenwell.text.words import words

SOURCES = "goemotions+edos+dailydialog+emotionlines+xdailydialog"
"""Open-domain talk, in place of the paper's Reddit and Twitter; the last one has DailyDialog's train split."""
THRESHOLDS = (0.50, 0.55, 0.60, 0.65, 0.70)
"""The thresholds of Table 4."""
LEAST_WORDS = 3
BLOCK = 2048
"""Number of utterances that are classified together."""
SIDES: dict[Role, str] = {"speaker": "context", "listener": "response"}


@dataclass(slots=True)
class UnpairedCounts:
    """Counts of contexts and responses: all that were read, and those that each threshold keeps."""

    read: Counter[Role] = field(default_factory=Counter)
    too_short: Counter[Role] = field(default_factory=Counter)
    repeated: Counter[Role] = field(default_factory=Counter)
    kept_by_side: dict[float, dict[Role, Counter[str]]] = field(
        default_factory=lambda: {s: _by_side() for s in THRESHOLDS}
    )
    """For each threshold, by emotion."""

    def include(self, *thresholds: float) -> None:
        """Adds thresholds to count, besides those of the paper."""
        for threshold in thresholds:
            check_threshold(threshold)
            self.kept_by_side.setdefault(threshold, _by_side())

    def number(self, threshold: float, role: Role) -> int:
        return self.kept_by_side[threshold][role].total()

    def add(self, role: Role, emotion: Label) -> None:
        for threshold, by_side in self.kept_by_side.items():
            by_side[role][emotion.name] += is_sure(emotion, threshold)

    def to_json(self) -> dict[str, Any]:
        numbers = {
            f"{s:.2f}": {side: self.number(s, role) for role, side in SIDES.items()} for s in sorted(self.kept_by_side)
        }
        emotions = {
            f"{s:.2f}": {
                side: {name: self.kept_by_side[s][role][name] for name in EMOTIONS} for role, side in SIDES.items()
            }
            for s in sorted(self.kept_by_side)
        }
        counters = {"read": self.read, "too short": self.too_short, "repeated": self.repeated}
        sides = {name: {side: counter[role] for role, side in SIDES.items()} for name, counter in counters.items()}
        return {**sides, "kept": numbers, "emotions": emotions}


def unpaired(
    dialogues: Iterable[Dialogue],
    labeller: Labeller,
    threshold: float,
    counts: UnpairedCounts | None = None,
    done: Callable[[int], None] | None = None,
) -> Iterator[Dialogue]:
    """Yields single-turn dialogues, each with its emotion: a speaker turn is a context, a listener turn a response."""
    counts = counts or UnpairedCounts()
    counts.include(threshold)
    rest = utterances(dialogues, counts)
    while block := list(islice(rest, BLOCK)):
        names, chances = likeliest_emotions(labeller, [dialogue.turns[0].text for dialogue in block])
        for dialogue, name, chance in zip(block, names, chances, strict=True):
            # Compares the rounded value that is written: filtering the file for 0.5 at 0.6 gives the file for 0.6.
            emotion = Label(name, "machine", round(min(float(chance), 1.0), 4))
            counts.add(dialogue.turns[0].speaker, emotion)
            if is_sure(emotion, threshold):
                yield replace(dialogue, emotion=emotion)
        if done is not None:
            done(len(block))


def check_threshold(threshold: float) -> None:
    if not 0 < threshold <= 1:
        raise ValueError(f"the threshold is a probability above 0 and at most 1, found {threshold}")


def is_sure(emotion: Label | None, threshold: float) -> bool:
    return emotion is not None and emotion.confidence is not None and emotion.confidence >= threshold


def likeliest_emotions(labeller: Labeller, texts: list[str]) -> tuple[list[str], np.ndarray]:
    """Returns the likeliest of the 32 emotions for each text, and its probability among them."""
    chances = labeller.distribution(texts)[:, [LABEL_ID[name] for name in EMOTIONS]]
    chances = chances / chances.sum(axis=1, keepdims=True)
    return [EMOTIONS[index] for index in chances.argmax(axis=1)], chances.max(axis=1)


def side_of(dialogue: Dialogue) -> Role:
    """Whether a dialogue gives contexts or responses. Depends on its source and id only, not on order or threshold."""
    digest = hashlib.sha256(f"{dialogue.source}/{dialogue.id}".encode()).digest()
    return "speaker" if digest[0] % 2 else "listener"


def utterances(dialogues: Iterable[Dialogue], counts: UnpairedCounts) -> Iterator[Dialogue]:
    """Yields every utterance of at least LEAST_WORDS as a dialogue of its own, each text once."""
    seen: set[str] = set()
    for dialogue in dialogues:
        role = side_of(dialogue)
        for index, turn in enumerate(dialogue.turns):
            counts.read[role] += 1
            tokens = words(turn.text)
            if len(tokens) < LEAST_WORDS:
                counts.too_short[role] += 1
            elif (text := " ".join(tokens)) in seen:
                counts.repeated[role] += 1
            else:
                seen.add(text)
                alone = (Turn(role, turn.text),)
                yield Dialogue(f"{dialogue.source}-{dialogue.id}-{index}", alone, source=dialogue.source, split="train")


def _by_side() -> dict[Role, Counter[str]]:
    return {role: Counter() for role in SIDES}
