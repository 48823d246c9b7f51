"""LCCC-base (Wang et al., 2020): Chinese chit-chat from Weibo, without labels.

A file is one JSON array of dialogues; a dialogue is a list of texts, whose characters are separated by spaces and are
joined again. The spaces between English words are lost if these were split into letters. Speakers are not given; the
turns alternate, as in the published pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from listenwell.data.dialogue import Dialogue
from listenwell.data.sources.detokenize import join_characters
from listenwell.data.sources.dialogue_builder import Builder, Conversation, read_files, taking_turns
from listenwell.data.sources.files import DataFile, Piece, choose, json_items
from listenwell.data.sources.report import Report, SourceError, shorten

NAME = "lccc"
FOLDER = "lccc_base"
HOW_TO_GET = "it is published at https://github.com/thu-coai/CDial-GPT"

PIECES = tuple(Piece(split, (f"LCCC-base_{split}.json",)) for split in ("train", "valid", "test"))


def files(path: str | Path, split: str | None = None) -> list[DataFile]:
    """The files to read for `split`, each with its split; all splits of a folder by default."""
    return choose(path, PIECES, split, how_to_get=HOW_TO_GET)


def read(
    path: str | Path, split: str | None = None, *, report: Report | None = None, clean: bool = False
) -> Iterator[Dialogue]:
    """The dialogues of a file, or of a split (or all splits) of a folder.

    `clean`: a junk turn ends its conversation, and duplicate dialogues are dropped.
    """
    return read_files(files(path, split), Builder(NAME, report or Report(), clean, language="zh"), _conversations)


def _conversations(data_file: DataFile, builder: Builder) -> Iterator[Conversation]:
    for number, (line, item) in enumerate(json_items(data_file.path), start=1):
        texts = [join_characters(text) for text in _texts(item, data_file.file, line)]
        yield Conversation(f"{data_file.stem}-{number}", taking_turns(texts, line), line)


def _texts(item: Any, file: str, line: int) -> list[str]:
    if not isinstance(item, list) or not item or not all(isinstance(text, str) for text in item):
        expected, way_out = "a dialogue: a list of strings", "correct the item that begins here"
        raise SourceError.at(file, line, shorten(repr(item)), expected, way_out)
    return item
