"""EmotionLines (Chen et al., 2018): scenes of the television series Friends, an emotion for every utterance.

A file is one JSON array of dialogues; an utterance has speaker, utterance, emotion, and the five annotators' votes.
Often more than two people talk, but a Dialogue has two roles. So consecutive utterances of one person are joined into
one turn, and the role changes whenever the person does: exact for two people; for more, every reply still answers
somebody else. A joined turn keeps its label if all its utterances have the same one; `join=False` keeps the utterances
separate, with all their labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from listenwell.data.dialogue import ROLES, Dialogue, Label
from listenwell.data.sources import quality
from listenwell.data.sources.dialogue_builder import Builder, Conversation, Utterance, read_files
from listenwell.data.sources.files import DataFile, Piece, choose, json_items
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.labels.sets import EMOTIONLINES

NAME = "emotionlines"
FOLDER = "emotionlines"
HOW_TO_GET = "it is had from https://doraemon.iis.sinica.edu.tw/emotionlines/download.html"

# Noted
SEVERAL = "more than two people, roles by change of person"

PIECES = tuple(
    Piece(split, (f"{name}.json", f"friends_{name}.json", f"Friends/friends_{name}.json"))
    for split, name in (("train", "train"), ("valid", "dev"), ("test", "test"))
)

_FIELDS = ("speaker", "utterance", "emotion")


def files(path: str | Path, split: str | None = None) -> list[DataFile]:
    """The files to read for `split`, each with its split; all splits of a folder by default."""
    return choose(path, PIECES, split, how_to_get=HOW_TO_GET)


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    clean: bool = False,
    join: bool = True,
) -> Iterator[Dialogue]:
    """The dialogues of a file, or of a split (or all splits) of a folder.

    `clean`: a junk turn ends its conversation, and duplicate dialogues are dropped.
    `join`: join consecutive utterances of one person into one turn; otherwise each is a turn, and roles may repeat.
    """
    return read_files(files(path, split), Builder(NAME, report or Report(), clean, join=join), _conversations)


def _conversations(data_file: DataFile, builder: Builder) -> Iterator[Conversation]:
    for number, (line, item) in enumerate(json_items(data_file.path), start=1):
        records = _records(item, data_file.file, line)
        utterances = _utterances(records, builder.report, data_file.file, line)
        yield Conversation(f"{data_file.stem}-{number}", utterances, line, rows=len(records))


def _records(item: Any, file: str, line: int) -> list[dict[str, str]]:
    expected = f"a dialogue: a list of objects with {', '.join(_FIELDS)}"
    if not isinstance(item, list) or not item:
        raise SourceError.at(file, line, shorten(repr(item)), expected, "correct the item that begins here")
    for number, record in enumerate(item, start=1):
        if not isinstance(record, dict) or not all(isinstance(record.get(name), str) for name in _FIELDS):
            actual, way_out = f"utterance {number} is {shorten(repr(record))}", "correct the item that begins here"
            raise SourceError.at(file, line, actual, expected, way_out)
    return item


def _utterances(records: list[dict[str, str]], report: Report, file: str, line: int) -> list[Utterance]:
    people = [quality.squeeze(record["speaker"]).casefold() for record in records]
    if len(set(people)) > 2:
        report.note(SEVERAL, file, line, ", ".join(dict.fromkeys(people)))
    utterances: list[Utterance] = []
    changes = 0
    for index, record in enumerate(records):
        changes += index > 0 and people[index] != people[index - 1]
        name = record["emotion"].strip().lower()
        if name not in EMOTIONLINES:
            report.note(quality.UNKNOWN_LABEL, file, line, name)
        label = Label(name) if name else None
        utterances.append(Utterance(ROLES[changes % 2], record["utterance"], line, label))
    return utterances
