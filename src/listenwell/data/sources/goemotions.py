"""GoEmotions (Demszky et al., 2020): single comments from Reddit, labelled with 27 emotions and neutral.

`train.tsv`, `dev.tsv`, `test.tsv`: text, label numbers and id, separated by tabs; with a header or, as published,
without. A comment is a dialogue of one turn. One comment in six has several labels: a Turn only has one, and choosing
would be a guess, so such a comment is kept without a label and noted. `comments` gives all labels, for multi-label
training; `read_polarity` gives the polarity that they share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources.dialogue_builder import Builder, Utterance
from listenwell.data.sources.files import DataFile, Piece, choose, lines
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.labels.polarity import one_polarity
from listenwell.labels.sets import GOEMOTIONS

NAME = "goemotions"
FOLDER = "goemotions"
HOW_TO_GET = "it is published at https://github.com/google-research/google-research/tree/master/goemotions/data"

LABELS = GOEMOTIONS.labels
"""In the order of the published emotions.txt, so that the numbers in the files are indices."""

# Noted
SEVERAL = "several labels, kept without any"
NO_POLARITY = "labels that are ambiguous or differ in polarity, kept without any"

PIECES = tuple(
    Piece(split, (f"{name}.tsv", f"data/{name}.tsv"))
    for split, name in (("train",) * 2, ("valid", "dev"), ("test",) * 2)
)


@dataclass(frozen=True, slots=True)
class Comment:
    """A line of the files."""

    line: int
    id: str
    text: str
    labels: tuple[str, ...]


def files(path: str | Path, split: str | None = None) -> list[DataFile]:
    """The files to read for `split`, each with its split; all splits of a folder by default."""
    return choose(path, PIECES, split, how_to_get=HOW_TO_GET)


def read(
    path: str | Path, split: str | None = None, *, report: Report | None = None, clean: bool = False
) -> Iterator[Dialogue]:
    """The comments of a file, or of a split (or all splits) of a folder, as dialogues of one turn.

    `clean`: comments that are junk or duplicates are dropped.
    """
    chosen = files(path, split)
    builder = Builder(NAME, Report() if report is None else report, clean, single_turn=True)
    return _read(chosen, builder, lambda labels: labels[0] if len(labels) == 1 else None, SEVERAL)


def read_polarity(
    path: str | Path, split: str | None = None, *, report: Report | None = None, clean: bool = False
) -> Iterator[Dialogue]:
    """The same comments, labelled negative, neutral or positive if all their labels agree in polarity.

    A comment with an ambiguous label, or with labels of different polarities (neutral is one), has no label.
    """
    chosen = files(path, split)
    builder = Builder(NAME, Report() if report is None else report, clean, single_turn=True)
    return _read(chosen, builder, lambda labels: one_polarity(NAME, labels), NO_POLARITY)


def _read(
    chosen: list[DataFile], builder: Builder, chosen_label: Callable[[tuple[str, ...]], str | None], without: str
) -> Iterator[Dialogue]:
    for data_file in chosen:
        for comment in comments(data_file.path):
            name = chosen_label(comment.labels)
            label = None if name is None else Label(name)
            if label is None:
                builder.report.note(without, data_file.file, comment.line, ", ".join(comment.labels))
            utterances = [Utterance("speaker", comment.text, comment.line, label)]
            id = builder.name(comment.id, data_file, comment.line)
            dialogue = builder.build(id, utterances, data_file, comment.line)
            if dialogue is not None:
                yield dialogue


def comments(path: Path) -> Iterator[Comment]:
    """The comments of one file with all their labels."""
    for line, row in lines(path):
        fields = row.rstrip("\r\n").split("\t")
        if not any(fields) or (line == 1 and [name.lower() for name in fields[:2]] in _HEADERS):
            continue
        if len(fields) != 3 or not fields[2].strip():
            actual = f"{len(fields)} columns" if len(fields) != 3 else "a blank id"
            raise _wrong(path, line, actual, "3 between tabs (text, labels, id)")
        text, numbers, name = fields
        yield Comment(line, name.strip(), _unquoted(text), _labels(numbers, path, line))


_HEADERS = (["text", "label"], ["text", "labels"])


def _labels(numbers: str, path: Path, line: int) -> tuple[str, ...]:
    names = []
    for number in numbers.split(","):
        if not number.strip().isdecimal() or int(number) >= len(LABELS):
            raise _wrong(path, line, f"the labels {shorten(numbers)!r}", f"numbers from 0 to {len(LABELS) - 1}")
        names.append(LABELS[int(number)])
    return tuple(names)


def _wrong(path: Path, line: int, actual: str, expected: str) -> SourceError:
    return SourceError.at(path.name, line, actual, expected, "correct the line, or download the file again")


def _unquoted(text: str) -> str:
    """Removes CSV quoting: quotes around a text, if the quotes inside it are doubled."""
    inside = text[1:-1]
    if len(text) > 1 and text[0] == text[-1] == '"' and '""' in inside and '"' not in inside.replace('""', ""):
        return inside.replace('""', '"')
    return text
