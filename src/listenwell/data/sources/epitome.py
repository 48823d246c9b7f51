"""EPITOME (Sharma et al., 2020): a Reddit post, a reply, and how much empathy of three kinds the reply shows.

`emotional-reactions.csv`, `interpretations.csv`, `explorations.csv` hold the same pairs, each with a level (0 none, 1
weak, 2 strong) and the passages of the reply that show it, a | after each. The three are read as three parts: the reply
is labelled "none", "weak" or "strong" for the part that is asked for. A Turn has room for one label, so without a part
a pair is read once, without any. A pair has the same id in every part, so that its levels can be put together.
`annotated_pairs` gives the passages too.

No splits were published; here eight of ten posts are train, one valid, one test, by a hash of the post alone, so that
all replies to a post are in one split. Some pairs were annotated twice: duplicates, noted, dropped by `clean`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources.dialogue_builder import Builder, Utterance
from listenwell.data.sources.files import DataFile, Piece, choose, csv_rows
from listenwell.data.sources.quality import squeeze
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.data.sources.smp2020_ewect import ESCAPED
from listenwell.data.sources.splits import split_name, split_of_texts

NAME = "epitome"
FOLDER = "epitome"
HOW_TO_GET = "it is published at https://github.com/behavioral-data/Empathy-Mental-Health"

# Noted
NO_PASSAGE = "a level above none without a passage"
PASSAGE_ELSEWHERE = "a passage that is not in the reply"

PARTS = ("emotional-reactions", "interpretations", "explorations")
LEVELS = ("none", "weak", "strong")
PIECES = tuple(
    Piece("train", (f"{part}.csv", f"{part}-reddit.csv", f"dataset/{part}-reddit.csv"), part) for part in PARTS
)
HEADER = ["sp_id", "rp_id", "seeker_post", "response_post", "level", "rationales"]


class Annotation(NamedTuple):
    """A row of a file: a pair, the level of its reply, and the passages that show it."""

    line: int
    post_id: str
    reply_id: str
    post: str
    reply: str
    level: str
    passages: tuple[str, ...]


def files(path: str | Path, split: str | None = None, *, part: str | None = None) -> list[DataFile]:
    """The file of a part; the first of the three without one, since all hold the same pairs."""
    if split is not None:
        split_name(split)
    chosen = choose(path, PIECES, None, part, how_to_get=HOW_TO_GET)
    return chosen[:1] if part is None else chosen


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    clean: bool = False,
    part: str | None = None,
) -> Iterator[Dialogue]:
    """The pairs of a split (all by default) as dialogues of two turns, the reply labelled with the level of `part`.

    `clean`: a junk turn ends its conversation, and duplicate dialogues are dropped.
    """
    chosen = files(path, split, part=part)
    labelled = part is not None or Path(path).is_file()
    wanted = None if split is None else split_name(split)
    return _read(chosen, Builder(NAME, Report() if report is None else report, clean), wanted, labelled)


def _read(chosen: list[DataFile], builder: Builder, wanted: str | None, labelled: bool) -> Iterator[Dialogue]:
    for data_file in chosen:
        for row in annotated_pairs(data_file.path):
            split = split_of_texts([row.post])
            if wanted not in (None, split):
                continue
            name = builder.name(f"{row.post_id}-{row.reply_id}", data_file, row.line)
            if labelled:
                _note_passages(row, builder.report, data_file)
            texts = [_unescaped(text, builder.report, data_file, row.line) for text in (row.post, row.reply)]
            utterances = [
                Utterance("speaker", texts[0], row.line),
                Utterance("listener", texts[1], row.line, Label(row.level) if labelled else None),
            ]
            dialogue = builder.build(name, utterances, data_file._replace(split=split), row.line)
            if dialogue is not None:
                yield dialogue


def annotated_pairs(path: Path) -> Iterator[Annotation]:
    """The rows of one file; a passage is given as the file has it."""
    rows = csv_rows(path)
    _, header = next(rows, (1, []))
    if header != HEADER:
        actual = f"the header {shorten(', '.join(header))!r}" if header else "no header"
        raise SourceError.at(path.name, 1, actual, ", ".join(HEADER), "name a file of EPITOME")
    for line, row in rows:
        if len(row) != len(HEADER):
            expected = f"{len(HEADER)} ({', '.join(HEADER)})"
            raise SourceError.at(path.name, line, f"{len(row)} columns", expected, "correct the row")
        post_id, reply_id, post, reply, level, passages = row
        if level not in ("0", "1", "2"):
            raise SourceError.at(path.name, line, f"the level {shorten(level)!r}", "0, 1 or 2", "correct the row")
        parts = tuple(passage.strip() for passage in passages.split("|") if passage.strip())
        yield Annotation(line, post_id, reply_id, post, reply, LEVELS[int(level)], parts)


def _note_passages(row: Annotation, report: Report, data_file: DataFile) -> None:
    if row.level != LEVELS[0] and not row.passages:
        report.note(NO_PASSAGE, data_file.file, row.line, row.reply)
    reply = squeeze(html.unescape(row.reply))
    for passage in row.passages:
        if squeeze(html.unescape(passage)) not in reply:
            report.note(PASSAGE_ELSEWHERE, data_file.file, row.line, passage)


def _unescaped(text: str, report: Report, data_file: DataFile, line: int) -> str:
    plain = html.unescape(text)
    if plain != text:
        report.note(ESCAPED, data_file.file, line, text)
    return plain
