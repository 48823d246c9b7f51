"""A labeller without a model: label and emotionality are computed from the letters of a text."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from listenwell.data.curation.settings import DialogueLabels, Label
from listenwell.labels.taxonomy import LABELS


@dataclass(frozen=True)
class WordLabelling:
    """Can be pickled, as labellings must be."""

    name: str = "stand-in"
    fingerprint: str = "0"

    def load(self) -> Label:
        return _label


def _label(dialogues: Sequence[Sequence[str]]) -> list[DialogueLabels]:
    return [_one(texts) for texts in dialogues]


def _one(texts: Sequence[str]) -> DialogueLabels:
    marks = [zlib.crc32(text.encode()) for text in texts]
    names = tuple(LABELS[mark % len(LABELS)] for mark in marks)
    sure = tuple(round(mark % 997 / 997, 4) for mark in marks)
    return DialogueLabels(names, sure, round(sum(sure) / len(sure), 6))
