"""The statistics of a curated corpus that MEED2 reports for its own: Tables 1 and 2, and Figure 2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from listenwell.data.curation.records import CuratedDialogue
from listenwell.text.words import words

PUBLISHED: dict[str, dict[str, float]] = {
    "all": {
        "dialogues": 4_010_009,
        "turns": 18_849_440,
        "tokens": 312_574_468,
        "turns per dialogue": 4.70,
        "tokens per turn": 16.58,
        "tokens per dialogue": 77.95,
    },
    "emotional": {
        "dialogues": 1_000_000,
        "turns": 3_488_300,
        "tokens": 66_447_274,
        "turns per dialogue": 3.49,
        "tokens per turn": 19.05,
        "tokens per dialogue": 66.45,
    },
}
"""The numbers of MEED2's Table 1 (after cleaning) and Table 2 (the most emotional dialogues)."""


@dataclass
class CorpusStatistics:
    """Statistics of all dialogues, or of the most emotional ones."""

    dialogues: int = 0
    turns: int = 0
    tokens: int = 0
    """Words and punctuation marks, or characters in Chinese."""
    last_labels: Counter[str] = field(default_factory=Counter)
    """Labels of the last utterance of each dialogue."""

    def add(self, dialogue: CuratedDialogue) -> None:
        self.dialogues += 1
        self.turns += len(dialogue.turns)
        self.tokens += sum(count_tokens(turn.text, dialogue.language) for turn in dialogue.turns)
        if (label := dialogue.turns[-1].label) is not None:
            self.last_labels[label] += 1

    def rows(self) -> dict[str, float]:
        """The statistics in the order of the paper's tables."""
        return {
            "dialogues": self.dialogues,
            "turns": self.turns,
            "tokens": self.tokens,
            "turns per dialogue": _ratio(self.turns, self.dialogues),
            "tokens per turn": _ratio(self.tokens, self.turns),
            "tokens per dialogue": _ratio(self.tokens, self.dialogues),
        }

    def to_json(self) -> dict[str, Any]:
        return {**self.rows(), "last labels": dict(sorted(self.last_labels.items(), key=lambda item: (-item[1], item)))}


def describe(dialogues: Iterable[CuratedDialogue]) -> dict[str, CorpusStatistics]:
    """Statistics of "all" dialogues, and of the "emotional" ones if any were selected, in one pass."""
    statistics = {"all": CorpusStatistics(), "emotional": CorpusStatistics()}
    for dialogue in dialogues:
        statistics["all"].add(dialogue)
        if dialogue.selected:
            statistics["emotional"].add(dialogue)
    return statistics if statistics["emotional"].dialogues else {"all": statistics["all"]}


def count_tokens(text: str, language: str) -> int:
    if language == "zh":
        return sum(not char.isspace() for char in text)
    return len(words(text))


def _ratio(number: int, of: int) -> float:
    return round(number / of, 2) if of else 0.0
