"""EmpatheticIntents (Welivita and Pu, 2020): single utterances with one of 41 labels, for a classifier.

`train_data/train.txt`, `valid.txt`, `test.txt`: a label's number, `<SEP>`, the text. A line with one of the 32 emotions
is the situation of a conversation of EmpatheticDialogues; one with an intent, or neutral, is a listener's line. The
numbers are those of `taxonomy.LABELS`: the accompanying labels.txt gives 38 to both questioning and neutral, but
neutral is 40 in the files.

`part="hand"` reads `manual_annotations/`, which people labelled, with one file per label. Of its 15 labels, the eight
that are intents here are read, by name; lines with other labels are dropped and counted.

Evaluation data must not be in the training data. A line of train is dropped, and counted under the first reason that
applies,

- if it is a listener's (an intent or neutral) and a listener says it in test or valid of EmpatheticDialogues, whose
  folder is looked for next to this one, then in the data folders;
- if it is a listener's and is also among the hand-labelled lines;
- if it is also in test.txt or valid.txt here.

Lines are compared by their letters and digits, in lower case: "That's great!" equals "thats great". `leaks=True` keeps
these lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources import empathetic_dialogues, find_data
from listenwell.data.sources.dialogue_builder import Builder, Utterance
from listenwell.data.sources.files import DataFile, Piece, choose, lines
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.labels.taxonomy import EMOTION_ID, LABELS, unknown_name

NAME = "empathetic-intents"
FOLDER = "empathetic_intents"
HOW_TO_GET = "it is published at https://github.com/anuradha1992/EmpatheticIntents"

# Dropped
IN_TEST = "a listener's line of EmpatheticDialogues, test"
IN_VALID = "a listener's line of EmpatheticDialogues, valid"
IN_HAND = "a line that is also labelled by hand"
IN_OWN = "a line of the test or valid file"
OTHER_INTENT = "a hand-assigned label that is not one of the eight intents"

SEPARATOR = "<SEP>"
HAND = "hand"
PIECES = tuple(Piece(split, (f"train_data/{split}.txt", f"{split}.txt")) for split in ("train", "valid", "test"))
HAND_LABELS = (
    "acknowledging", "advising", "agreeing", "appreciating", "consoling", "disapproving", "encouraging",
    "expressing_care_concern", "expressing_relief", "questioning", "sharing_experience", "sharing_opinions",
    "suggesting", "sympathizing", "wishing",
)  # fmt: skip
HAND_PIECES = tuple(Piece("test", (f"manual_annotations/{label}.txt", f"{label}.txt"), HAND) for label in HAND_LABELS)


def files(
    path: str | Path, split: str | None = None, *, part: str | None = None, leaks: bool = False
) -> list[DataFile]:
    """The files to read. Reading train also reads the files it is checked against."""
    chosen = _chosen(path, split, part)
    held = [] if leaks or not any(_learned(data_file) for data_file in chosen) else [*_held(Path(path)).values()]
    return list(dict.fromkeys([*chosen, *(data_file for several in held for data_file in several)]))


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    clean: bool = False,
    part: str | None = None,
    leaks: bool = False,
) -> Iterator[Dialogue]:
    """The lines of a file, or of a split (or all splits) of a folder, as dialogues of one turn.

    `part="hand"`: the hand-labelled lines, which count as test. `leaks`: keep evaluation data in train.
    `clean`: lines that are junk or duplicates are dropped.
    """
    chosen = _chosen(path, split, part)
    held = {} if leaks or not any(_learned(data_file) for data_file in chosen) else _held(Path(path))
    return _read(chosen, held, Builder(NAME, Report() if report is None else report, clean, single_turn=True))


def _chosen(path: str | Path, split: str | None, part: str | None) -> list[DataFile]:
    if part not in (None, HAND):
        raise ValueError(unknown_name("part", str(part), (HAND,)))
    pieces = (*PIECES, *HAND_PIECES) if Path(path).is_file() else HAND_PIECES if part else PIECES
    return choose(path, pieces, split, part, how_to_get=HOW_TO_GET)


def _learned(data_file: DataFile) -> bool:
    return data_file.split == "train" and data_file.part is None


def _read(chosen: list[DataFile], held: dict[str, list[DataFile]], builder: Builder) -> Iterator[Dialogue]:
    against = {reason: _marks(several) for reason, several in held.items()}
    for data_file in chosen:
        entries = _hand_lines(data_file) if data_file.part == HAND else _numbered_lines(data_file)
        for line, label, text in entries:
            if label not in LABELS:
                builder.refuse(OTHER_INTENT, data_file, line, f"{label}: {text}")
                continue
            leak = _leak(label, text, against) if _learned(data_file) else None
            if leak is not None:
                builder.refuse(leak, data_file, line, text)
                continue
            utterance = Utterance("speaker" if label in EMOTION_ID else "listener", text, line, Label(label))
            name = builder.name(f"{label if data_file.part == HAND else data_file.stem}-{line}", data_file, line)
            dialogue = builder.build(name, [utterance], data_file, line)
            if dialogue is not None:
                yield dialogue


def _numbered_lines(data_file: DataFile) -> Iterator[tuple[int, str, str]]:
    """Line number, label and text."""
    for line, row in lines(data_file.path):
        if not row.strip():
            continue
        number, separator, text = (piece.strip(" \r\n") for piece in row.partition(SEPARATOR))
        if not separator or not number.isdecimal() or int(number) >= len(LABELS):
            expected = f"a number from 0 to {len(LABELS) - 1}, {SEPARATOR} and the text"
            raise SourceError.at(data_file.file, line, f"{shorten(row.strip())!r}", expected, "correct the line")
        yield line, LABELS[int(number)], text


def _hand_lines(data_file: DataFile) -> Iterator[tuple[int, str, str]]:
    for line, row in lines(data_file.path):
        if row.strip():
            yield line, data_file.path.stem, row.rstrip("\r\n")


# What train is checked against


def _held(path: Path) -> dict[str, list[DataFile]]:
    """The files whose lines must not be in train, by the reason to report; missing files here are left out, but those
    of EmpatheticDialogues are required."""
    root = path if path.is_dir() else path.parent.parent if path.parent.name == "train_data" else path.parent
    ours = _dialogues(root)
    held = {
        IN_TEST: [DataFile(ours / "test.csv", "test", empathetic_dialogues.NAME)],
        IN_VALID: [DataFile(ours / "valid.csv", "valid", empathetic_dialogues.NAME)],
        IN_HAND: _there(root, HAND_PIECES),
        IN_OWN: _there(root, [piece for piece in PIECES if piece.split != "train"]),
    }
    for data_file in (*held[IN_TEST], *held[IN_VALID]):
        if not data_file.path.is_file():
            raise FileNotFoundError(f"{data_file.path} is not there; {_WHY}")
    return held


_WHY = (
    "train is read without the lines that EmpatheticDialogues has in test and valid, so as not to learn what is scored "
    "there; leaks=True reads it whole"
)


def _dialogues(root: Path) -> Path:
    beside = root.resolve().parent / empathetic_dialogues.FOLDER
    if beside.is_dir():
        return beside
    try:
        return find_data(empathetic_dialogues.NAME)
    except FileNotFoundError as problem:
        raise FileNotFoundError(f"{problem}. {_WHY}") from problem


def _there(root: Path, pieces: Iterable[Piece]) -> list[DataFile]:
    places = [(root / name, piece) for piece in pieces for name in piece.names]
    return [DataFile(place, piece.split, piece.part) for place, piece in places if place.is_file()]


def _marks(several: Iterable[DataFile]) -> set[str]:
    return {mark for data_file in several for text in _texts(data_file) if (mark := spelling(text))}


def _texts(data_file: DataFile) -> Iterator[str]:
    if data_file.part == empathetic_dialogues.NAME:
        for dialogue in empathetic_dialogues.read(data_file.path, data_file.split):
            yield from (turn.text for turn in dialogue.turns if turn.speaker == "listener")
    else:
        yield from (
            text for _, _, text in (_hand_lines(data_file) if data_file.part == HAND else _numbered_lines(data_file))
        )


def spelling(text: str) -> str:
    """The letters and digits of a text in lower case: equal for lines that only differ in spaces and marks."""
    return "".join(char for char in text.casefold() if char.isalnum())


def _leak(label: str, text: str, against: dict[str, set[str]]) -> str | None:
    mark = spelling(text)
    # A situation that a listener happens to say as well is not a listener's line.
    reasons = against if label not in EMOTION_ID else {IN_OWN}
    return next((reason for reason in reasons if mark in against.get(reason, ())), None)
