"""weibo_senti_100k, a sample: single Weibo posts labelled positive or negative.

`sample.csv` has the columns label (1 positive, 0 negative) and review. The labels were derived from the posts'
emoticons ([哈哈], [泪]), so a classifier that sees these can ignore the words: `emoticons=False` removes them. No
splits were published; here 80 % of the posts are train, 10 % valid and 10 % test, by a hash of their texts without
emoticons.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources.cleaning.steps import strip_emoticons
from listenwell.data.sources.dialogue_builder import Builder, Conversation, Utterance, read_files
from listenwell.data.sources.files import DataFile, Piece, choose_all, csv_rows
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.data.sources.splits import split_name, split_of_texts

NAME = "weibo-senti"
FOLDER = "weibo_senti"
HOW_TO_GET = "it is published at https://github.com/SophonPlus/ChineseNlpCorpus"

# Noted
EMOTICONS = "emoticons in brackets, removed"

PIECES = (Piece("train", ("sample.csv", "weibo_senti_100k.csv")),)
HEADER = ["label", "review"]
LABELS = {"1": "positive", "0": "negative"}


def files(path: str | Path, split: str | None = None, *, emoticons: bool = True) -> list[DataFile]:
    """The single file, which has posts of every split."""
    return choose_all(path, PIECES, split, how_to_get=HOW_TO_GET)


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    clean: bool = False,
    emoticons: bool = True,
) -> Iterator[Dialogue]:
    """The posts of a split (all by default) as dialogues of one turn.

    `emoticons=False` removes [哈哈] and the like. `clean`: posts that are junk or duplicates are dropped.
    """
    wanted = None if split is None else split_name(split)
    builder = Builder(NAME, report or Report(), clean, language="zh", single_turn=True, split=wanted)
    return read_files(files(path, split), builder, partial(_conversations, emoticons=emoticons))


def _conversations(data_file: DataFile, builder: Builder, emoticons: bool) -> Iterator[Conversation]:
    for number, (line, label, text) in enumerate(_posts(data_file.path), start=1):
        bare = strip_emoticons(text)
        split = split_of_texts([bare if bare.strip() else text])
        if not builder.wants(split):
            continue  # problems in other splits are not noted either
        if not emoticons and bare != text:
            builder.report.note(EMOTICONS, data_file.file, line, text)
        utterances = [Utterance("speaker", text if emoticons else bare, line, Label(LABELS[label]))]
        yield Conversation(f"post-{number}", utterances, line, split)


def _posts(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line number, label and text."""
    rows = csv_rows(path)
    _, header = next(rows, (1, []))
    if header != HEADER:
        actual = f"the header {shorten(', '.join(header))!r}" if header else "no header"
        raise SourceError.at(path.name, 1, actual, ", ".join(HEADER), "name a file of weibo_senti_100k")
    for line, row in rows:
        if len(row) != len(HEADER):
            raise SourceError.at(path.name, line, f"{len(row)} columns", "2 (label, review)", "correct the row")
        label = row[0].strip()
        if label not in LABELS:
            expected = "1 (positive) or 0 (negative)"
            raise SourceError.at(path.name, line, f"the label {shorten(label)!r}", expected, "correct the row")
        yield line, label, row[1]
