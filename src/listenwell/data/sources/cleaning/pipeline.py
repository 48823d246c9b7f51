"""Cleans dialogues one at a time, and counts what every step did."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from listenwell.data.dialogue import Dialogue, Turn
from listenwell.data.sources.cleaning.adverts import has_contact, hide_contact
from listenwell.data.sources.cleaning.steps import TEXT_STEPS
from listenwell.data.sources.quality import fingerprint
from listenwell.data.sources.report import shorten

LONGEST = 80
"""The maximum length of an utterance in characters, from strategy memory's appendix A.1."""

CONTACT = "contact details (adverts)"
EMPTY = "empty utterances"
TOO_LONG = "over-long utterances"
DUPLICATE = "duplicate dialogues"

_UNIT = re.compile(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]+")


@dataclass
class StepCount:
    """What one step did to a corpus."""

    changed: int = 0
    """Utterances that it changed."""
    utterances: int = 0
    """Utterances that it dropped."""
    dialogues: int = 0
    """Dialogues that it dropped entirely."""
    example: str = ""
    """The first text that it changed or dropped."""


@dataclass
class Cleaner:
    """Cleans dialogues and counts the changes.

    A dialogue is cut at the first utterance that has contact details, is empty after the text steps or is too long; if
    fewer than two turns come before it, the dialogue is dropped. A single post is kept or dropped. Only a hash per
    dialogue is held in memory, to detect duplicates.
    """

    longest: int = LONGEST
    """The maximum length of an utterance, in Chinese characters and words of other scripts."""
    counts: dict[str, StepCount] = field(default_factory=dict)
    seen: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        for name in (CONTACT, *TEXT_STEPS, EMPTY, TOO_LONG, DUPLICATE):
            self.counts.setdefault(name, StepCount())

    def clean(self, dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
        for dialogue in dialogues:
            cleaned = self._cleaned(dialogue)
            if cleaned is not None and self._is_fresh(cleaned):
                yield cleaned

    def clean_text(self, text: str) -> str:
        """Apply all text steps to a text, and count those that change it."""
        for name, step in TEXT_STEPS.items():
            after = step(text)
            if after != text:
                self._count_change(name, text, after)
            text = after
        return text

    def _cleaned(self, dialogue: Dialogue) -> Dialogue | None:
        turns: list[Turn] = []
        least = min(2, len(dialogue.turns))
        for position, turn in enumerate(dialogue.turns):
            text = "" if has_contact(turn.text) else self.clean_text(turn.text)
            reason = self._unusable(turn.text, text)
            if reason is None:
                turns.append(replace(turn, text=text))
                continue
            is_dropped = len(turns) < least
            count = self.counts[reason]
            count.utterances += len(dialogue.turns) - (0 if is_dropped else position)
            count.dialogues += is_dropped
            count.example = count.example or shorten(hide_contact(turn.text))
            if is_dropped:
                return None
            break
        return replace(dialogue, turns=tuple(turns))

    def _unusable(self, before: str, after: str) -> str | None:
        if has_contact(before):
            return CONTACT
        if not any(map(str.isalnum, after)):
            return EMPTY
        return TOO_LONG if len(_UNIT.findall(after)) > self.longest else None

    def _is_fresh(self, dialogue: Dialogue) -> bool:
        mark = fingerprint(dialogue)
        if mark not in self.seen:
            self.seen.add(mark)
            return True
        count = self.counts[DUPLICATE]
        count.dialogues += 1
        count.utterances += len(dialogue.turns)
        count.example = count.example or shorten(dialogue.turns[0].text)
        return False

    def _count_change(self, name: str, before: str, after: str) -> None:
        count = self.counts[name]
        count.changed += 1
        count.example = count.example or _difference(before, after)


def _difference(before: str, after: str, lead: int = 20) -> str:
    """Excerpts of both texts, starting shortly before the first difference."""
    same = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    start = max(0, same - lead)
    texts = ("…" + text[start:] if start else text for text in (before, after))
    return " → ".join(shorten(text) for text in texts)
