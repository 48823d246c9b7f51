"""Finds leaks between the NLPCC corpora: the Weibo posts of 2013 and 2014 and their sentences overlap.

A training text is a leak if it is also in the test posts of NLPCC 2014, or in valid or test of nlpcc-sentences. Texts
are compared by their letters and digits in lower case, since nlpcc-sentences has spaces between words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from listenwell.data.sources import find_data, nlpcc2014
from listenwell.data.sources.empathetic_intents import spelling
from listenwell.data.sources.files import DataFile, lines

SENTENCES = "nlpcc-sentences"
SENTENCES_FOLDER = "nlpcc_sentences"

# Dropped
IN_2014 = "a sentence or post of NLPCC 2014, test"
IN_SENTENCES = "a sentence of nlpcc-sentences, test or valid"

LONG_SENTENCE = 6
"""A shared sentence of at least this many letters makes a post a leak; short ones like "哈哈" are in many posts."""

WHY = "train is read without the texts that are scored there; leaks=True reads it whole"


def scored_files(path: Path) -> dict[str, list[DataFile]]:
    """The files whose texts must not be in train, by the reason to report. `path`: the corpus being read."""
    root = path if path.is_dir() else path.parent
    posts = nlpcc2014.files(_folder(root, nlpcc2014.NAME, nlpcc2014.FOLDER), "test")
    folder = _folder(root, SENTENCES, SENTENCES_FOLDER)
    sentences = [DataFile(folder / f"{split}.tsv", split, SENTENCES) for split in ("valid", "test")]
    for data_file in sentences:
        if not data_file.path.is_file():
            raise FileNotFoundError(f"{data_file.path} is not there; {WHY}")
    return {IN_2014: posts, IN_SENTENCES: sentences}


def scored_texts(files: Mapping[str, Sequence[DataFile]]) -> dict[str, set[str]]:
    """The normalized spellings of the texts in `files`, by reason."""
    return {
        reason: {mark for data_file in several for text in _texts(data_file) if (mark := spelling(text))}
        for reason, several in files.items()
    }


def leak_of_sentence(text: str, scored: Mapping[str, set[str]]) -> str | None:
    """The first reason why a sentence is a leak; None if it is not."""
    mark = spelling(text)
    return next((reason for reason, marks in scored.items() if mark in marks), None)


def leak_of_post(sentences: Sequence[str], scored: Mapping[str, set[str]]) -> str | None:
    """The same for a post, which is a leak if its full text or one of its long sentences is."""
    long = [sentence for sentence in sentences if len(spelling(sentence)) >= LONG_SENTENCE]
    reasons = (leak_of_sentence(text, scored) for text in ("".join(sentences), *long))
    return next((reason for reason in reasons if reason), None)


def _folder(root: Path, name: str, folder: str) -> Path:
    """The folder of a corpus: next to the one being read, else in the data folders."""
    beside = root.resolve().parent / folder
    if beside.is_dir():
        return beside
    try:
        return find_data(name)
    except FileNotFoundError as problem:
        raise FileNotFoundError(f"{problem}. {WHY}") from problem


def _texts(data_file: DataFile) -> Iterator[str]:
    if data_file.part == SENTENCES:
        yield from (row.partition("\t")[2] for _, row in lines(data_file.path))
        return
    for weibo in nlpcc2014.weibos(data_file.path):
        yield from (*weibo.sentences, "".join(weibo.sentences))
