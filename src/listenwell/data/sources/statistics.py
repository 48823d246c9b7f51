"""Statistics of a corpus, for `listenwell data` and for the page of a corpus."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from listenwell.data.dialogue import Dialogue, examples
from listenwell.data.sources.quality import fingerprint
from listenwell.data.sources.report import Report

# Each Chinese character counts as a word, since Chinese text has no spaces.
_WORD = re.compile(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]+")


@dataclass
class Statistics:
    """Counts over the dialogues returned by a reader."""

    dialogues: int = 0
    turns: int = 0
    words: int = 0
    replies: int = 0
    """Listener turns with a turn before them: the examples for training and evaluation."""
    duplicates: int = 0
    """Dialogues with the same texts as an earlier one."""
    emotions: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    """Labels of turns, gold and machine together."""
    report: Report | None = None

    @property
    def turns_per_dialogue(self) -> float:
        return self.turns / self.dialogues if self.dialogues else 0.0

    @property
    def words_per_turn(self) -> float:
        return self.words / self.turns if self.turns else 0.0

    def table(self) -> list[tuple[str, str]]:
        """Rows for display."""
        return [
            ("dialogues", f"{self.dialogues:,}"),
            ("turns", f"{self.turns:,}"),
            ("listener replies with a context", f"{self.replies:,}"),
            ("turns per dialogue", f"{self.turns_per_dialogue:.2f}"),
            ("words per turn", f"{self.words_per_turn:.1f}"),
            ("emotions", _most(self.emotions)),
            ("labels", _most(self.labels)),
            ("duplicate dialogues", f"{self.duplicates:,}"),
        ]

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "dialogues": self.dialogues,
            "turns": self.turns,
            "words": self.words,
            "replies": self.replies,
            "turns_per_dialogue": self.turns_per_dialogue,
            "words_per_turn": self.words_per_turn,
            "duplicates": self.duplicates,
            "emotions": dict(self.emotions.most_common()),
            "labels": dict(self.labels.most_common()),
        }
        if self.report is not None:
            record["report"] = self.report.to_json()
        return record


def describe(dialogues: Iterable[Dialogue], report: Report | None = None) -> Statistics:
    """Compute statistics in one pass; `report` is the one that the reader of the dialogues fills meanwhile."""
    statistics = Statistics(report=report)
    seen: set[bytes] = set()
    for dialogue in dialogues:
        statistics.dialogues += 1
        statistics.turns += len(dialogue.turns)
        statistics.words += sum(len(_WORD.findall(turn.text)) for turn in dialogue.turns)
        statistics.replies += sum(1 for _ in examples(dialogue))
        if dialogue.emotion is not None:
            statistics.emotions[dialogue.emotion.name] += 1
        statistics.labels.update(turn.label.name for turn in dialogue.turns if turn.label is not None)
        mark = fingerprint(dialogue)
        statistics.duplicates += mark in seen
        seen.add(mark)
    return statistics


def _most(counts: Counter[str], shown: int = 5) -> str:
    if not counts:
        return "none"
    head = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(shown))
    return f"{len(counts)}: {head}" + (" …" if len(counts) > shown else "")
