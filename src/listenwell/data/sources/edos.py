"""EDOS (Welivita et al., 2021): the seed dialogues, from film subtitles, whose last turn carries a label.

Four parts, each a CSV file, distinguished by their header:

- *mturk*: labelled by three people; "-" if no two of them agreed. Gold. A third of the dialogues have a single turn.
- *self-labelled*: labelled by a classifier, with its confidence.
- *similar*: the label of the nearest mturk dialogue, with the cosine similarity as confidence.
- *similar-self-labelled*: the same, with the nearest self-labelled dialogue.

`part="seed"` reads the three machine-labelled parts. No splits were published; here 80 % of the dialogues are train,
10 % valid and 10 % test, by a hash of their texts, so that a dialogue in two files is in one split. Turns alternate, as
segmented by the authors; subtitles do not say who speaks. Texts are detokenized: "don 't" is read as "don't". A label
is one of `taxonomy.LABELS`, or a worker's free answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources import quality
from listenwell.data.sources.detokenize import detokenise
from listenwell.data.sources.dialogue_builder import Builder, taking_turns
from listenwell.data.sources.files import DataFile, Piece, choose, csv_rows
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.data.sources.splits import split_name, split_of_texts
from listenwell.labels.taxonomy import LABEL_ID, unknown_name

NAME = "edos"
FOLDER = "edos"
HOW_TO_GET = "the seed dialogues are published at https://github.com/anuradha1992/EDOS"

# Noted
NO_MAJORITY = "no majority for a label"
FREE_ANSWER = "label in a worker's own words"


@dataclass(frozen=True)
class Layout:
    """The columns of one kind of file, and which of them are read."""

    columns: tuple[str, ...]
    id: str
    text: str
    label: str
    confidence: str | None = None

    def field(self, row: list[str], column: str) -> str:
        return row[self.columns.index(column)]


def _similar(kind: str) -> Layout:
    nearest = (f"{kind}_dialog_id", f"{kind}_dialog")
    columns = ("", "emotion", "cos_sim", *nearest, "os_dialog_id", "os_dialog")
    return Layout(columns, "os_dialog_id", "os_dialog", "emotion", "cos_sim")


_MAJORITY = "Agreed emotion (2/3 vote)"
_WORKERS = ("Worker 1 answer", "Worker 2 answer", "Worker 3 answer")
LAYOUTS: dict[str, Layout] = {
    "mturk": Layout(("Count", "Index", "DialogID", "Dialog", _MAJORITY, *_WORKERS), "DialogID", "Dialog", _MAJORITY),
    "self-labelled": Layout(
        ("", "Unnamed: 0", "os_dialog_id", "emotion", "confidence", "os_dialog"),
        "os_dialog_id",
        "os_dialog",
        "emotion",
        "confidence",
    ),
    "similar": _similar("amt"),
    "similar-self-labelled": _similar("high"),
}
PARTS = (*LAYOUTS, "seed")
PIECES = (
    Piece("train", ("MTurk_groundtruth_labels_9K.csv",), "mturk"),
    Piece("train", ("Self-labeled_dialogs_4K.csv",), "self-labelled"),
    Piece("train", ("Similar_dialogs_3K.csv",), "similar"),
    Piece("train", ("Similar_self-labeled_dialogs_2K.csv",), "similar-self-labelled"),
)

_DASHES = re.compile(r"(?:- )*")


def files(path: str | Path, split: str | None = None, *, part: str | None = None) -> list[DataFile]:
    """The files of a part, or of all parts; each file has dialogues of every split."""
    if split is not None:
        split_name(split)
    if part not in (None, *PARTS):
        raise ValueError(unknown_name("part", str(part), PARTS))
    pieces = [piece for piece in PIECES if part != "seed" or piece.part != "mturk"]
    return choose(path, pieces, None, None if part == "seed" else part, how_to_get=HOW_TO_GET)


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    clean: bool = False,
    part: str | None = None,
) -> Iterator[Dialogue]:
    """The dialogues of a part and split (all by default) of the folder, or of one file.

    `clean`: a junk turn ends its conversation, and duplicate dialogues are dropped.
    """
    chosen = files(path, split, part=part)
    wanted = None if split is None else split_name(split)
    return _read(chosen, Builder(NAME, Report() if report is None else report, clean), wanted)


def _read(chosen: list[DataFile], builder: Builder, wanted: str | None) -> Iterator[Dialogue]:
    for data_file in chosen:
        rows = csv_rows(data_file.path)
        part, layout = _layout(next(rows, (1, []))[1], data_file.file)
        for line, row in rows:
            if len(row) != len(layout.columns):
                expected = f"{len(layout.columns)} ({', '.join(layout.columns)})"
                raise SourceError.at(data_file.file, line, f"{len(row)} columns", expected, "correct the row")
            texts = layout.field(row, layout.text).split("\n")
            if part != "mturk":
                texts = [_DASHES.sub("", text, count=1) for text in texts]
            texts = [detokenise(text) for text in texts]
            name = builder.name(f"{part}-{layout.field(row, layout.id)}", data_file, line)
            split = split_of_texts(texts)
            if wanted not in (None, split):
                continue
            label = _label(row, layout, builder.report, data_file.file, line)
            utterances = taking_turns(texts, line, [*[None] * (len(texts) - 1), label])
            dialogue = builder.build(name, utterances, data_file._replace(split=split), line)
            if dialogue is not None:
                yield dialogue


def _layout(header: list[str], file: str) -> tuple[str, Layout]:
    for part, layout in LAYOUTS.items():
        if tuple(header) == layout.columns:
            return part, layout
    actual = f"the header {shorten(', '.join(header))!r}" if header else "no header"
    expected = " or ".join(", ".join(layout.columns) for layout in LAYOUTS.values())
    raise SourceError.at(file, 1, actual, expected, "name a file of EDOS, or convert yours to .jsonl")


def _label(row: list[str], layout: Layout, report: Report, file: str, line: int) -> Label | None:
    name = layout.field(row, layout.label).strip().lower()
    if name in ("", "-"):
        report.note(NO_MAJORITY, file, line, layout.field(row, layout.text))
        return None
    if name.endswith("(other)"):
        report.note(FREE_ANSWER, file, line, name)
        name = name.removesuffix("(other)").strip()
    if name not in LABEL_ID:
        report.note(quality.UNKNOWN_LABEL, file, line, name)
    by: Literal["gold", "machine"] = "machine" if layout.confidence else "gold"
    return Label(name, by, _confidence(row, layout, file, line))


def _confidence(row: list[str], layout: Layout, file: str, line: int) -> float | None:
    if layout.confidence is None:
        return None
    written = layout.field(row, layout.confidence)
    try:
        value = float(written)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        actual, way_out = f"{layout.confidence} {written!r}", "correct the row"
        raise SourceError.at(file, line, actual, "a number from 0 to 1", way_out)
    return value
