"""What a reader found in a corpus: how much it kept, what it dropped and why, and problems in what it kept.

A reader never skips anything silently: everything it drops is counted here by reason, with the first few places, so
that a person can go and look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MAX_PLACES = 3
EXCERPT_WIDTH = 60


class SourceError(ValueError):
    """A file is not in the expected format: the message names file and line, what was found and what was expected."""

    @classmethod
    def at(cls, file: str, line: int, actual: str, expected: str, way_out: str = "") -> SourceError:
        ending = f"; {way_out}" if way_out else ""
        return cls(f"{file} line {line}: {actual}, expected {expected}{ending}")


class Place(NamedTuple):
    """Where something was seen."""

    file: str
    line: int
    excerpt: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" {self.excerpt!r}" if self.excerpt else "")


class ReportRow(NamedTuple):
    """One row of the displayed table; plain totals have no places."""

    fate: str
    reason: str
    number: int
    first_seen: str = ""


@dataclass
class Report:
    """Counts of what a reader read. Reports of several files or workers can be added with `+`."""

    rows: int = 0
    """Records in the file, usable or not."""
    conversations: int = 0
    """Conversations in the file, usable or not."""
    dialogues: int = 0
    """Dialogues returned to the caller."""
    turns: int = 0
    """Turns of the returned dialogues."""
    dropped: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[Place]] = field(default_factory=dict)
    """The first few places for every reason."""

    def drop(self, reason: str, file: str, line: int, excerpt: str = "", count: int = 1) -> None:
        """Count something that was dropped."""
        self.dropped[reason] += count
        self._remember(reason, [Place(file, line, shorten(excerpt))])

    def note(self, reason: str, file: str, line: int, excerpt: str = "", count: int = 1) -> None:
        """Count a problem in something that was kept."""
        self.noted[reason] += count
        self._remember(reason, [Place(file, line, shorten(excerpt))])

    def keep(self, turns: int) -> None:
        """Count one dialogue that is returned to the caller."""
        self.dialogues += 1
        self.turns += turns

    def drop_kept(self, reason: str, turns: int) -> None:
        """Count a kept dialogue as dropped, because the caller dropped it."""
        self.dialogues -= 1
        self.turns -= turns
        self.dropped[reason] += 1

    def merge(self, other: Report) -> Report:
        """Add another report to this one, in place."""
        self.rows += other.rows
        self.conversations += other.conversations
        self.dialogues += other.dialogues
        self.turns += other.turns
        self.dropped.update(other.dropped)
        self.noted.update(other.noted)
        for reason, places in other.places.items():
            self._remember(reason, places)
        return self

    def __add__(self, other: Report) -> Report:
        if not isinstance(other, Report):
            return NotImplemented
        return Report().merge(self).merge(other)

    def table(self) -> list[ReportRow]:
        """Rows for display: the totals, then the reasons by count, dropped before noted."""
        rows = [
            ReportRow("met", "rows", self.rows),
            ReportRow("met", "conversations", self.conversations),
            ReportRow("kept", "dialogues", self.dialogues),
            ReportRow("kept", "turns", self.turns),
        ]
        for fate, counts in (("dropped", self.dropped), ("noted", self.noted)):
            for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
                seen = "; ".join(str(place) for place in self.places.get(reason, ()))
                rows.append(ReportRow(fate, reason, count, seen))
        return rows

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "conversations": self.conversations,
            "dialogues": self.dialogues,
            "turns": self.turns,
            "dropped": dict(self.dropped),
            "noted": dict(self.noted),
            "places": {reason: [place._asdict() for place in places] for reason, places in self.places.items()},
        }

    def _remember(self, reason: str, places: Iterable[Place]) -> None:
        known = self.places.setdefault(reason, [])
        # Only the first few: a report on a million bad rows must stay small enough to read and to send.
        known.extend(list(places)[: max(0, MAX_PLACES - len(known))])


def shorten(text: str) -> str:
    """Truncates a text to EXCERPT_WIDTH characters."""
    return text if len(text) <= EXCERPT_WIDTH else text[: EXCERPT_WIDTH - 1] + "…"
