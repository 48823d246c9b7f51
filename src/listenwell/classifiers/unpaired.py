"""Emotional texts without a partner, from open-domain talk: what Dual-Emp learns from beside pairs (§ 4.2).

Every utterance is classified; one whose likeliest emotion has at least the threshold among the 32 is kept, if it has a
few words. No dialogue gives both a context and a response, so that no pair can be put together again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from listenwell.classifiers.labeller import Labeller
from listenwell.data.dialogue import Dialogue, Label, Role, Turn
from listenwell.labels.taxonomy import EMOTIONS, LABEL_ID
from listenwell.text.words import words

SOURCES = "goemotions+edos+dailydialog+emotionlines"
"""The open-domain talk that is at hand; the paper has Reddit and Twitter."""
THRESHOLDS = (0.50, 0.55, 0.60, 0.65, 0.70)
"""Those of Table 4."""
LEAST_WORDS = 3
BLOCK = 2048
"""Utterances that are classified together."""
SIDES: dict[Role, str] = {"speaker": "context", "listener": "response"}


@dataclass(slots=True)
class UnpairedCounts:
    """How many contexts and responses there are: all that were read, and those that each threshold keeps."""

    read: Counter[Role] = field(default_factory=Counter)
    too_short: Counter[Role] = field(default_factory=Counter)
    repeated: Counter[Role] = field(default_factory=Counter)
    kept: dict[float, Counter[Role]] = field(default_factory=lambda: {s: Counter() for s in THRESHOLDS})
    emotions: dict[Role, Counter[str]] = field(default_factory=lambda: {role: Counter() for role in SIDES})
    """Of what was written, by emotion."""


def unpaired(
    dialogues: Iterable[Dialogue],
    labeller: Labeller,
    threshold: float,
    counts: UnpairedCounts | None = None,
    done: Callable[[int], None] | None = None,
) -> Iterator[Dialogue]:
    """Dialogues of a single turn: a speaker's is a context, a listener's a response, each with its emotion."""
    if not 0 < threshold <= 1:
        raise ValueError(f"the threshold is a probability above 0 and at most 1, found {threshold}")
    counts = counts or UnpairedCounts()
    counts.kept.setdefault(threshold, Counter())
    rest = _utterances(dialogues, counts)
    while block := list(islice(rest, BLOCK)):
        names, chances = likeliest_emotions(labeller, [dialogue.turns[0].text for dialogue in block])
        for dialogue, name, chance in zip(block, names, chances, strict=True):
            role = dialogue.turns[0].speaker
            for least, kept in counts.kept.items():
                kept[role] += chance >= least
            if chance >= threshold:
                counts.emotions[role][name] += 1
                yield _with_emotion(dialogue, name, float(chance))
        if done is not None:
            done(len(block))


def likeliest_emotions(labeller: Labeller, texts: list[str]) -> tuple[list[str], np.ndarray]:
    """The likeliest of the 32 emotions for each text, and its probability among them."""
    chances = labeller.distribution(texts)[:, [LABEL_ID[name] for name in EMOTIONS]]
    chances = chances / chances.sum(axis=1, keepdims=True)
    return [EMOTIONS[index] for index in chances.argmax(axis=1)], chances.max(axis=1)


def side_of(dialogue: Dialogue) -> Role:
    """Whether a dialogue gives contexts or responses: by its id alone, so that no order and no threshold changes it."""
    digest = hashlib.sha256(f"{dialogue.source}/{dialogue.id}".encode()).digest()
    return "speaker" if digest[0] % 2 else "listener"


def _utterances(dialogues: Iterable[Dialogue], counts: UnpairedCounts) -> Iterator[Dialogue]:
    """Every utterance of some length as a dialogue of its own, each text once."""
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


def _with_emotion(dialogue: Dialogue, name: str, chance: float) -> Dialogue:
    label = Label(name, "machine", round(min(chance, 1.0), 4))
    return Dialogue(dialogue.id, dialogue.turns, label, source=dialogue.source, split=dialogue.split)
