"""Chinese chat in three turns, made for rewriting (Su et al., 2019); the rewritten turns are left out.

A line has four texts separated by two tabs: three turns, and a rewritten version of the third that can be understood
without the others. The rewritten text is not a turn, so it is not read. Some replies are from an assistant (weather,
facts). No splits were published; here 80 % of the dialogues are train, 10 % valid and 10 % test, by a hash of their
texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from listenwell.data.dialogue import Dialogue
from listenwell.data.sources.dialogue_builder import Builder, Conversation, read_files, taking_turns
from listenwell.data.sources.files import DataFile, Piece, choose_all, lines
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.splits import split_name, split_of_texts

NAME = "chinese-chat"
FOLDER = "chinese_chat"
HOW_TO_GET = "it is published at https://github.com/chin-gyou/dialogue-utterance-rewriter"

PIECES = (Piece("train", ("three_turns.txt", "corpus.txt")),)
SEPARATOR = "\t\t"
COLUMNS = 4


def files(path: str | Path, split: str | None = None) -> list[DataFile]:
    """The single file, which has dialogues of every split."""
    return choose_all(path, PIECES, split, how_to_get=HOW_TO_GET)


def read(
    path: str | Path, split: str | None = None, *, report: Report | None = None, clean: bool = False
) -> Iterator[Dialogue]:
    """The dialogues of a split (all by default), three turns each.

    `clean`: a junk turn ends its conversation, and duplicate dialogues are dropped.
    """
    wanted = None if split is None else split_name(split)
    builder = Builder(NAME, report or Report(), clean, language="zh", split=wanted)
    return read_files(files(path, split), builder, _conversations)


def _conversations(data_file: DataFile, builder: Builder) -> Iterator[Conversation]:
    for line, row in lines(data_file.path):
        if not row.strip():
            continue
        texts = row.rstrip("\r\n").split(SEPARATOR)
        if len(texts) != COLUMNS:
            expected = f"{COLUMNS} with two tabs between them (three turns, the third rewritten)"
            raise SourceError.at(data_file.file, line, f"{len(texts)} texts", expected, "correct the line")
        turns = texts[:-1]
        yield Conversation(f"chat-{line}", taking_turns(turns, line), line, split_of_texts(turns))
