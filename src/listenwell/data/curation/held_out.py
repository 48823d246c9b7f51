"""Held-out data: keeps the test split of an evaluation corpus out of the training data.

A dialogue is dropped if one of its longer turns is nearly identical to a text of that split, or if the whole dialogue
is in it. The matching text is reported.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from listenwell.data import sources
from listenwell.data.curation.atomic import written_whole
from listenwell.data.curation.near_duplicates import THRESHOLD, plain_words, shingles
from listenwell.data.dialogue import Dialogue

LONG_TEXT = 5
"""Minimum number of words for a text to be compared: "oh no" occurs everywhere."""


class Leak(NamedTuple):
    """A turn or dialogue that is in the held-out split, or nearly so."""

    turn: int | None
    """The index of the turn; None for a whole dialogue."""
    match: str
    similarity: float


class HeldOut:
    """The texts of a split, indexed by their word trigrams."""

    def __init__(self, texts: Iterable[tuple[str, str]], dialogues: dict[str, str]) -> None:
        self._names: list[str] = []
        self._sizes: list[int] = []
        self._having: dict[int, list[int]] = defaultdict(list)
        self._dialogues = dialogues
        for name, text in texts:
            words = plain_words(text)
            if len(words) < LONG_TEXT:
                continue
            marks = shingles(words)
            for mark in marks.tolist():
                self._having[mark].append(len(self._names))
            self._names.append(name)
            self._sizes.append(len(marks))

    def find(self, turns: Sequence[str]) -> Leak | None:
        """The first longer turn of a dialogue that is in the split; else the whole dialogue, if that is in it."""
        words = [plain_words(text) for text in turns]
        for index, own in enumerate(words):
            if len(own) >= LONG_TEXT and (nearest := self._nearest(shingles(own))):
                return Leak(index, *nearest)
        name = self._dialogues.get(_mark(words))
        return None if name is None else Leak(None, name, 1.0)

    def _nearest(self, marks: np.ndarray) -> tuple[str, float] | None:
        """The most similar text, if the similarity reaches the threshold."""
        needed = math.ceil(THRESHOLD * len(marks))
        lists = [self._having[mark] for mark in marks.tolist() if mark in self._having]
        if len(lists) < needed:
            return None
        shared = Counter(number for numbers in lists for number in numbers)
        size = len(marks)
        best = max(((both / (size + self._sizes[n] - both), -n) for n, both in shared.items()), default=(0.0, 0))
        return (self._names[-best[1]], round(best[0], 4)) if best[0] >= THRESHOLD else None


def prepare(source: str, folder: Path) -> dict[str, Any]:
    """Write the texts of a source's test split to `folder`, for `load`; returns a description of them."""
    dialogues = list(sources.read(source, split="test"))
    if not dialogues:
        raise ValueError(f"{source} has no test split to hold out; name another corpus with --held-out, or none")
    content = {
        "texts": [[name, text] for dialogue in dialogues for name, text in _texts(dialogue)],
        "dialogues": {
            _mark([plain_words(turn.text) for turn in dialogue.turns]): dialogue.id for dialogue in dialogues
        },
    }
    data = json.dumps(content, ensure_ascii=False).encode()
    name = hashlib.sha256(data).hexdigest()[:16]
    with written_whole(folder / f"held-out-{name}.json") as unfinished:
        unfinished.write_bytes(data)
    return {"source": source, "split": "test", "texts": len(content["texts"]), "hash": name}


@lru_cache(maxsize=1)
def load(path: Path) -> HeldOut:
    content = json.loads(path.read_bytes())
    return HeldOut(content["texts"], content["dialogues"])


def _texts(dialogue: Dialogue) -> Iterable[tuple[str, str]]:
    if dialogue.situation:
        yield f"{dialogue.id}#situation", dialogue.situation
    for index, turn in enumerate(dialogue.turns):
        yield f"{dialogue.id}#{index}", turn.text


def _mark(turns: Sequence[Sequence[str]]) -> str:
    text = "\n".join(" ".join(words) for words in turns)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()
