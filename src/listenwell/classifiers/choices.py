"""The training data of a chooser: dialogues with replies that a person gave here, gave elsewhere, or a system wrote.

Each reply becomes a dialogue of its own whose last turn is labelled with its origin:

- *here*: the reply of the corpus;
- *elsewhere*: the reply to the most similar dialogue of the same emotion: similar in topic and feeling, so that the
  difference is whether it answers what was said;
- *written*: the candidates of a system, as `listenwell generate` writes them.

One dialogue in twenty is for validation, with all its replies.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from listenwell.data.dialogue import Dialogue, Example, Label, Turn

VALID_SHARE = 20
"""One dialogue in this many is for validation."""


def read_candidates(path: Path) -> dict[str, list[str]]:
    """Returns the texts that a system wrote for each item, by item id, from a file of `listenwell generate`."""
    found: dict[str, list[str]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                found[record["id"]] = [candidate["text"] for candidate in record["candidates"]]
            except (ValueError, KeyError, TypeError) as problem:
                raise ValueError(
                    f"{path} line {number}: expected a record with an id and candidates, as `listenwell generate` "
                    f"writes it ({problem!r})"
                ) from None
    return found


def choices(items: Sequence[Example], written: Mapping[str, Sequence[str]]) -> Iterator[Dialogue]:
    """Yields the replies of each item, labelled with their origin. No text appears twice for an item."""
    elsewhere = nearest_replies(items)
    for item, other in zip(items, elsewhere, strict=True):
        assert item.reply is not None
        said = {_spelt(item.reply.text)}
        yield _choice(item, item.reply.text, "here", 0)
        replies = [("elsewhere", other)] if other is not None else []
        replies += [("written", text) for text in written.get(item.id, ())]
        for number, (origin, text) in enumerate(replies, 1):
            if _spelt(text) and _spelt(text) not in said:
                said.add(_spelt(text))
                yield _choice(item, text, origin, number)


def nearest_replies(items: Sequence[Example]) -> list[str | None]:
    """Returns, for each item, the reply to the item with the most similar speaker turns in another dialogue of the same
    emotion; None if there is none."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [" ".join(turn.text for turn in item.context if turn.speaker == "speaker") for item in items]
    table = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts)
    groups: dict[str | None, list[int]] = defaultdict(list)
    for row, item in enumerate(items):
        groups[item.emotion.name if item.emotion else None].append(row)
    nearest: list[str | None] = [None] * len(items)
    for rows in groups.values():
        part = table[rows]
        alike = (part @ part.T).toarray()
        for place, row in enumerate(rows):
            same = [other for other, index in enumerate(rows) if _dialogue(items[index]) == _dialogue(items[row])]
            alike[place, same] = -1.0
            best = int(np.argmax(alike[place]))
            reply = items[rows[best]].reply
            if alike[place, best] >= 0 and reply is not None:
                nearest[row] = reply.text
    return nearest


def _choice(item: Example, text: str, origin: str, number: int) -> Dialogue:
    context = tuple(Turn(turn.speaker, turn.text) for turn in item.context)
    reply = Turn("listener", text, Label(origin))
    split = "valid" if _is_valid(_dialogue(item)) else "train"
    return Dialogue(f"{item.id}-{number}", (*context, reply), emotion=item.emotion, language=item.language, split=split)


def _dialogue(item: Example) -> str:
    return item.id.split("#")[0]


def _is_valid(dialogue: str) -> bool:
    return int.from_bytes(blake2b(dialogue.encode(), digest_size=4).digest()) % VALID_SHARE == 0


def _spelt(text: str) -> str:
    """Normalizes a text for comparison: ignores case, punctuation and spaces."""
    return " ".join(re.findall(r"[\w']+", text.lower()))
