"""EPITOME (Sharma et al., 2020): a Reddit post, a reply, and how much empathy of three kinds the reply shows.

`emotional-reactions.csv`, `interpretations.csv` and `explorations.csv` have the same pairs, each with a level (0 none,
1 weak, 2 strong) and the passages of the reply that show it, each followed by |. They are read as three parts: the
reply is labelled "none", "weak" or "strong" for the requested part. The part "levels" reads all three files, and the
label has the three levels of the reply, such as "weak-none-strong" (`labels.empathy`). Without a part, a pair is read
once, without a label. A pair has the same id in every part. `annotated_pairs` also gives the passages.

No splits were published; here 80 % of the posts are train, 10 % valid and 10 % test, by a hash of the post alone, so
that all replies to a post are in one split. Some pairs were annotated twice: these duplicates are noted, and dropped by
`clean`.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources.dialogue_builder import Builder, Utterance
from listenwell.data.sources.files import DataFile, Piece, choose, csv_rows
from listenwell.data.sources.quality import squeeze
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.data.sources.smp2020_ewect import ESCAPED
from listenwell.data.sources.splits import split_name, split_of_texts
from listenwell.labels.empathy import LEVELS, MECHANISMS
from listenwell.labels.taxonomy import unknown_name

NAME = "epitome"
FOLDER = "epitome"
HOW_TO_GET = "it is published at https://github.com/behavioral-data/Empathy-Mental-Health"

# Noted
NO_PASSAGE = "a level above none without a passage"
PASSAGE_ELSEWHERE = "a passage that is not in the reply"

PARTS = MECHANISMS
TOGETHER = "levels"
"""The part that reads all three files: the label of a reply combines its three levels."""
PIECES = tuple(
    Piece("train", (f"{part}.csv", f"{part}-reddit.csv", f"dataset/{part}-reddit.csv"), part) for part in PARTS
)
HEADER = ["sp_id", "rp_id", "seeker_post", "response_post", "level", "rationales"]


class Annotation(NamedTuple):
    """A row of a file: a pair, the level of its reply, and the passages that show the level."""

    line: int
    post_id: str
    reply_id: str
    post: str
    reply: str
    level: str
    passages: tuple[str, ...]


def files(path: str | Path, split: str | None = None, *, part: str | None = None) -> list[DataFile]:
    """The file of a part; all three for "levels"; without a part the first one, since all have the same pairs."""
    if split is not None:
        split_name(split)
    if part == TOGETHER:
        return _all_files(path)
    if part is not None and part not in PARTS:
        raise ValueError(unknown_name("part", part, (*PARTS, TOGETHER)))
    chosen = choose(path, PIECES, None, part, how_to_get=HOW_TO_GET)
    return chosen[:1] if part is None else chosen


def _all_files(path: str | Path) -> list[DataFile]:
    chosen = choose(path, PIECES, how_to_get=HOW_TO_GET)
    if missing := [part for part in PARTS if part not in {file.part for file in chosen}]:
        raise FileNotFoundError(f"{path}: the part {TOGETHER} needs all three files, missing: {', '.join(missing)}")
    return chosen


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
    builder = Builder(NAME, Report() if report is None else report, clean)
    if part == TOGETHER:
        return _read(chosen[0], _joined(chosen), builder, wanted, labelled=True)
    (only,) = chosen
    return _read(only, annotated_pairs(only.path), builder, wanted, labelled)


def _joined(chosen: Sequence[DataFile]) -> Iterator[Annotation]:
    """The rows of the first file, with the levels from all files. A pair may occur more than once."""
    first, *others = chosen
    levels = [{key: row.level for key, row in _numbered(file.path)} for file in others]
    for key, row in _numbered(first.path):
        for file, known in zip(others, levels, strict=True):
            if key not in known:
                pair = f"no pair {row.post_id}, {row.reply_id}"
                raise SourceError.at(file.file, row.line, pair, f"the pairs of {first.file}", "download all again")
        yield row._replace(level="-".join([row.level, *(known[key] for known in levels)]))


def _numbered(path: Path) -> Iterator[tuple[tuple[str, str, int], Annotation]]:
    """The rows of a file, keyed by their ids and how often these occurred before."""
    times: Counter[tuple[str, str]] = Counter()
    for row in annotated_pairs(path):
        ids = (row.post_id, row.reply_id)
        yield (*ids, times[ids]), row
        times[ids] += 1


def _read(
    data_file: DataFile, rows: Iterator[Annotation], builder: Builder, wanted: str | None, labelled: bool
) -> Iterator[Dialogue]:
    for row in rows:
        split = split_of_texts([row.post])
        if wanted not in (None, split):
            continue
        name = builder.name(f"{row.post_id}-{row.reply_id}", data_file, row.line)
        if row.level in LEVELS and labelled:  # a row of a single file, with the passages for its level
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
    """The rows of one file, with the passages unchanged."""
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
