"""EmpatheticDialogues (Rashkin et al., 2019), as published or with the machine labels of each turn.

Two layouts, distinguished by their header:

- *official*: `…,speaker_idx,utterance,selfeval,tags`. Not real CSV: commas inside a text are written `_comma_`, and
  quotes are plain characters, often unbalanced. So lines are split at commas, as in Facebook's own loader; a CSV parser
  would swallow rows. Some rows have a ninth field, the ranking candidates.
- *labelled*: `…,role,utterance,eri_label,prompt_eri_label`. Real CSV; `eri_label` is a classifier's label.

Everything that the published item counts include is kept, even if it is dirty, and noted in the report; `clean=True`
gives cleaner conversations, but other counts than published.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from listenwell.data.dialogue import ROLES, Dialogue, Label, Role, Turn
from listenwell.data.sources import quality
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.data.sources.splits import SPLITS, split_name, split_of_file
from listenwell.labels.taxonomy import EMOTION_ID, LABEL_ID

NAME = "empathetic-dialogues"
FOLDER = "empatheticdialogues"
"""The name of the folder in the data folder, and inside the published archive."""
HOW_TO_GET = (
    "the published archive is https://dl.fbaipublicfiles.com/parlai/empatheticdialogues/empatheticdialogues.tar.gz"
)

TOLERATED = 0.01
"""The share of malformed rows above which a file is considered damaged, not merely dirty."""

# Dropped
WRONG_COLUMNS = "wrong column count"
BAD_FIELD = "unusable field (conv_id, utterance_idx or role)"
EMPTY_TURN = "empty turn"
TOO_SHORT = "fewer than two turns left of a conversation"
CUT = "turn after a junk turn (clean)"
# Noted
BAD_ENCODING = "bad encoding"
STRAY_SPACES = "stray spaces"
LINE_BREAK = "line break inside a field"
NO_LABEL = "turn without label"
NO_EMOTION = "conversation without emotion"
MIXED_EMOTION = "emotion or situation changes within a conversation"
OUT_OF_ORDER = "turns out of order, sorted"
COMES_BACK = "conversation comes back later in the file"
SAME_ROLE = "same role twice in a row, joined"
ODD_WORKERS = "not two workers in a conversation, roles by turn number"


@dataclass(frozen=True)
class Layout:
    """The layout of one kind of file."""

    columns: tuple[str, ...]
    quoted: bool
    widths: tuple[int, ...]

    @property
    def expected(self) -> str:
        return f"{self.widths[0]} ({', '.join(self.columns)})"


_SHARED = ("conv_id", "utterance_idx", "context", "prompt")
OFFICIAL = Layout((*_SHARED, "speaker_idx", "utterance", "selfeval", "tags"), quoted=False, widths=(8, 9))
LABELLED = Layout((*_SHARED, "role", "utterance", "eri_label", "prompt_eri_label"), quoted=True, widths=(8,))


@dataclass(slots=True)
class Row:
    """One utterance as it is in the file. `who` is a worker's id or a role, depending on the layout."""

    line: int
    conversation: str
    index: int
    emotion: str
    situation: str
    who: str
    text: str
    label: str | None


def files(path: str | Path, split: str | None = None) -> list[tuple[Path, str | None]]:
    """The files to read for `split`, each with its split; all splits of a folder by default."""
    path = Path(path)
    wanted = None if split is None else split_name(split)
    if path.is_file():
        return [(path, wanted or split_of_file(path.name))]
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: no such file or folder; {HOW_TO_GET}")
    # The published archive contains this folder; `path` may also be the folder it was unpacked to.
    if not any(path.glob("*.csv")) and (path / FOLDER).is_dir():
        path = path / FOLDER
    by_split = {name: path / f"{name}.csv" for name in SPLITS if (path / f"{name}.csv").is_file()}
    if not by_split or (wanted and wanted not in by_split):
        missing = f"{wanted}.csv" if wanted else "none of train.csv, valid.csv, test.csv"
        there = ", ".join(sorted(entry.name for entry in path.iterdir())[:8]) or "nothing"
        problem = f"{missing} is not there" if wanted else f"{missing} is there"
        raise FileNotFoundError(f"{path}: {problem}, found {there}; {HOW_TO_GET}")
    return [(file, name) for name, file in by_split.items() if wanted in (None, name)]


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    strict: bool = True,
    clean: bool = False,
) -> Iterator[Dialogue]:
    """The dialogues of a file, or of a split (or all splits) of a folder, one at a time.

    `strict`: if more than 1 % of the rows are malformed, an error is raised at the end of the file; otherwise they are
    only counted.
    `clean`: a junk turn ends its conversation, and duplicate dialogues are dropped.
    """
    # Not a generator itself, so that a wrong path raises at the call, not at the first dialogue.
    chosen = files(path, split)
    return _read(chosen, Report() if report is None else report, strict, clean)


