"""NLPCC 2013's evaluation of emotions in Weibo posts: the 4,000 posts to train with, seven emotions or none.

The XML is that of NLPCC 2014 with other attribute names, and is read the same way. One file has two parts: *posts* (the
default), each with one emotion; *sentences*, each as a separate dialogue with its first emotion ("none" if it shows
none). Posts that are also test posts of NLPCC 2014, or share a long sentence with these or with valid or test of
nlpcc-sentences, are dropped and counted (see `nlpcc_overlap`), and so are such sentences; `leaks=True` keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources import quality
from listenwell.data.sources.dialogue_builder import Builder, Conversation, Utterance, read_files
from listenwell.data.sources.files import DataFile, Piece, choose
from listenwell.data.sources.nlpcc2014 import NONE, SECOND, Weibo, conversation_of, weibos
from listenwell.data.sources.nlpcc_overlap import leak_of_post, leak_of_sentence, scored_files, scored_texts
from listenwell.data.sources.report import Report
from listenwell.labels.sets import NLPCC

NAME = "nlpcc2013"
FOLDER = "nlpcc2013_weibo"
HOW_TO_GET = "the evaluation's page is http://tcci.ccf.org.cn/conference/2013/pages/page04_sam.html"

PARTS = ("posts", "sentences")
PIECES = tuple(Piece("train", ("sample.xml",), part) for part in PARTS)


def files(
    path: str | Path, split: str | None = None, *, part: str | None = None, leaks: bool = False
) -> list[DataFile]:
    """The files to read, including the evaluation data that it is checked against."""
    chosen = _chosen(path, split, part)
    held_out = {} if leaks else scored_files(Path(path))
    return list(dict.fromkeys([*chosen, *(data_file for several in held_out.values() for data_file in several)]))


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    clean: bool = False,
    part: str | None = None,
    leaks: bool = False,
) -> Iterator[Dialogue]:
    """The posts, or with `part="sentences"` their sentences, as dialogues of one turn; all are train.

    `leaks`: keep texts that are evaluation data elsewhere. `clean`: posts that are junk or duplicates are dropped.
    """
    chosen = _chosen(path, split, part)
    held_out = {} if leaks else scored_files(Path(path))
    builder = Builder(NAME, Report() if report is None else report, clean, language="zh", single_turn=True)
    return _read(chosen, held_out, builder)


def _chosen(path: str | Path, split: str | None, part: str | None) -> list[DataFile]:
    return choose(path, PIECES, split, part or PARTS[0], how_to_get=HOW_TO_GET)


def _read(chosen: list[DataFile], held_out: dict[str, list[DataFile]], builder: Builder) -> Iterator[Dialogue]:
    yield from read_files(chosen, builder, partial(_conversations, scored=scored_texts(held_out)))


def _conversations(data_file: DataFile, builder: Builder, scored: dict[str, set[str]]) -> Iterator[Conversation]:
    for weibo in weibos(data_file.path):
        if data_file.part == "sentences":
            yield from _sentences(weibo, scored, builder, data_file)
        elif leak := leak_of_post(weibo.sentences, scored):
            builder.refuse(leak, data_file, weibo.line, "".join(weibo.sentences))
        else:
            yield conversation_of(weibo, data_file, builder)


def _sentences(
    weibo: Weibo, scored: dict[str, set[str]], builder: Builder, data_file: DataFile
) -> Iterator[Conversation]:
    for number, (text, (first, second)) in enumerate(zip(weibo.sentences, weibo.emotions, strict=True), start=1):
        leak = leak_of_sentence(text, scored)
        if leak is not None:
            builder.refuse(leak, data_file, weibo.line, text)
            continue
        if first not in NLPCC.labels:
            builder.report.note(quality.UNKNOWN_LABEL, data_file.file, weibo.line, first)
        if second not in (NONE, first):
            builder.report.note(SECOND, data_file.file, weibo.line, f"{first}, {second}")
        name = builder.name(f"{data_file.stem}-{weibo.id}-{number}", data_file, weibo.line)
        yield Conversation(name, [Utterance("speaker", text, weibo.line, Label(first))], weibo.line)
