"""DailyDialog (Li et al., 2017): everyday talk between two people, an emotion and an act for every turn.

The official layout has one folder per split, with parallel files of one dialogue per line:

    test/dialogues_test.txt            The kitchen stinks . __eou__ I'll throw out the garbage . __eou__
    test/dialogues_emotion_test.txt    2 0
    test/dialogues_act_test.txt        3 4

The two people alternate; the first is the speaker. A line whose numbers of labels and turns differ is dropped (the
published training split has one). Texts are tokens separated by spaces and are detokenized: "I ’ ll go ." is read as
"I’ll go.".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources.detokenize import detokenise
from listenwell.data.sources.dialogue_builder import Builder, taking_turns
from listenwell.data.sources.empathetic_dialogues import TOLERATED
from listenwell.data.sources.files import DataFile, Piece, aligned, choose
from listenwell.data.sources.report import Report, SourceError
from listenwell.labels.sets import DAILYDIALOG
from listenwell.labels.taxonomy import unknown_name

NAME = "dailydialog"
FOLDER = "dailydialog"
HOW_TO_GET = "the published archive is http://yanran.li/files/ijcnlp_dailydialog.zip (unpack the archives in it, too)"

EMOTIONS = DAILYDIALOG.labels
ACTS = ("inform", "question", "directive", "commissive")
NUMBERED: dict[str, dict[str, str]] = {
    "emotion": {str(number): name for number, name in enumerate(EMOTIONS)},
    "act": {str(number): name for number, name in enumerate(ACTS, start=1)},
}
"""The meanings of the numbers in the files."""
Kind = Literal["emotion", "act"]

END = "__eou__"

# Dropped
MISMATCH = "another number of turns than of labels"

_INSIDE = "ijcnlp_dailydialog"


def _names(folder: str) -> tuple[str, ...]:
    name = f"{folder}/dialogues_{folder}.txt"
    # The published archive contains this folder; `path` may also be the folder it was unpacked to.
    return name, f"{_INSIDE}/{name}"


PIECES = tuple(
    Piece(split, _names(folder)) for split, folder in [("train",) * 2, ("valid", "validation"), ("test",) * 2]
)


def files(path: str | Path, split: str | None = None, *, label: Kind = "emotion") -> list[DataFile]:
    """The files to read, text and labels, each with its split."""
    return [part for pair in _pairs(path, split, label) for part in pair]


def _pairs(path: str | Path, split: str | None, label: str) -> list[tuple[DataFile, DataFile]]:
    if label not in NUMBERED:
        raise ValueError(unknown_name("kind of label", label, NUMBERED))
    pairs = []
    for data_file in choose(path, PIECES, split, how_to_get=HOW_TO_GET):
        labels = data_file.path.with_name(data_file.file.replace("dialogues_", f"dialogues_{label}_", 1))
        if labels == data_file.path or not labels.is_file():
            raise FileNotFoundError(f"{data_file.path}: dialogues_{label}_… is not beside it; {HOW_TO_GET}")
        pairs.append((data_file, data_file._replace(path=labels)))
    return pairs


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    strict: bool = True,
    clean: bool = False,
    label: Kind = "emotion",
    detokenised: bool = True,
) -> Iterator[Dialogue]:
    """The dialogues of a split (or all splits) of a folder, or of one text file with its labels beside it.

    `strict`: if more than 1 % of the lines are dropped, an error is raised at the end of the file.
    `clean`: a junk turn ends its conversation, and duplicate dialogues are dropped.
    `label`: label the turns with their emotion or their act. `detokenised`: False keeps the spaces.
    """
    builder = Builder(NAME, Report() if report is None else report, clean)
    return _read(_pairs(path, split, label), builder, NUMBERED[label], strict, detokenised)


def _read(
    pairs: list[tuple[DataFile, DataFile]], builder: Builder, numbered: dict[str, str], strict: bool, detokenised: bool
) -> Iterator[Dialogue]:
    for data_file, labelled in pairs:
        lines = AlignedTurns(builder, data_file, strict)
        for number, (text, numbers) in aligned(data_file.path, labelled.path):
            labels = parse_labels(numbers, numbered, labelled.file, number)
            dialogue = lines.dialogue(number, turns_of(text, detokenised), labels)
            if dialogue is not None:
                yield dialogue
        lines.check()


def turns_of(line: str, detokenised: bool) -> list[str]:
    """The texts of a line; each turn ends with the END mark, which is optional for the last one."""
    texts = line.split(END)
    if not texts[-1].strip():
        texts.pop()
    return [detokenise(text) if detokenised else text.strip() for text in texts]


def parse_labels(numbers: str, names: dict[str, str], file: str, line: int) -> list[Label]:
    """Parse a line of numbers into labels."""
    labels = []
    for number in numbers.split():
        if number not in names:
            known = ", ".join(f"{key} {name}" for key, name in names.items())
            raise SourceError.at(file, line, f"the label {number!r}", known, "correct it, or download the file again")
        labels.append(Label(names[number]))
    return labels


@dataclass
class AlignedTurns:
    """Builds dialogues from turns and labels. Lines whose numbers of turns and labels differ are dropped, within
    limits."""

    builder: Builder
    data_file: DataFile
    strict: bool
    lines_seen: int = 0
    mismatches: int = 0
    first: SourceError | None = None

    def dialogue(self, line: int, texts: Sequence[str], labels: Sequence[Label]) -> Dialogue | None:
        self.lines_seen += 1
        if len(texts) != len(labels):
            self.mismatches += 1
            self.builder.refuse(
                MISMATCH, self.data_file, line, f"{len(texts)} turns, {len(labels)} labels: {texts[:1]}"
            )
            here = SourceError.at(
                self.data_file.file, line, f"{len(texts)} turns", f"{len(labels)}, as many as its labels"
            )
            self.first = self.first or here
            return None
        return self.builder.build(
            f"{self.data_file.stem}-{line}", taking_turns(texts, line, labels), self.data_file, line
        )

    def check(self) -> None:
        """Raise an error for too many mismatches: then a line was probably lost, and all labels after it are wrong."""
        if self.strict and self.mismatches > TOLERATED * self.lines_seen:
            way_out = f"{self.mismatches} of {self.lines_seen} lines differ: get the files again, or use strict=False"
            raise SourceError(f"{self.first}; {way_out}")
