"""Labels of turns for systems that read them, always given by the same classifier.

In training, in evaluation and in conversation, a context has the labels that the classifier predicts, never a corpus's
own. The classifier is part of the system's checkpoint, under the name "labeller".
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from listenwell.data.dialogue import Example, Label, Turn
from listenwell.labels.sets import EMOTION_INTENT, LabelSet
from listenwell.paths import writable_cache

if TYPE_CHECKING:
    from listenwell.checkpoint import Checkpoint

LABELLER = "labeller"
"""The name of the part of a checkpoint that labels turns."""

LISTENER, SENTIMENT = "listener", "sentiment"
HOUSE_PARTS = (LISTENER, LABELLER, SENTIMENT)
"""Parts of the house system besides its writer: classifiers of the dialogue, its turns and a reply's polarity."""

CHOOSER = "chooser"
"""An optional part of the house system: it scores how well a reply fits the dialogue."""

CHUNK = 1024
"""Number of texts labelled between two cache writes and progress reports."""

MOST = 100_000
"""Maximum number of texts in a cache without a file: more than any split has, and small enough for a system that runs
forever."""

Begin = Callable[[str, int], Callable[[int], None]]
"""Called with the name of a task and its number of texts; returns a function to call with the number just done."""


class Labels(Protocol):
    """Anything that labels texts: one label from a label set for each, with a confidence."""

    @property
    def checkpoint(self) -> Checkpoint:
        """The classifier."""
        ...

    def label(self, texts: Sequence[str]) -> list[Label]: ...


def load_labeller(part: Checkpoint, labels: LabelSet = EMOTION_INTENT) -> Labels:
    """Returns a labeller from a classifier's checkpoint. A classifier with other labels is an error."""
    from listenwell.classifiers.labeller import Labeller

    return Labeller(part, labels)


def label_contexts(items: Iterable[Example], labeller: Labels) -> list[Example]:
    """Labels the contexts of the items, replacing any labels the turns had."""
    items = list(items)
    known = _label_once((turn.text for item in items for turn in item.context), labeller)
    return [replace(item, context=tuple(_as(turn, known) for turn in item.context)) for item in items]


def label_all(items: Iterable[Example], labeller: Labels, labels: LabelSet = EMOTION_INTENT) -> list[Example]:
    """Labels items for training: contexts by the labeller; replies keep a corpus's labels if these are of the set."""
    items = list(items)
    own = labelled_with(labels, (item.reply for item in items))

    def keeps(turn: Turn) -> bool:
        return own and is_labelled(turn, labels)

    bare = [item.reply.text for item in items if item.reply is not None and not keeps(item.reply)]
    known = _label_once([*(turn.text for item in items for turn in item.context), *bare], labeller)

    def reply(turn: Turn | None) -> Turn | None:
        return turn if turn is None or keeps(turn) else _as(turn, known)

    return [
        replace(item, context=tuple(_as(turn, known) for turn in item.context), reply=reply(item.reply))
        for item in items
    ]


def is_labelled(turn: Turn | None, labels: LabelSet = EMOTION_INTENT) -> bool:
    """Whether a turn has a label from the set."""
    return turn is not None and turn.label is not None and turn.label.name in labels


def labelled_with(labels: LabelSet, turns: Iterable[Turn | None]) -> bool:
    """Whether a corpus labels its turns with this set."""
    return are_of(labels, Counter(turn.label.name for turn in turns if turn is not None and turn.label is not None))


def are_of(labels: LabelSet, counts: Mapping[str, int]) -> bool:
    """Whether label counts belong to the set: most of the labels are in it, not counting the neutral one.

    Other label sets have a "neutral" too, but it means something else among six feelings than among forty.
    """
    telling = {name: count for name, count in counts.items() if name != labels.neutral}
    return 2 * sum(count for name, count in telling.items() if name in labels) > sum(telling.values())


def _label_once(texts: Iterable[str], labeller: Labels) -> dict[str, Label]:
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, labeller.label(distinct), strict=True)) if distinct else {}


def _as(turn: Turn, known: dict[str, Label]) -> Turn:
    return replace(turn, label=known[turn.text])


class CachedLabeller:
    """A labeller that labels no text twice. Labels are cached in a file, one JSON line each, or in memory only."""

    def __init__(self, labeller: Labels, path: Path | None = None, begin: Begin | None = None) -> None:
        self.labeller, self.path, self.begin = labeller, path, begin
        self.known = dict(self._read())

    @property
    def checkpoint(self) -> Checkpoint:
        return self.labeller.checkpoint

    def label(self, texts: Sequence[str]) -> list[Label]:
        if self.path is None and len(self.known) > MOST:
            self.known = {}
        known = self.known
        marks = [_mark(text) for text in texts]
        lacking = list({mark: text for mark, text in zip(marks, texts, strict=True) if mark not in known}.items())
        done = self.begin("labelling turns", len(lacking)) if self.begin is not None and lacking else None
        for start in range(0, len(lacking), CHUNK):
            chunk = lacking[start : start + CHUNK]
            labels = self.labeller.label([text for _, text in chunk])
            fresh = {mark: label for (mark, _), label in zip(chunk, labels, strict=True)}
            known.update(fresh)
            self._keep(fresh)
            if done is not None:
                done(len(chunk))
        return [known[mark] for mark in marks]

    def _keep(self, fresh: dict[str, Label]) -> None:
        if self.path is None:
            return
        # Without a cache, only time is lost.
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as lines:
                lines.writelines(json.dumps([mark, label.to_json()]) + "\n" for mark, label in fresh.items())

    def _read(self) -> Iterator[tuple[str, Label]]:
        if self.path is None or not self.path.is_file():
            return
        with self.path.open(encoding="utf-8") as lines:
            for line in lines:
                with suppress(ValueError, TypeError):  # skips a line that was cut off when the process was killed
                    mark, record = json.loads(line)
                    yield mark, Label.from_json(record)


def cached_labeller(part: Checkpoint, begin: Begin | None = None, labels: LabelSet = EMOTION_INTENT) -> CachedLabeller:
    """Returns the labeller of a checkpoint, with a file in the user's cache that belongs to exactly these weights."""
    path = writable_cache() / "labels" / f"{fingerprint(part)}.jsonl"
    return CachedLabeller(load_labeller(part, labels), path, begin)


def fingerprint(part: Checkpoint) -> str:
    """Returns the first 16 hex digits of the SHA-256 of a checkpoint's weights and tokenizer."""
    digest = hashlib.sha256(part.tokenizer.backend.to_str().encode())
    for name, weight in sorted(part.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
