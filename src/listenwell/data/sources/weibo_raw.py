"""Weibo threads as they come, uncleaned: kaomoji, hashtags, links, adverts, reposted chains. For `data clean`.

A file has one thread per line, as a JSON list of texts. Speakers are not given; the turns alternate. No splits were
published; here 80 % of the threads are train, 10 % valid and 10 % test, by a hash of their texts. Two of the files
share most of their threads: duplicates are noted, and dropped by `clean`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from listenwell.data.dialogue import Dialogue
from listenwell.data.sources.dialogue_builder import Builder, Conversation, read_files, taking_turns
from listenwell.data.sources.files import DataFile, Piece, choose_all, json_lines
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.data.sources.splits import split_name, split_of_texts

NAME = "weibo-raw"
FOLDER = "weibo_raw"
HOW_TO_GET = "any .jsonl files with one list of texts per line will do; give the path of one"

PIECES = tuple(
    Piece("train", (f"{name}.jsonl",)) for name in ("test1_testdata", "test1_testdata2", "weibo_tang_testdata2")
)


def files(path: str | Path, split: str | None = None) -> list[DataFile]:
    """The files of the folder, or the given file; each has threads of every split."""
    return choose_all(path, PIECES, split, how_to_get=HOW_TO_GET)


def read(
    path: str | Path, split: str | None = None, *, report: Report | None = None, clean: bool = False
) -> Iterator[Dialogue]:
    """The threads of a split (all by default), with raw texts.

    `clean`: a junk turn ends its conversation, and duplicate dialogues are dropped.
    """
    wanted = None if split is None else split_name(split)
    builder = Builder(NAME, report or Report(), clean, language="zh", split=wanted)
    return read_files(files(path, split), builder, _conversations)


def _conversations(data_file: DataFile, builder: Builder) -> Iterator[Conversation]:
    for line, record in json_lines(data_file.path):
        texts = _texts(record, data_file.file, line)
        name = f"{data_file.path.stem}-{line}"
        yield Conversation(name, taking_turns(texts, line), line, split_of_texts(texts))


def _texts(record: Any, file: str, line: int) -> list[str]:
    if not isinstance(record, list) or not record or not all(isinstance(text, str) for text in record):
        raise SourceError.at(file, line, shorten(repr(record)), "a thread: a list of strings", "correct the line")
    return record
