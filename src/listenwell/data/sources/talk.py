"""Conversations of six to ten turns, written for this project by a language model: what somebody tells, and what an
attentive program says that is honest about being one.

In EmpatheticDialogues, one of two people answers once or twice; these are real conversations: facts come up again,
moods change, somebody says hello, teases the program or says goodbye. Every listener turn has an intent; if it makes
two moves, that of the first.
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
"""The file is inside the package."""


def files() -> list[Traversable]:
    """The single file, which may be inside a zip."""
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
