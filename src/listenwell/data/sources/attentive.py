"""Replies of an attentive listener to contexts of EmpatheticDialogues, written for this project by a language model.

People's replies there are often short and in passing ("Oh no! What happened?"). These reflect what somebody said and
what it means to them, then ask one question or encourage, and are honest about coming from a program. Only the replies
are in the package; the contexts are read from EmpatheticDialogues, which must be available.

A dialogue ends with such a reply, which alone has a label, by a classifier: the intent of what it does. Read with
`labelled: true`, earlier turns of people's are context and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from listenwell.data.dialogue import Dialogue, Label, Turn
from listenwell.data.sources import empathetic_dialogues
from listenwell.data.sources.report import Report
from listenwell.data.sources.splits import split_name

NAME = "attentive"
FOLDER = empathetic_dialogues.FOLDER
HOW_TO_GET = f"its contexts are those of EmpatheticDialogues; {empathetic_dialogues.HOW_TO_GET}"

ANSWERED = "train"
"""The split of EmpatheticDialogues that was answered."""
# Dropped
NO_CONTEXT = "replies whose dialogue is not in the files"


class WrittenReply(NamedTuple):
    """A reply, by the turn in whose place it stands."""

    dialogue: str
    turn: int
    text: str
    label: str
    split: str


def replies_file() -> Traversable:
    return package_files("listenwell").joinpath("corpus", "attentive", "en.jsonl")


def written_replies() -> Iterator[WrittenReply]:
    """All replies in the package."""
    with replies_file().open("rb") as stream:
        for line in stream:
            record = json.loads(line)
            dialogue, _, turn = record["id"].rpartition("#")
            yield WrittenReply(dialogue, int(turn), record["reply"], record["label"], record["split"])


def files(path: str | Path, split: str | None = None) -> list[Path | Traversable]:
    """The file of EmpatheticDialogues that is read, and that of the replies."""
    if split is not None:
        split_name(split)
    return [*(file for file, _ in empathetic_dialogues.files(path, ANSWERED)), replies_file()]


def read(path: str | Path, split: str | None = None, *, report: Report | None = None) -> Iterator[Dialogue]:
    """The dialogues of a split, or all of them, each up to the reply that was written for it."""
    empathetic_dialogues.files(path, ANSWERED)  # a folder without them is an error at the call
    wanted = None if split is None else split_name(split)
    return _read(path, wanted, Report() if report is None else report)


def _read(path: str | Path, split: str | None, report: Report) -> Iterator[Dialogue]:
    written = {one.dialogue: one for one in written_replies() if split in (None, one.split)}
    for dialogue in empathetic_dialogues.read(path, ANSWERED):
        one = written.get(dialogue.id)
        if one is None or len(dialogue.turns) < one.turn:
            continue
        del written[dialogue.id]
        context = [replace(turn, label=None) for turn in dialogue.turns[: one.turn]]
        reply = Turn("listener", one.text, Label(one.label, "machine"))
        report.keep(one.turn + 1)
        yield replace(dialogue, turns=(*context, reply), source=NAME, split=one.split)
    for one in written.values():
        report.drop(NO_CONTEXT, str(path), 0, one.dialogue)
