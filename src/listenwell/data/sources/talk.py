"""Conversations of six to ten turns, written for this project by a language model: what somebody tells, and what an
attentive program says that is honest about being one.

Where EmpatheticDialogues has two people, of whom one answers once or twice, these hold a conversation: facts come back,
moods turn, somebody says hello, teases the program or takes leave. Every listener turn has an intent, that of its first
move where it makes two.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable

from listenwell.data.dialogue import Dialogue
from listenwell.data.sources import jsonl
from listenwell.data.sources.report import Report
from listenwell.data.sources.splits import split_name

NAME = "talk"
INSIDE = True
"""Its file is inside the package."""


def files() -> list[Traversable]:
    """The one file; it may be inside a zip."""
    return [package_files("listenwell").joinpath("corpus", "talk", "en.jsonl")]


def read(split: str | None = None, *, report: Report | None = None) -> Iterator[Dialogue]:
    """The conversations of a split, or all of them."""
    wanted = None if split is None else split_name(split)
    return _read(wanted, jsonl.Inspector(Report() if report is None else report))


def _read(split: str | None, inspector: jsonl.Inspector) -> Iterator[Dialogue]:
    for file in files():
        with file.open("rb") as stream:
            for number, dialogue in jsonl.read_stream(stream, file.name, split):
                yield inspector.take(dialogue, file.name, number)
