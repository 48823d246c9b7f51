"""What one NLPCC corpus scores and another trains on: the Weibo posts of 2013 and 2014 and their sentences overlap.

A text of a training part is a leak if it stands in the test posts of NLPCC 2014, or in valid or test of
nlpcc-sentences. Texts are compared by letters and digits alone, in small letters, since nlpcc-sentences has its words
spaced.
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
"""Letters from which on one shared sentence makes a post a leak: "哈哈" stands in many posts."""

WHY = "train is read without the texts that are scored there; leaks=True reads it whole"


def scored_files(path: Path) -> dict[str, list[DataFile]]:
    """The files whose texts train must not have, by the reason that is reported. `path`: the corpus that is read."""
    root = path if path.is_dir() else path.parent
    posts = nlpcc2014.files(_folder(root, nlpcc2014.NAME, nlpcc2014.FOLDER), "test")
    folder = _folder(root, SENTENCES, SENTENCES_FOLDER)
    sentences = [DataFile(folder / f"{split}.tsv", split, SENTENCES) for split in ("valid", "test")]
    for data_file in sentences:
        if not data_file.path.is_file():
            raise FileNotFoundError(f"{data_file.path} is not there; {WHY}")
    return {IN_2014: posts, IN_SENTENCES: sentences}


def scored_texts(files: Mapping[str, Sequence[DataFile]]) -> dict[str, set[str]]:
    """The spellings of the texts in `files`, by the same reasons."""
    return {
        reason: {mark for data_file in several for text in _texts(data_file) if (mark := spelling(text))}
        for reason, several in files.items()
    }


def leak_of_sentence(text: str, scored: Mapping[str, set[str]]) -> str | None:
    """The first reason why a sentence must not be trained on; None where there is none."""
    mark = spelling(text)
    return next((reason for reason, marks in scored.items() if mark in marks), None)


def leak_of_post(sentences: Sequence[str], scored: Mapping[str, set[str]]) -> str | None:
    """The same of a post: the whole of it, or one long sentence, stands elsewhere."""
    long = [sentence for sentence in sentences if len(spelling(sentence)) >= LONG_SENTENCE]
    reasons = (leak_of_sentence(text, scored) for text in ("".join(sentences), *long))
    return next((reason for reason in reasons if reason), None)


def _folder(root: Path, name: str, folder: str) -> Path:
    """Where a corpus is: next to the one that is read, else where all corpora are."""
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
