"""Everything that determines the records of a curation, apart from its input."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

KINDS = ("subtitles", "posts")


@dataclass(frozen=True)
class Settings:
    """Settings of the steps that work on one file at a time."""

    kind: str
    language: str
    held_out: str | None = None
    """The hash of the texts that must not be in the output."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def fingerprint(self) -> str:
        """A hash of the settings and the code; intermediate results with another fingerprint are not reused."""
        content = json.dumps([self.to_json(), code_fingerprint()], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class DialogueLabels:
    """The label of each turn with its probability, and the emotionality of the dialogue."""

    labels: tuple[str, ...]
    confidences: tuple[float, ...]
    emotionality: float | None


Label = Callable[[Sequence[Sequence[str]]], list[DialogueLabels]]
"""A function that labels dialogues, each given as a list of texts."""


class Labelling(Hashable, Protocol):
    """A classifier to label turns with. It must be picklable, and is loaded in the process that uses it."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """A hash of its weights."""
        ...

    def load(self) -> Label: ...


@cache
def code_fingerprint() -> str:
    """A hash of the modules that create records, and of the weights of the same-speaker classifier."""
    folder = Path(__file__).parent
    places = (folder, folder.parent / "sources" / "cleaning")
    files = (file for place in places for file in sorted(place.rglob("*")))
    digest = hashlib.sha256()
    for file in files:
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
