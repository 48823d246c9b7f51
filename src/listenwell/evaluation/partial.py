"""Partial results of an evaluation, saved next to its folder: one that is interrupted resumes from there."""

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
from listenwell.systems.base import Likelihoods
from listenwell.systems.reply import Candidate, Reply

REPLIES, LIKELIHOODS = "replies.jsonl", "likelihoods.npz"


def request_key(items: Sequence[Example], *rest: object) -> str:
    """A hash of the request: the items with their turns, and whatever else the replies depend on."""
    digest = hashlib.sha256(repr(rest).encode("utf-8", "replace"))
    for item in items:
        turns = [*(turn.text for turn in item.context), item.reply.text if item.reply else ""]
        digest.update(json.dumps([item.id, turns]).encode())
    return digest.hexdigest()[:16]


class PartialResults:
    """A folder with the replies so far, one line per chunk, and the likelihoods once they are there."""

    def __init__(self, folder: Path, key: str) -> None:
        """`key` identifies the evaluation: partial results of another one in this folder are deleted."""
        self.folder = folder
        self.chunks: dict[int, tuple[list[Reply], float]] = {}
        """By the index of the first reply: the replies, and the seconds they took. Several processes finish chunks in
        any order."""
        if (folder / key).is_file():
            self._read()
        else:
            if not discard(folder, self._own_names()):
                raise OutputError(f"{folder} holds what no evaluation wrote, and nothing was done; move it away")
            folder.mkdir(parents=True)
            (folder / key).touch()

    @property
    def replies(self) -> list[Reply]:
        """The replies from the first one up to the first gap."""
        return [reply for replies, _ in self._unbroken() for reply in replies]

    @property
    def seconds(self) -> float:
        """The seconds spent on these replies."""
        return sum(seconds for _, seconds in self._unbroken())

    def __len__(self) -> int:
        """How many replies are saved, including those after a gap."""
        return len({first + row for first, (replies, _) in self.chunks.items() for row in range(len(replies))})

    def add(self, replies: Sequence[Reply], seconds: float, first: int | None = None) -> None:
        """Saves a chunk of replies; without `first`, the index of its first reply, it follows the others."""
        first = len(self.replies) if first is None else first
        with (self.folder / REPLIES).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([seconds, [asdict(reply) for reply in replies], first]) + "\n")
        self.chunks[first] = list(replies), seconds

    def likelihoods(self) -> Likelihoods | None:
        with suppress(OSError, ValueError, KeyError, EOFError), np.load(self.folder / LIKELIHOODS) as file:
            arrays = {name: file[name] for name in file.files}
            return Likelihoods(unseen_types=int(arrays.pop("unseen_types")), **arrays)
        return None

    def save_likelihoods(self, likelihoods: Likelihoods) -> None:
        np.savez(self.folder / LIKELIHOODS, **asdict(likelihoods))

    def delete(self) -> None:
        """Delete the partial results, once the evaluation itself is written."""
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
                    break  # cut off by a hard stop
                whole.append(line)
                first = place[0] if place else len(self.replies)  # earlier versions only wrote chunks in order
                self.chunks[first] = [_reply(reply) for reply in replies], seconds
            (self.folder / REPLIES).write_text("".join(whole), encoding="utf-8")


def _reply(record: dict[str, Any]) -> Reply:
    candidates = tuple(Candidate.from_json(candidate) for candidate in record.pop("candidates"))
    return Reply(**record, candidates=candidates)
