"""What an evaluation has so far, kept beside where it will stand: one that is cut off goes on from there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.data.dialogue import Example
from listenwell.outputs import OutputError, discard
from listenwell.systems.bot import Likelihoods
from listenwell.systems.reply import Candidate, Reply

REPLIES, LIKELIHOODS = "replies.jsonl", "likelihoods.npz"


def mark(items: Sequence[Example], *rest: object) -> str:
    """Of what is asked: the items with their turns, and whatever else the replies depend on."""
    digest = hashlib.sha256(repr(rest).encode("utf-8", "replace"))
    for item in items:
        turns = [*(turn.text for turn in item.context), item.reply.text if item.reply else ""]
        digest.update(json.dumps([item.id, turns]).encode())
    return digest.hexdigest()[:16]


class Kept:
    """A folder with the replies so far, one line per chunk, and the likelihoods once they are there."""

    def __init__(self, folder: Path, asked: str) -> None:
        """`asked` marks the evaluation: what was kept of another one in this place goes."""
        self.folder = folder
        self.chunks: dict[int, tuple[list[Reply], float]] = {}
        """By the place of the first reply: the replies, and the seconds that they took. Several processes finish them
        in any order."""
        if (folder / asked).is_file():
            self._read()
        else:
            if not discard(folder, self._own_names()):
                raise OutputError(f"{folder} holds what no evaluation wrote, and nothing was done; move it away")
            folder.mkdir(parents=True)
            (folder / asked).touch()

    @property
    def replies(self) -> list[Reply]:
        """From the first one on, as far as none is missing."""
        return [reply for replies, _ in self._unbroken() for reply in replies]

    @property
    def seconds(self) -> float:
        """Spent on them."""
        return sum(seconds for _, seconds in self._unbroken())

    def __len__(self) -> int:
        """How many replies are kept, also those that come after a gap."""
        return len({first + row for first, (replies, _) in self.chunks.items() for row in range(len(replies))})

    def add(self, replies: Sequence[Reply], seconds: float, first: int | None = None) -> None:
        """A chunk of replies that took so long; without `first`, the place of its first one, it follows the others."""
        first = len(self.replies) if first is None else first
        with (self.folder / REPLIES).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([seconds, [asdict(reply) for reply in replies], first]) + "\n")
        self.chunks[first] = list(replies), seconds

    def likelihoods(self) -> Likelihoods | None:
        with suppress(OSError, ValueError, KeyError, EOFError), np.load(self.folder / LIKELIHOODS) as found:
            arrays = {name: found[name] for name in found.files}
            return Likelihoods(unseen_types=int(arrays.pop("unseen_types")), **arrays)
        return None

    def keep(self, likelihoods: Likelihoods) -> None:
        np.savez(self.folder / LIKELIHOODS, **asdict(likelihoods))

    def gone(self) -> None:
        """All is written where it belongs."""
        discard(self.folder, self._own_names())

    def _unbroken(self) -> Iterator[tuple[list[Reply], float]]:
        place = 0
        while place in self.chunks and self.chunks[place][0]:
            yield self.chunks[place]
            place += len(self.chunks[place][0])

    def _own_names(self) -> set[str]:
        marks = {path.name for path in self.folder.glob("*") if path.is_file() and not path.stat().st_size}
        return {REPLIES, LIKELIHOODS, *marks}

    def _read(self) -> None:
        whole = []
        with suppress(FileNotFoundError):
            for line in (self.folder / REPLIES).read_text(encoding="utf-8").splitlines(keepends=True):
                try:
                    seconds, replies, *place = json.loads(line)
                except ValueError:
                    break  # cut in two by a hard stop
                whole.append(line)
                first = place[0] if place else len(self.replies)  # earlier versions wrote chunks in order alone
                self.chunks[first] = [_reply(reply) for reply in replies], seconds
            (self.folder / REPLIES).write_text("".join(whole), encoding="utf-8")


def _reply(record: dict[str, Any]) -> Reply:
    candidates = tuple(Candidate.from_json(candidate) for candidate in record.pop("candidates"))
    return Reply(**record, candidates=candidates)
