"""Finds overlaps between splits: testing on training data measures memorization."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from listenwell.data.dialogue import Dialogue, examples
from listenwell.data.sources.quality import fingerprint, squeeze

LONG_REPLY = 5
"""Minimum number of words for a shared reply to count: "oh no" occurs everywhere."""


@dataclass
class Overlap:
    """The overlap of two splits, counted in the second one."""

    first: str
    second: str
    dialogues: int
    """Dialogues of the second split that are also in the first."""
    replies: int
    """Listener replies of at least LONG_REPLY words in the second split that are also replies in the first."""
    replies_of: int
    """All listener replies of at least LONG_REPLY words in the second split."""


@dataclass
class Leakage:
    """Duplicates within each split, and overlaps between them."""

    within: dict[str, int] = field(default_factory=dict)
    across: list[Overlap] = field(default_factory=list)


@dataclass
class _Split:
    dialogues: list[bytes] = field(default_factory=list)
    replies: list[bytes] = field(default_factory=list)


def check(splits: Iterable[str], read: Callable[[str], Iterator[Dialogue]]) -> Leakage:
    """Check all pairs of splits; each split is read once, and only hashes are kept in memory."""
    by_split: dict[str, _Split] = {}
    for name in splits:
        held = by_split.setdefault(name, _Split())
        for dialogue in read(name):
            held.dialogues.append(fingerprint(dialogue))
            held.replies.extend(_long_replies(dialogue))
    leakage = Leakage({name: len(held.dialogues) - len(set(held.dialogues)) for name, held in by_split.items()})
    for first, second in combinations(by_split, 2):
        known, known_replies = set(by_split[first].dialogues), set(by_split[first].replies)
        leakage.across.append(
            Overlap(
                first,
                second,
                sum(mark in known for mark in by_split[second].dialogues),
                sum(mark in known_replies for mark in by_split[second].replies),
                len(by_split[second].replies),
            )
        )
    return leakage


def _long_replies(dialogue: Dialogue) -> Iterator[bytes]:
    for item in examples(dialogue):
        if item.reply is not None and len(item.reply.text.split()) >= LONG_REPLY:
            text = squeeze(item.reply.text).lower()
            yield hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
