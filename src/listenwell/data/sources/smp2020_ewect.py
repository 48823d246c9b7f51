"""SMP2020-EWECT: Weibo posts, each with one of six emotions; everyday ones, and such about the epidemic of 2020.

There are two parts, *usual* and *virus*. A file is one JSON array of posts with id, content and label; the training
posts of *usual* may be a .tsv with fold, label and content instead (the folds were added by somebody else and are
ignored). A post is a dialogue of one turn. Many texts occur more than once, some with another label: these are noted,
and dropped by `clean`. Emoji and links that were lost in publication appear as "??": these are noted and kept.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources import quality
from listenwell.data.sources.dialogue_builder import Builder, Conversation, Utterance, read_files
from listenwell.data.sources.files import DataFile, Piece, choose, json_items, lines
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.labels.sets import SMP

NAME = "smp2020-ewect"
FOLDER = "smp2020_ewect"
HOW_TO_GET = "the evaluation's page is https://smp2020ewect.github.io"

# Noted
LOST = "'??', often an emoji or a link that was lost"
ESCAPED = "characters escaped for HTML, restored"
NO_LABEL = "post without label"

_STEMS = {"train": "train", "valid": "eval_labeled", "test": "test_labeled"}
PIECES = tuple(
    Piece(split, tuple(f"{part}_{stem}.{ending}" for ending in ("json", "txt", "tsv")), part)
    for part in ("usual", "virus")
    for split, stem in _STEMS.items()
)
HEADER = ["fold", "label", "content"]

_ENTITY = re.compile(r"&(?:[A-Za-z]\w*|#\d+);")


class Post(NamedTuple):
    """A record of the files."""

    line: int
    id: str
    text: str
    label: str


def files(path: str | Path, split: str | None = None, *, part: str | None = None) -> list[DataFile]:
    """The files of a split and part ("usual" or "virus"); all of both by default."""
    return choose(path, PIECES, split, part, how_to_get=HOW_TO_GET)


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    clean: bool = False,
    part: str | None = None,
) -> Iterator[Dialogue]:
    """The posts of a file, or of a split and part (or all) of a folder, as dialogues of one turn.

    `clean`: posts that are junk or duplicates are dropped.
    """
    builder = Builder(NAME, report or Report(), clean, language="zh", single_turn=True)
    return read_files(files(path, split, part=part), builder, _conversations)


def _conversations(data_file: DataFile, builder: Builder) -> Iterator[Conversation]:
    report = builder.report
    posts = _rows(data_file.path) if data_file.path.suffix == ".tsv" else _objects(data_file.path)
    for post in posts:
        text = _ENTITY.sub(lambda match: html.unescape(match.group()), post.text)
        if text != post.text:
            report.note(ESCAPED, data_file.file, post.line, post.text)
        if "??" in text:
            report.note(LOST, data_file.file, post.line, text)
        if not post.label:
            report.note(NO_LABEL, data_file.file, post.line, text)
        elif post.label not in SMP:
            report.note(quality.UNKNOWN_LABEL, data_file.file, post.line, post.label)
        utterances = [Utterance("speaker", text, post.line, Label(post.label) if post.label else None)]
        yield Conversation(builder.name(f"{data_file.stem}-{post.id}", data_file, post.line), utterances, post.line)


def _rows(path: Path) -> Iterator[Post]:
    """The posts of a .tsv, with their position as id. Quotes are plain characters."""
    for line, row in lines(path):
        fields = row.rstrip("\r\n").split("\t")
        if line == 1 and fields != HEADER:
            actual = f"the header {shorten(', '.join(fields))!r}"
            raise SourceError.at(path.name, 1, actual, ", ".join(HEADER), "name a file of SMP2020-EWECT")
        if line == 1 or not any(fields):
            continue
        if len(fields) != 3:
            expected, way_out = f"3 between tabs ({', '.join(HEADER)})", "correct the line"
            raise SourceError.at(path.name, line, f"{len(fields)} columns", expected, way_out)
        yield Post(line, str(line - 1), fields[2], fields[1].strip().lower())


def _objects(path: Path) -> Iterator[Post]:
    # Such a file is a single line, so errors give the number of the item.
    for number, (line, item) in enumerate(json_items(path), start=1):
        if not _is_post(item):
            actual, expected = f"item {number} is {shorten(repr(item))}", "an object with id, content and label"
            raise SourceError.at(path.name, line, actual, expected, "correct the item")
        yield Post(line, str(item["id"]), item["content"], item["label"].strip().lower())


def _is_post(item: Any) -> bool:
    if not isinstance(item, dict) or isinstance(item.get("id"), bool) or not isinstance(item.get("id"), int | str):
        return False
    return isinstance(item.get("content"), str) and isinstance(item.get("label"), str)
