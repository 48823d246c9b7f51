"""SMILE (Qiu et al., 2023): Chinese support talk in pairs of a help seeker's query and a supporter's reply.

`train.jsonl`, `valid.jsonl`, `test.jsonl`: one object per line with the number of the dialogue, the position of the
query in it, the query and the reply. A language model wrote the dialogues from real questions. A pair is a dialogue of
two turns: only pairs of at most 80 characters per side were published here, so full dialogues cannot be restored. The
splits are by dialogue: a dialogue that is in two files raises an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from listenwell.data.dialogue import Dialogue
from listenwell.data.sources.dialogue_builder import Builder, Conversation, read_files, taking_turns
from listenwell.data.sources.files import DataFile, Piece, choose, json_lines
from listenwell.data.sources.report import Report, SourceError, shorten

NAME = "smile"
FOLDER = "smile"
HOW_TO_GET = "it is published at https://github.com/qiuhuachuan/smile"

PIECES = tuple(Piece(split, (f"{split}.jsonl",)) for split in ("train", "valid", "test"))


class Pair(NamedTuple):
    """A line of the files."""

    line: int
    dialogue: int
    turn: int
    query: str
    reply: str


def files(path: str | Path, split: str | None = None) -> list[DataFile]:
    """The files to read for `split`, each with its split; all splits of a folder by default."""
    return choose(path, PIECES, split, how_to_get=HOW_TO_GET)


def read(
    path: str | Path, split: str | None = None, *, report: Report | None = None, clean: bool = False
) -> Iterator[Dialogue]:
    """The pairs of a file, or of a split (or all splits) of a folder, as dialogues of two turns.

    `clean`: a junk turn ends its conversation, and duplicate dialogues are dropped.
    """
    builder = Builder(NAME, report or Report(), clean, language="zh")
    return read_files(files(path, split), builder, partial(_conversations, splits={}))


def _conversations(data_file: DataFile, builder: Builder, splits: dict[int, DataFile]) -> Iterator[Conversation]:
    """`splits`: the file in which each dialogue was first seen."""
    for pair in pairs(data_file.path):
        first = splits.setdefault(pair.dialogue, data_file)
        if first != data_file:
            problem = f"dialogue {pair.dialogue}, which is also in {first.file}"
            expected, way_out = "splits that share no dialogue", "read one split alone, or download the files again"
            raise SourceError.at(data_file.file, pair.line, problem, expected, way_out)
        name = builder.name(f"{data_file.stem}-{pair.dialogue}-{pair.turn}", data_file, pair.line)
        yield Conversation(name, taking_turns([pair.query, pair.reply], pair.line), pair.line)


def pairs(path: Path) -> Iterator[Pair]:
    """The pairs of one file."""
    for line, record in json_lines(path):
        if not _is_pair(record):
            expected = "an object with the numbers dialogue and turn and the texts query and reply"
            raise SourceError.at(path.name, line, shorten(repr(record)), expected, "correct the line")
        yield Pair(line, *(record[key] for key in Pair._fields[1:]))


def _is_pair(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    numbers, texts = ((record.get(a), record.get(b)) for a, b in (("dialogue", "turn"), ("query", "reply")))
    return all(type(number) is int for number in numbers) and all(isinstance(text, str) for text in texts)
