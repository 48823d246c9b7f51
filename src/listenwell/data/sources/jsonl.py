"""Dialogues as JSON lines, the package's own file form: what a user brings, and what every part writes.

See `listenwell.data.dialogue` for the record. Files whose name ends in .gz are compressed.
"""

from __future__ import annotations

import gzip
import json
import os
import secrets
import zlib
from collections.abc import Container, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, BinaryIO

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources import quality
from listenwell.data.sources.report import Report, SourceError, shorten
from listenwell.data.sources.splits import split_name, split_of_file
from listenwell.labels.taxonomy import EMOTION_ID, LABEL_ID, with_near_name

NAME = "jsonl"
ENDINGS = (".jsonl", ".jsonl.gz")

# Noted
NO_ID = "dialogue without id, named by its line"
SAME_ID = "id seen before"

_TEXT_FIELDS = ("situation", "source", "language", "split")


def is_jsonl(name: str | Path) -> bool:
    """Whether a name ends in .jsonl or .jsonl.gz."""
    return str(name).lower().endswith(ENDINGS)


def files(path: str | Path, split: str | None = None) -> list[Path]:
    """The files to read: the file itself, or the .jsonl files of a folder, without those named after another split."""
    path = Path(path)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: no such file or folder; give a .jsonl file with one dialogue a line")
    entries = sorted(entry for entry in path.iterdir() if is_jsonl(entry.name))
    if not entries:
        raise FileNotFoundError(f"{path}: no .jsonl or .jsonl.gz file in this folder")
    if split is not None:
        # A file named after another split need not be opened; any other may hold records of several splits.
        entries = [entry for entry in entries if split_of_file(entry.name) in (None, split_name(split))]
    return entries


def read(path: str | Path, split: str | None = None, *, report: Report | None = None) -> Iterator[Dialogue]:
    """Read the dialogues of a file or folder, one at a time; only those of `split` if given.

    The split of a record is its "split" field, else that of the file name (train.jsonl). Texts are not changed.
    """
    chosen = files(path, split)
    wanted = None if split is None else split_name(split)
    return _read(chosen, wanted, Report() if report is None else report)


def _read(chosen: Iterable[Path], split: str | None, report: Report) -> Iterator[Dialogue]:
    inspector = Inspector(report)
    for path in chosen:
        with path.open("rb") as stream:
            for number, dialogue in read_stream(stream, path.name, split):
                yield inspector.take(dialogue, path.name, number)


def read_stream(stream: IO[bytes], file: str, split: str | None = None) -> Iterator[tuple[int, Dialogue]]:
    """The dialogues of an open file, with line numbers; `file` is its name, for messages and the default split."""
    for number, text in _lines(stream, file):
        dialogue = parse(text, file, number)
        if dialogue.split is None:
            dialogue = replace(dialogue, split=split_of_file(file))
        if split is None or _split(dialogue, file, number, split) == split:
            yield number, dialogue


def parse(text: str, file: str, number: int) -> Dialogue:
    """The dialogue of one line."""
    text = text.rstrip()  # or errors at the end would be reported on the next line
    try:
        record = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        actual = f"{json_problem(text, error)} in {shorten(text)!r}"
        raise SourceError.at(file, number, actual, "one JSON object per line") from error
    if "\\ud" in text.lower():
        # JSON may contain an escaped lone surrogate, which tokenizers and UTF-8 reject.
        whole = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass")
        record = json.loads(whole.decode("utf-8", "replace"))
    if isinstance(record, dict):
        record = {key: value for key, value in record.items() if value is not None}
        for key in _TEXT_FIELDS:
            if not isinstance(record.get(key, ""), str):
                raise SourceError.at(file, number, f"{key} is {shorten(repr(record[key]))}", "a string")
    try:
        return _with_known_names(Dialogue.from_json(record))
    except ValueError as error:
        expected = 'a dialogue such as {"id": "d1", "turns": [{"speaker": "speaker", "text": "I passed!"}]}'
        raise SourceError.at(file, number, shorten_message(str(error)), expected) from error


def json_problem(text: str, error: json.JSONDecodeError | RecursionError) -> str:
    """Describes the error in a line of JSON, with its column."""
    if isinstance(error, RecursionError):
        return "endless nesting"
    if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
        return f"cut off at column {len(text) + 1}"
    return f"{error.msg} at column {error.pos + 1}"


def _with_known_names(dialogue: Dialogue) -> Dialogue:
    """Spells the emotion and the labels as the taxonomy does ("Joyful" becomes joyful). Unknown names are kept."""
    emotion = _as_known(dialogue.emotion, EMOTION_ID)
    labels = [_as_known(turn.label, LABEL_ID) for turn in dialogue.turns]
    if emotion is dialogue.emotion and all(
        label is turn.label for label, turn in zip(labels, dialogue.turns, strict=True)
    ):
        return dialogue
    turns = tuple(replace(turn, label=label) for turn, label in zip(dialogue.turns, labels, strict=True))
    return replace(dialogue, emotion=emotion, turns=turns)