def _read(chosen: list[tuple[Path, str | None]], report: Report, strict: bool, clean: bool) -> Iterator[Dialogue]:
    seen: set[bytes] = set()  # over all files, to detect dialogues of train that are also in test
    for path, split in chosen:
        builder = _Builder(path.name, split, report, clean, seen)
        with path.open("rb") as stream:
            rows = _rows(stream, path.name, report, strict)
            for _, group in groupby(rows, key=lambda row: row.conversation):
                dialogue = builder.build(list(group))
                if dialogue is not None:
                    report.keep(len(dialogue.turns))
                    yield dialogue


class _Lines:
    """The decoded lines of a file; tracks the current line number and whether bytes could not be decoded."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.number = 0
        self.lossy = False

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        # Lines end at \n only: str.splitlines would also split at U+2028 or \x85.
        raw = next(self._stream)
        self.number += 1
        try:
            text = raw.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError:
            self.lossy = True
            text = raw.decode("utf-8", errors="replace")
        return text


def _rows(stream: BinaryIO, file: str, report: Report, strict: bool) -> Iterator[Row]:
    """The usable rows. Malformed rows are counted; too many raise an error at the end."""
    lines = _Lines(stream)
    layout = _layout(lines, file)
    rows_seen = wrong = 0
    first: SourceError | None = None
    for line, fields in _records(lines, layout, file):
        # A stray quote makes the parser swallow whole lines, each of which is a lost row.
        span = lines.number - line + 1
        row, reason, actual, expected = _row(line, fields, layout)
        count = 1 if row is not None else span
        rows_seen += count
        report.rows += count
        if lines.lossy:
            lines.lossy = False
            report.note(BAD_ENCODING, file, line, ",".join(fields[5:6]))
        if row is not None:
            if span > 1:
                report.note(LINE_BREAK, file, line, row.text)
            yield row
            continue
        wrong += count
        report.drop(reason, file, line, ",".join(fields), count=count)
        first = first or SourceError.at(file, line, actual, expected)
    if strict and first is not None and wrong > TOLERATED * rows_seen:
        way_out = (
            f"{wrong} of {rows_seen} rows are malformed: repair the file, or read it with strict=False to drop them"
        )
        raise SourceError(f"{first}; {way_out}")


def _layout(lines: _Lines, file: str) -> Layout:
    header = tuple(name.strip().strip('"') for name in next(lines, "").split(","))
    if header == LABELLED.columns:
        return LABELLED
    if header[:8] == OFFICIAL.columns and len(header) in OFFICIAL.widths:
        return OFFICIAL
    actual = f"the header {shorten(', '.join(header))!r}" if any(header) else "no header"
    expected = f"{', '.join(OFFICIAL.columns)} (official) or {', '.join(LABELLED.columns[4:])} at its end (labelled)"
    raise SourceError.at(file, 1, actual, expected, "name a file of EmpatheticDialogues, or convert yours to .jsonl")


def _records(lines: _Lines, layout: Layout, file: str) -> Iterator[tuple[int, list[str]]]:
    """The fields of each record, with the number of its first line."""
    source: Iterator[list[str]]
    source = csv.reader(lines) if layout.quoted else (text.rstrip("\r\n").split(",") for text in lines)
    while True:
        begins = lines.number + 1
        try:
            fields = next(source, None)
        except csv.Error as error:
            # The parser cannot resynchronize, so no row after this one can be trusted.
            way_out = "repair the quotes of this row"
            raise SourceError.at(file, begins, f"{error}", "CSV with balanced quotes", way_out) from error
        if fields is None:
            return
        if any(fields):  # a blank line is not a row
            yield begins, fields


def _row(line: int, fields: list[str], layout: Layout) -> tuple[Row | None, str, str, str]:
    """The row; or None with the reason, what was found and what was expected."""
    right_width = len(fields) in layout.widths
    # A ninth field is either the candidates, or due to a bare comma in the text. In the latter case the rest of the
    # text is in the self-evaluation field, which otherwise has only digits ("5|5|5_4|5|5").
    if not layout.quoted and len(fields) == 9 and any(char.isalpha() for char in fields[6]):
        right_width = False
    if not right_width:
        return None, WRONG_COLUMNS, f"{len(fields)} columns", layout.expected
    conversation, index, emotion, situation, who, text = (value.strip() for value in fields[:6])
    if not conversation:
        return None, BAD_FIELD, "a blank conv_id", "a name"
    if not index.isdecimal():
        return None, BAD_FIELD, f"utterance_idx {index!r}", "a number"
    if layout is LABELLED and who not in ROLES:
        return None, BAD_FIELD, f"role {who!r}", "'speaker' or 'listener'"
    # Only the text is not stripped here, so that its stray spaces can be counted.
    text = fields[5]
    if layout is OFFICIAL:
        situation, text = situation.replace("_comma_", ","), text.replace("_comma_", ",")
    label = fields[6].strip().lower() if layout is LABELLED else None
    return Row(line, conversation, int(index), emotion.lower(), situation, who, text, label), "", "", ""


@dataclass
class _Builder:
    """Builds a Dialogue from the rows of a conversation, and reports what it finds."""

    file: str
    split: str | None
    report: Report
    clean: bool
    seen: set[bytes]
    times: Counter[str] = field(default_factory=Counter)

    def build(self, rows: list[Row]) -> Dialogue | None:
        first = rows[0]
        self.report.conversations += 1
        self.times[first.conversation] += 1
        again = self.times[first.conversation]
        if again > 1:
            self._note(COMES_BACK, first, first.conversation)
        turns = self._turns(self._in_order(rows))
        if len(turns) < 2:
            self.report.drop(quality.ONE_TURN if len(rows) == 1 else TOO_SHORT, self.file, first.line, first.text)
            return None
        dialogue = Dialogue(
            # Ids stay unique if a conversation reappears, since the ids of examples are derived from them.
            id=first.conversation if again == 1 else f"{first.conversation}~{again}",
            turns=tuple(turns),
            emotion=self._emotion(rows),
            situation=quality.squeeze(first.situation) or None,
            source=NAME,
            split=self.split,
        )
        return dialogue if self._is_fresh(dialogue, first) else None

    def _in_order(self, rows: list[Row]) -> list[Row]:
        ordered = sorted(rows, key=lambda row: row.index)
        if ordered != rows:
            self._note(OUT_OF_ORDER, rows[0], rows[0].conversation)
        return ordered

    def _turns(self, rows: list[Row]) -> list[Turn]:
        turns: list[Turn] = []
        for position, (role, row) in enumerate(zip(self._roles(rows), rows, strict=True)):
            text = quality.squeeze(row.text)
            if not text:
                self.report.drop(EMPTY_TURN, self.file, row.line, row.conversation)
                continue
            if text != row.text:
                self._note(STRAY_SPACES, row)
            if quality.is_garbled(text):
                self._note(quality.GARBLED, row)
            if turns and turns[-1].text == text:
                self._note(quality.REPEATED_TURN, row)
            if quality.is_junk(text):
                if self.clean:
                    self.report.drop(quality.JUNK_TURN, self.file, row.line, text)
                    self._cut(rows[position + 1 :])
                    break
                self._note(quality.JUNK_TURN, row)
            turn = Turn(role, text, self._label(row))
            if turns and turns[-1].speaker == role:
                self._note(SAME_ROLE, row)
                turns[-1] = _join(turns[-1], turn)
            else:
                turns.append(turn)
        return turns

    def _roles(self, rows: Sequence[Row]) -> list[Role]:
        """The role of each row. With two workers, the one with most of the odd turns is the speaker."""
        workers = list(dict.fromkeys(row.who for row in rows))
        if all(who in ROLES for who in workers):
            return [ROLES[ROLES.index(row.who)] for row in rows]
        start = 0 if rows[0].index == 0 else 1  # the published files count from 1, some conversions from 0
        by_number = [ROLES[(row.index - start) % 2] for row in rows]
        if len(workers) != 2:
            if len(rows) > 1:
                self._note(ODD_WORKERS, rows[0], rows[0].conversation)
            return by_number
        # By majority rather than by who comes first, since the first row may be missing.
        votes = Counter(
            (row.who == workers[0]) == (role == "speaker") for row, role in zip(rows, by_number, strict=True)
        )
        speaker = workers[0] if votes[True] >= votes[False] else workers[1]
        return ["speaker" if row.who == speaker else "listener" for row in rows]

    def _label(self, row: Row) -> Label | None:
        if row.label is None:  # the official layout has no labels
            return None
        if not row.label:
            self._note(NO_LABEL, row)
            return None
        if row.label not in LABEL_ID:
            self._note(quality.UNKNOWN_LABEL, row, row.label)
        return Label(row.label, by="machine")

    def _emotion(self, rows: list[Row]) -> Label | None:
        first = rows[0]
        if any((row.emotion, row.situation) != (first.emotion, first.situation) for row in rows):
            self._note(MIXED_EMOTION, first, first.conversation)
        if not first.emotion:
            self._note(NO_EMOTION, first, first.conversation)
            return None
        if first.emotion not in EMOTION_ID:
            self._note(quality.UNKNOWN_EMOTION, first, first.emotion)
        return Label(first.emotion)

    def _is_fresh(self, dialogue: Dialogue, row: Row) -> bool:
        """Whether to return the dialogue; duplicates are only dropped with `clean`."""
        mark = quality.fingerprint(dialogue)
        if mark not in self.seen:
            self.seen.add(mark)
            return True
        count = self.report.drop if self.clean else self.report.note
        count(quality.DUPLICATE, self.file, row.line, row.text)
        return not self.clean

    def _cut(self, rows: list[Row]) -> None:
        if rows:
            self.report.drop(CUT, self.file, rows[0].line, rows[0].text, count=len(rows))

    def _note(self, reason: str, row: Row, excerpt: str | None = None) -> None:
        self.report.note(reason, self.file, row.line, row.text if excerpt is None else excerpt)


def _join(before: Turn, after: Turn) -> Turn:
    """Joins two turns into one, so that roles alternate. A message sent twice is kept once."""
    text = before.text if before.text == after.text else f"{before.text} {after.text}"
    # A label for half of a turn is not a label for the whole.
    return Turn(before.speaker, text, before.label if before.label == after.label else None)
