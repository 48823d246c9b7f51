"""Messages of grief and loss, thirty in English and thirty in Chinese, each with a reply that fits; written here.

They are for evaluation only, so all are in the test split: a system that lifts the mood must not be cheerful about
these (`listenwell evaluate SYSTEM --data grief --part zh --metrics celebratory`). The parts are the languages.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable

from listenwell.data.dialogue import Dialogue
from listenwell.data.sources import jsonl
from listenwell.data.sources.report import Report
from listenwell.data.sources.splits import split_name
from listenwell.labels.taxonomy import unknown_name

NAME = "grief"
INSIDE = True
"""The file is inside the package."""
PARTS = ("en", "zh")


def files() -> list[Traversable]:
    """The single file, which may be inside a zip."""
    return [package_files("listenwell").joinpath("corpus", "queries", "grief.jsonl")]


def read(split: str | None = None, *, part: str | None = None, report: Report | None = None) -> Iterator[Dialogue]:
    """The messages with their replies, in both languages or in one."""
    if part is not None and part not in PARTS:
        raise ValueError(unknown_name("part of grief", part, PARTS))
    wanted = None if split is None else split_name(split)
    return _read(wanted, part, jsonl.Inspector(Report() if report is None else report))


def _read(split: str | None, part: str | None, inspector: jsonl.Inspector) -> Iterator[Dialogue]:
    for file in files():
        with file.open("rb") as stream:
            for number, dialogue in jsonl.read_stream(stream, file.name, split):
                if part in (None, dialogue.language):
                    yield inspector.take(dialogue, file.name, number)
