"""Builds Dialogues from the utterances of a file: the cleanup and counting shared by all readers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from listenwell.data.dialogue import ROLES, Dialogue, Label, Role, Turn
from listenwell.data.sources import quality
from listenwell.data.sources.empathetic_dialogues import CUT, EMPTY_TURN, SAME_ROLE, STRAY_SPACES
from listenwell.data.sources.files import DataFile
from listenwell.data.sources.report import Report

__all__ = [
    "CUT",
    "EMPTY_TURN",
    "SAME_ROLE",
    "STRAY_SPACES",
    "Builder",
    "Conversation",
    "Utterance",
    "read_files",
    "taking_turns",
]

# Dropped
NOTHING_LEFT = "no turn left of a conversation"
# Noted
UNPRINTABLE = "control or invisible characters, removed"
OTHER_LABEL = "duplicate dialogue with other labels"
MIXED_LABELS = "turn joined of ones with different labels, none kept"
SAME_ID = "id seen before, numbered"

# Controls, soft hyphen, byte order mark, zero-width and direction marks; not the joiner, which emoji sequences use.
_UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


@dataclass(slots=True)
class Utterance:
    """One text as it is in the file, with its role and label."""

    role: Role
    text: str
    line: int
    label: Label | None = None


class Conversation(NamedTuple):
    """A conversation as read from a file, before any checks."""

    name: str
    utterances: Sequence[Utterance]
    line: int
    split: str | None = None
    """Its split, if the corpus was published without splits; None for that of the file."""
    rows: int = 1
    """How many records of the file it consists of."""


def taking_turns(texts: Sequence[str], line: int, labels: Sequence[Label | None] | None = None) -> list[Utterance]:
    """Utterances with alternating roles, beginning with the speaker."""
    given = labels if labels is not None else [None] * len(texts)
    return [
        Utterance(ROLES[index % 2], text, line, label)
        for index, (text, label) in enumerate(zip(texts, given, strict=True))
    ]


@dataclass
class Builder:
    """Builds the Dialogues of a corpus, and reports what it finds.

    A dropped conversation is counted once, so that conversations = dialogues + dropped conversations.
    """

    source: str
    report: Report
    clean: bool = False
    """Cut conversations at junk turns, and drop duplicate dialogues."""
    language: str = "en"
    single_turn: bool = False
    """The corpus consists of single utterances, so a dialogue with one turn is not a problem."""
    join: bool = True
    """Merge consecutive turns of the same role."""
    seen: dict[bytes, int] = field(default_factory=dict)
    """The labels of each dialogue seen so far, by its texts; both as hashes, so that millions fit in memory."""
    times: Counter[str] = field(default_factory=Counter)
    split: str | None = None
    """The only split to read, if the files of the corpus hold conversations of every split."""

    def refuse(self, reason: str, data_file: DataFile, line: int, excerpt: str = "") -> None:
        """Count a conversation as dropped."""
        self.report.rows += 1
        self.report.conversations += 1
        self.report.drop(reason, data_file.file, line, excerpt)

    def build(
        self, name: str, utterances: Sequence[Utterance], data_file: DataFile, line: int, rows: int = 1
    ) -> Dialogue | None:
        """Build and count a dialogue; None if it is dropped. `rows`: how many records of the file it consists of."""
        self.report.rows += rows
        self.report.conversations += 1
        turns = self._turns(utterances, data_file.file)
        if not turns:
            self.report.drop(NOTHING_LEFT, data_file.file, line, name)
            return None
        if len(turns) == 1 and not self.single_turn:
            self.report.note(quality.ONE_TURN, data_file.file, line, turns[0].text)
        dialogue = Dialogue(name, tuple(turns), source=self.source, language=self.language, split=data_file.split)
        if not self._is_fresh(dialogue, data_file.file, line):
            return None
        self.report.keep(len(turns))
        return dialogue

    def wants(self, split: str | None) -> bool:
        """Whether conversations of this split should be read; all are if no split was chosen."""
        return self.split in (None, split)

    def name(self, name: str, data_file: DataFile, line: int) -> str:
        """Make a name unique, since the ids of examples are derived from it."""
        self.times[name] += 1
        if self.times[name] == 1:
            return name
        self.report.note(SAME_ID, data_file.file, line, name)
        return f"{name}~{self.times[name]}"

    def _turns(self, utterances: Sequence[Utterance], file: str) -> list[Turn]:
        turns: list[Turn] = []
        lines: list[int] = []
        for position, utterance in enumerate(utterances):
            text = self._tidy(utterance, file)
            if not text:
                self.report.drop(EMPTY_TURN, file, utterance.line)
                continue
            if quality.is_garbled(text):
                self.report.note(quality.GARBLED, file, utterance.line, text)
            if turns and turns[-1].text == text:
                self.report.note(quality.REPEATED_TURN, file, utterance.line, text)
            if quality.is_junk(text):
                if self.clean:
                    self.report.drop(quality.JUNK_TURN, file, utterance.line, text)
                    rest = utterances[position + 1 :]
                    if rest:
                        self.report.drop(CUT, file, rest[0].line, rest[0].text, count=len(rest))
                    break
                self.report.note(quality.JUNK_TURN, file, utterance.line, text)
            turns.append(Turn(utterance.role, text, utterance.label))
            lines.append(utterance.line)
        return self._joined(turns, lines, file) if self.join else turns

    def _joined(self, turns: list[Turn], lines: list[int], file: str) -> list[Turn]:
        """Merges consecutive turns of the same role."""
        joined: list[Turn] = []
        numbered = zip(turns, lines, strict=True)
        for role, group in groupby(numbered, key=lambda entry: entry[0].speaker):
            (first, line), *others = group
            if not others:
                joined.append(first)
                continue
            self.report.note(SAME_ROLE, file, others[0][1], others[0][0].text, count=len(others))
            texts, labels = [first.text, *(turn.text for turn, _ in others)], {turn.label for turn, _ in others}
            if labels != {first.label}:
                # A label for a part of a turn is not a label for the whole.
                self.report.note(MIXED_LABELS, file, line, first.text)
            text = ("" if self.language == "zh" else " ").join(texts)
            joined.append(Turn(role, text, first.label if labels == {first.label} else None))
        return joined

    def _tidy(self, utterance: Utterance, file: str) -> str:
        text = utterance.text
        if quality.squeeze(text) != text:
            self.report.note(STRAY_SPACES, file, utterance.line, text)
        printable = _UNPRINTABLE.sub(_repaired, text)
        if printable != text:
            self.report.note(UNPRINTABLE, file, utterance.line, text)
        return quality.squeeze(_whole(printable))

    def _is_fresh(self, dialogue: Dialogue, file: str, line: int) -> bool:
        """Whether to return the dialogue; duplicates are only dropped with `clean`."""
        mark, opening = quality.fingerprint(dialogue), dialogue.turns[0].text
        labels = hash(tuple(turn.label.name if turn.label else "" for turn in dialogue.turns))
        if mark not in self.seen:
            self.seen[mark] = labels
            return True
        if self.seen[mark] != labels:
            self.report.note(OTHER_LABEL, file, line, opening)
        count = self.report.drop if self.clean else self.report.note
        count(quality.DUPLICATE, file, line, opening)
        return not self.clean


def read_files(
    data_files: Iterable[DataFile],
    builder: Builder,
    conversations: Callable[[DataFile, Builder], Iterable[Conversation]],
) -> Iterator[Dialogue]:
    """The dialogues of the files; `conversations` reads one file."""
    for data_file in data_files:
        for one in conversations(data_file, builder):
            if one.split is not None and not builder.wants(one.split):
                continue
            placed = data_file if one.split is None else data_file._replace(split=one.split)
            dialogue = builder.build(one.name, one.utterances, placed, one.line, one.rows)
            if dialogue is not None:
                yield dialogue


def _repaired(match: re.Match[str]) -> str:
    """Decodes a C1 control as cp1252: \\x92 is an apostrophe that was read as Latin-1."""
    char = match.group()
    return bytes([ord(char)]).decode("cp1252", "ignore") if "\x80" <= char <= "\x9f" else ""


def _whole(text: str) -> str:
    """Replaces lone surrogates, which JSON may contain but tokenizers and UTF-8 reject, by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
