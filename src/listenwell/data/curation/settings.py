"""What decides the records of a curation, apart from its input."""

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
    """Of the steps that work on one file at a time."""

    kind: str
    language: str
    held_out: str | None = None
    """The hash of the texts that must not be in the output."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def fingerprint(self) -> str:
        """Differs where the settings or the code differ: what other steps made is not to be used again."""
        content = json.dumps([self.to_json(), code_fingerprint()], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class DialogueLabels:
    """The label of each turn with its probability, and the emotionality of the dialogue."""

    labels: tuple[str, ...]
    confidences: tuple[float, ...]
    emotionality: float | None


Label = Callable[[Sequence[Sequence[str]]], list[DialogueLabels]]
"""Labels dialogues, each given as its texts."""


class Labelling(Hashable, Protocol):
    """A classifier to label turns with. It can be pickled, and is loaded where it is used."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Of its weights."""
        ...

    def load(self) -> Label: ...


@cache
def code_fingerprint() -> str:
    """Of the modules that make records, and of the weights of the same-speaker classifier."""
    folder = Path(__file__).parent
    places = (folder, folder.parent / "sources" / "cleaning")
    files = (file for place in places for file in sorted(place.rglob("*")))
    digest = hashlib.sha256()
    for file in files:
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
