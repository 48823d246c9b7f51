"""Sentences of the NLPCC evaluations' Weibo posts, each with one of five emotions or none.

`train.tsv`, `valid.tsv`, `test.tsv`: a label and a sentence, separated by a tab; its words are separated by spaces and
are joined again. A sentence is a dialogue of one turn. Many sentences of train are also in the test posts of NLPCC
2014, and some in valid or test here: these are dropped and counted (see `nlpcc_overlap`); `leaks=True` keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources.detokenize import join_characters
from listenwell.data.sources.dialogue_builder import Builder, Utterance
from listenwell.data.sources.files import DataFile, Piece, choose, lines
from listenwell.data.sources.nlpcc_overlap import (
    SENTENCES,
    SENTENCES_FOLDER,
    leak_of_sentence,
    scored_files,
    scored_texts,
)
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.labels.sets import NLPCC

NAME = SENTENCES
FOLDER = SENTENCES_FOLDER
HOW_TO_GET = "it is made of the NLPCC 2013 and 2014 evaluations of emotions in Weibo posts"

PIECES = tuple(Piece(split, (f"{split}.tsv",)) for split in ("train", "valid", "test"))


def files(path: str | Path, split: str | None = None, *, leaks: bool = False) -> list[DataFile]:
    """The files to read. Reading train also reads the evaluation data that it is checked against."""
    chosen = choose(path, PIECES, split, how_to_get=HOW_TO_GET)
    return list(
        dict.fromkeys(
            [*chosen, *(data_file for several in _scored(path, chosen, leaks).values() for data_file in several)]
        )
    )


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    clean: bool = False,
    leaks: bool = False,
) -> Iterator[Dialogue]:
    """The sentences of a file, or of a split (or all splits) of a folder, as dialogues of one turn.

    `leaks`: keep evaluation data in train. `clean`: sentences that are junk or duplicates are dropped.
    """
    chosen = choose(path, PIECES, split, how_to_get=HOW_TO_GET)
    builder = Builder(NAME, Report() if report is None else report, clean, language="zh", single_turn=True)
    return _read(chosen, _scored(path, chosen, leaks), builder)


def _scored(path: str | Path, chosen: list[DataFile], leaks: bool) -> dict[str, list[DataFile]]:
    return {} if leaks or all(data_file.split != "train" for data_file in chosen) else scored_files(Path(path))


def _read(chosen: list[DataFile], held_out: dict[str, list[DataFile]], builder: Builder) -> Iterator[Dialogue]:
    scored = scored_texts(held_out)
    for data_file in chosen:
        for line, label, text in _rows(data_file.path):
            leak = leak_of_sentence(text, scored) if data_file.split == "train" else None
            if leak is not None:
                builder.refuse(leak, data_file, line, text)
                continue
            utterances = [Utterance("speaker", text, line, Label(label))]
            dialogue = builder.build(f"{data_file.stem}-{line}", utterances, data_file, line)
            if dialogue is not None:
                yield dialogue


def _rows(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line number, label and text."""
    for line, row in lines(path):
        fields = row.rstrip("\r\n").split("\t")
        if not any(fields):
            continue
        if len(fields) != 2 or fields[0].strip().lower() not in NLPCC.labels:
            expected = f"one of {', '.join(NLPCC.labels)}, a tab and a sentence"
            raise SourceError.at(path.name, line, f"{shorten(row.strip())!r}", expected, "correct the line")
        yield line, fields[0].strip().lower(), join_characters(fields[1])
