"""A curated dialogue and its serialization: a row of a Parquet file, with its source file and cue numbers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from listenwell.data.dialogue import ROLES, Dialogue, Label, Turn

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class CuratedTurn:
    """One utterance with its cues and its label."""

    text: str
    cues: tuple[int, ...]
    """The numbers of its cues in the file, or for a post its position in the thread; both from 1."""
    label: str | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class CuratedDialogue:
    """A dialogue and its origin."""

    id: str
    file: str
    turns: tuple[CuratedTurn, ...]
    language: str
    source: str
    """ "subtitles" or "posts"."""
    split: str
    line: int | None = None
    """The line in the file, for files with one thread per line."""
    start: float | None = None
    end: float | None = None
    """Seconds."""
    emotionality: float | None = None
    """The mean over the turns of p(any of the 32 emotions)."""
    selected: bool = field(default=False, compare=False)
    """Whether it is one of the most emotional."""

    def to_row(self) -> dict[str, Any]:
        """A row of the Parquet files, without `selected`."""
        turns = [
            {
                "speaker": ROLES[index % 2],
                "text": turn.text,
                "cues": list(turn.cues),
                "label": turn.label,
                "confidence": turn.confidence,
            }
            for index, turn in enumerate(self.turns)
        ]
        names = ("id", "file", "line", "start", "end", "language", "source", "split", "emotionality")
        return {**{name: getattr(self, name) for name in names}, "turns": turns}

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> CuratedDialogue:
        turns = tuple(
            CuratedTurn(turn["text"], tuple(turn["cues"]), turn["label"], turn["confidence"]) for turn in row["turns"]
        )
        names = ("id", "file", "line", "start", "end", "language", "source", "split", "emotionality")
        return cls(**{name: row[name] for name in names}, turns=turns, selected=bool(row.get("selected")))

    def to_dialogue(self) -> Dialogue:
        """Convert to a `Dialogue`. The role of speaker is not given: it goes to the first person to talk."""

        def label(turn: CuratedTurn) -> Label | None:
            return None if turn.label is None else Label(turn.label, "machine", turn.confidence)

        turns = tuple(Turn(ROLES[index % 2], turn.text, label(turn)) for index, turn in enumerate(self.turns))
        return Dialogue(self.id, turns, source=self.source, language=self.language, split=self.split)


def digest(row: dict[str, Any]) -> bytes:
    """The SHA-256 of a row, independent of the order of its fields and without `selected`."""
    content = {name: value for name, value in row.items() if name != "selected"}
    return hashlib.sha256(json.dumps(content, ensure_ascii=False, sort_keys=True).encode()).digest()


class RecordsHash:
    """One hash over all records in order: by file, then by line or cue."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, digests: Iterable[bytes], selected: Sequence[bool]) -> None:
        for one, chosen in zip(digests, selected, strict=True):
            self._sha.update(one + (b"\x01" if chosen else b"\x00"))

    def hexdigest(self) -> str:
        return self._sha.hexdigest()


def need_pyarrow() -> None:
    """Raise an ImportError with installation instructions if pyarrow is missing."""
    if find_spec("pyarrow") is None:
        raise ImportError("a curated corpus needs pyarrow: pip install 'listenwell[curate]'")


def schema(*more: tuple[str, pa.DataType]) -> pa.Schema:
    """The columns of a curated dialogue, and `more` columns for intermediate files."""
    import pyarrow as pa

    turn = pa.struct(
        [
            ("speaker", pa.string()),
            ("text", pa.string()),
            ("cues", pa.list_(pa.int32())),
            ("label", pa.string()),
            ("confidence", pa.float64()),
        ]
    )
    return pa.schema(
        [
            ("id", pa.string()),
            ("file", pa.string()),
            ("line", pa.int32()),
            ("start", pa.float64()),
            ("end", pa.float64()),
            ("language", pa.string()),
            ("source", pa.string()),
            ("split", pa.string()),
            ("emotionality", pa.float64()),
            ("turns", pa.list_(turn)),
            *more,
        ]
    )


def choose_allocator() -> None:
    """Make Arrow's library allocate with malloc, unless the user has chosen otherwise.

    The library chooses its allocator when it is loaded, and uses it to read and write Parquet files even if Python sets
    another pool later. Its own allocators keep freed memory, so a process would grow with the number of its chunks.
    Child processes inherit the choice.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def use_little_memory() -> None:
    """Make Arrow release unused memory. Call this in each curating process, before pyarrow is imported."""
    choose_allocator()
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())


def read_table(path: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a small Parquet file. `pyarrow.parquet.read_table` would use threads, and keep memory for each of them."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return file.read(None if columns is None else list(columns), use_threads=False)


def read_rows(path: Any, columns: Sequence[str] | None = None, size: int = 128) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file, read in batches."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(size, columns=None if columns is None else list(columns), use_threads=False):
            yield from batch.to_pylist()
