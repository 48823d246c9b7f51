"""What each turn expresses, for systems that read the labels of turns: given by one classifier, the same wherever.

In training, in evaluation and in talk a context has the labels that the classifier gives it, never a corpus's own. The
classifier travels with the system, as the part "labeller" of its checkpoint.
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
"""What the part of a checkpoint is called that labels turns."""

LISTENER, SENTIMENT = "listener", "sentiment"
HOUSE_PARTS = (LISTENER, LABELLER, SENTIMENT)
"""Parts of the house system beside its writer: classifiers of the dialogue, of its turns and of a reply's polarity."""

CHOOSER = "chooser"
"""An optional part of the house system: it scores how well a reply fits the dialogue."""

CHUNK = 1024
"""Texts that are labelled between two writes of the cache and reports of progress."""

MOST = 100_000
"""Texts that are remembered in memory alone: more than any split has, and no burden where a system talks for ever."""

Begin = Callable[[str, int], Callable[[int], None]]
"""Called with the name of a task and its number of texts; returns a function to call with how many are done."""


class Labels(Protocol):
    """Anything that labels texts: one of a label set for each, with how sure it is."""

    @property
    def checkpoint(self) -> Checkpoint:
        """The classifier."""
        ...

    def label(self, texts: Sequence[str]) -> list[Label]: ...


def load_labeller(part: Checkpoint, labels: LabelSet = EMOTION_INTENT) -> Labels:
    """The labeller that a checkpoint of a classifier makes; one of other labels is refused."""
    from listenwell.classifiers.labeller import Labeller

    return Labeller(part, labels)


def label_contexts(items: Iterable[Example], labeller: Labels) -> list[Example]:
    """The items with the labeller's labels on their contexts; whatever labels the turns had are forgotten."""
    items = list(items)
    known = _label_once((turn.text for item in items for turn in item.context), labeller)
    return [replace(item, context=tuple(_as(turn, known) for turn in item.context)) for item in items]


def label_all(items: Iterable[Example], labeller: Labels, labels: LabelSet = EMOTION_INTENT) -> list[Example]:
    """For learning: contexts by the labeller; a reply keeps the label of its corpus, where that is of the label set."""
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
    """Whether a turn has a label of the set."""
    return turn is not None and turn.label is not None and turn.label.name in labels


def labelled_with(labels: LabelSet, turns: Iterable[Turn | None]) -> bool:
    """Whether a corpus labels its turns by the set."""
    return are_of(labels, Counter(turn.label.name for turn in turns if turn is not None and turn.label is not None))


def are_of(labels: LabelSet, counts: Mapping[str, int]) -> bool:
    """Whether labels, each given so often, are of the set: most of them are in it, the neutral one not counted.

    Other label sets have a "neutral" too, but it means another thing beside six feelings than beside forty.
    """
    telling = {name: count for name, count in counts.items() if name != labels.neutral}
    return 2 * sum(count for name, count in telling.items() if name in labels) > sum(telling.values())


def _label_once(texts: Iterable[str], labeller: Labels) -> dict[str, Label]:
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, labeller.label(distinct), strict=True)) if distinct else {}


def _as(turn: Turn, known: dict[str, Label]) -> Turn:
    return replace(turn, label=known[turn.text])


class CachedLabeller:
    """A labeller that labels no text twice: what it said is kept in a file, a JSON line each, or in memory alone."""

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
        # Only time is lost where it cannot be kept.
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as lines:
                lines.writelines(json.dumps([mark, label.to_json()]) + "\n" for mark, label in fresh.items())

    def _read(self) -> Iterator[tuple[str, Label]]:
        if self.path is None or not self.path.is_file():
            return
        with self.path.open(encoding="utf-8") as lines:
            for line in lines:
                with suppress(ValueError, TypeError):  # a line that a hard stop cut in two
                    mark, record = json.loads(line)
                    yield mark, Label.from_json(record)


def cached_labeller(part: Checkpoint, begin: Begin | None = None, labels: LabelSet = EMOTION_INTENT) -> CachedLabeller:
    """The labeller of a checkpoint, remembering in the user's cache what these very weights said."""
    path = writable_cache() / "labels" / f"{fingerprint(part)}.jsonl"
    return CachedLabeller(load_labeller(part, labels), path, begin)


def fingerprint(part: Checkpoint) -> str:
    """Of a checkpoint's weights and tokenizer: the first 16 hex digits of the SHA-256."""
    digest = hashlib.sha256(part.tokenizer.backend.to_str().encode())
    for name, weight in sorted(part.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