def _as_known(label: Label | None, known: Container[str]) -> Label | None:
    if label is None or label.name in known or label.name.strip().lower() not in known:
        return label
    return replace(label, name=label.name.strip().lower())


def shorten_message(message: str, width: int = 160) -> str:
    """Truncates a message, so that a quoted long record does not fill the screen."""
    return message if len(message) <= width else message[: width - 1] + "…"


def _lines(stream: IO[bytes], file: str) -> Iterator[tuple[int, str]]:
    """The decoded non-blank lines, with line numbers from 1."""
    source = gzip.GzipFile(fileobj=stream) if file.lower().endswith(".gz") else stream
    number = 0
    while True:
        try:
            raw = source.readline()
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            actual = f"broken gzip data ({error})"
            raise SourceError.at(file, number + 1, actual, "a whole .gz file", "copy or pack it again") from error
        if not raw:
            return
        number += 1
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            actual = f"the byte 0x{raw[error.start]:02x} at position {error.start + 1}"
            raise SourceError.at(file, number, actual, "UTF-8", "save the file as UTF-8") from error
        if text.strip():
            yield number, text


def _split(dialogue: Dialogue, file: str, number: int, wanted: str) -> str:
    if not dialogue.split:
        # Guessing could return the same dialogues as both train and test.
        way_out = 'give every record a "split", name the file train.jsonl, or read it without a split'
        raise SourceError.at(file, number, f"no split where {wanted!r} was requested", '"split": "train"', way_out)
    try:
        return split_name(dialogue.split)
    except ValueError as error:
        raise SourceError.at(file, number, str(error), "train, valid or test") from error


class Inspector:
    """Counts dialogues and the problems in them, without changing any text."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._ids: set[str] = set()
        self._seen: set[bytes] = set()

    def take(self, dialogue: Dialogue, file: str, number: int) -> Dialogue:
        """Count a dialogue and return it, with an id if it had none, since examples are identified by it."""
        reasons = list(self._reasons(dialogue))
        if not dialogue.id:
            dialogue = replace(dialogue, id=f"{file.split('.', 1)[0]}-{number}")
            reasons.append((NO_ID, dialogue.turns[0].text))
        for reason, excerpt in reasons:
            self._report.note(reason, file, number, excerpt)
        self._report.rows += 1
        self._report.conversations += 1
        self._report.keep(len(dialogue.turns))
        return dialogue

    def _reasons(self, dialogue: Dialogue) -> Iterator[tuple[str, str]]:
        opening = dialogue.turns[0].text
        if dialogue.id in self._ids:
            yield SAME_ID, dialogue.id
        if dialogue.id:
            self._ids.add(dialogue.id)
        mark = quality.fingerprint(dialogue)
        if mark in self._seen:
            yield quality.DUPLICATE, opening
        self._seen.add(mark)
        if len(dialogue.turns) < 2:
            yield quality.ONE_TURN, opening
        if dialogue.emotion is not None and dialogue.emotion.name not in EMOTION_ID:
            yield quality.UNKNOWN_EMOTION, with_near_name(dialogue.emotion.name, EMOTION_ID)
        before = None
        for turn in dialogue.turns:
            if turn.label is not None and turn.label.name not in LABEL_ID:
                yield quality.UNKNOWN_LABEL, turn.label.name
            if quality.is_junk(turn.text):
                yield quality.JUNK_TURN, turn.text
            if quality.is_garbled(turn.text):
                yield quality.GARBLED, turn.text
            if turn.text == before:
                yield quality.REPEATED_TURN, turn.text
            before = turn.text


def write(dialogues: Iterable[Dialogue], path: str | Path) -> int:
    """Write dialogues to a file atomically; returns their number."""
    return write_lines((dialogue.to_json() for dialogue in dialogues), path)


def write_lines(records: Iterable[Any], path: str | Path) -> int:
    """Write records of any kind as JSON lines, atomically; returns their number."""
    # Resolved, so that a symbolic link is kept and its target is replaced.
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, since a rename is atomic only within one file system.
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with unfinished.open("xb") as stream:
            count = _write_stream(records, stream, compressed=path.name.lower().endswith(".gz"))
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)
    return count


def _write_stream(records: Iterable[Any], stream: BinaryIO, compressed: bool) -> int:
    count = 0
    # No time and no name in the gzip header, so that equal dialogues give equal bytes and hashes.
    target: Any = gzip.GzipFile("", "wb", fileobj=stream, mtime=0) if compressed else nullcontext(stream)
    with target as lines:
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False).encode("utf-8") + b"\n")
            count += 1
    return count


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, if the system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows cannot open folders
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
