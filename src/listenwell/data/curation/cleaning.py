"""Applies the cleaning steps to turns and dialogues, and counts what each step did."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import NamedTuple

from listenwell.data.curation import steps
from listenwell.data.curation.counts import Counts
from listenwell.data.curation.cues import CueTurn
from listenwell.data.sources.cleaning.adverts import has_contact
from listenwell.data.sources.cleaning.pipeline import CONTACT, LONGEST
from listenwell.data.sources.cleaning.steps import TEXT_STEPS as POST_STEPS

NO_WORDS = "no words"
CREDITS = "credits and adverts"
REPEATED = "repeats the turn before"
TOO_LONG = "too long"
BROKEN = "broken characters"
OTHER_SCRIPT = "another script"
AFTER = "after a dropped post"
SINGLE = "fewer than two turns"
TOO_SHORT = "too few words"
REPETITIVE = "mostly the same turn"
OTHER_LANGUAGE = "not in the language"

_UNIT = re.compile(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]+")
"""The unit for the length of a post: a Chinese character, or a word of another script."""


class Effect(Enum):
    """What dropping a turn does to its dialogue."""

    SKIP = "it was no utterance: the dialogue goes on without it"
    CUT = "the next turn does not answer the one before it: another dialogue begins"
    END = "nothing of the dialogue after it is kept"


@dataclass(frozen=True)
class TurnCheck:
    """A reason to drop a turn."""

    reason: str
    fails: Callable[[str], bool]
    effect: Effect
    before_steps: bool = False
    """Whether to check the raw text, before the text steps."""


class Cleaned(NamedTuple):
    """The remaining turns, and the dropped ones with the reason."""

    segments: list[list[CueTurn]]
    dropped: list[tuple[CueTurn, str]]


@dataclass(frozen=True)
class Cleaning:
    """The steps for one kind of input, in order."""

    text_steps: dict[str, Callable[[str], str]]
    turn_checks: tuple[TurnCheck, ...]
    dialogue_checks: tuple[tuple[str, Callable[[Sequence[str]], bool]], ...]
    repeats: bool = True
    """Whether to drop a long turn that repeats the one before it."""

    def clean(self, turns: Sequence[CueTurn], counts: Counts) -> Cleaned:
        """Clean turns; they are split into segments where a dropped turn leaves a gap that no dialogue may span."""
        cleaned = Cleaned([[]], [])
        for index, turn in enumerate(turns):
            text = turn.text
            check = self._failed(text, before=True)
            if check is None:
                text = self.clean_text(text, counts)
                check = self._failed(text, before=False) or self._repeated(text, cleaned.segments[-1])
            if check is None:
                cleaned.segments[-1].append(replace(turn, text=text))
                continue
            cleaned.dropped.append((turn, check.reason))
            if check.effect is Effect.CUT:
                cleaned.segments.append([])
            elif check.effect is Effect.END:
                cleaned.dropped.extend((other, AFTER) for other in turns[index + 1 :])
                break
        return cleaned

    def clean_text(self, text: str, counts: Counts) -> str:
        for name, step in self.text_steps.items():
            after = step(text)
            counts.changed[name] += after != text
            text = after
        return text

    def problem(self, dialogue: Sequence[CueTurn]) -> str | None:
        """The first reason to drop a dialogue; None to keep it."""
        texts = [turn.text for turn in dialogue]
        return next((reason for reason, fails in self.dialogue_checks if fails(texts)), None)

    def _failed(self, text: str, before: bool) -> TurnCheck | None:
        return next((check for check in self.turn_checks if check.before_steps == before and check.fails(text)), None)

    def _repeated(self, text: str, segment: Sequence[CueTurn]) -> TurnCheck | None:
        is_repeated = self.repeats and segment and segment[-1].text == text
        return _REPEATED_CHECK if is_repeated and steps.count_words(text) >= steps.LONG_TURN else None


_REPEATED_CHECK = TurnCheck(REPEATED, lambda text: False, Effect.SKIP)


def _is_single(texts: Sequence[str]) -> bool:
    return len(texts) < 2


def cleaning_for(kind: str, language: str) -> Cleaning:
    """The steps for subtitles or posts in a language."""
    return _for_posts() if kind == "posts" else _for_subtitles(language)


def _for_subtitles(language: str) -> Cleaning:
    turn_checks = (
        TurnCheck(CREDITS, steps.is_credit, Effect.SKIP, before_steps=True),
        TurnCheck(NO_WORDS, steps.has_no_words, Effect.SKIP),
        TurnCheck(TOO_LONG, steps.is_too_long, Effect.CUT),
        TurnCheck(BROKEN, steps.is_broken, Effect.CUT),
        TurnCheck(OTHER_SCRIPT, partial(steps.has_other_script, language=language), Effect.CUT),
    )
    dialogue_checks = [(SINGLE, _is_single), (TOO_SHORT, steps.is_too_short), (REPETITIVE, steps.is_repetitive)]
    if language == "en":
        dialogue_checks.append((OTHER_LANGUAGE, steps.is_not_english))
    return Cleaning(steps.TEXT_STEPS, turn_checks, tuple(dialogue_checks))


def _for_posts() -> Cleaning:
    """As in `listenwell data clean`: an unusable post ends its thread."""
    turn_checks = (
        TurnCheck(CONTACT, has_contact, Effect.END, before_steps=True),
        TurnCheck(NO_WORDS, lambda text: not any(map(str.isalnum, text)), Effect.END),
        TurnCheck(TOO_LONG, lambda text: len(_UNIT.findall(text)) > LONGEST, Effect.END),
    )
    return Cleaning(POST_STEPS, turn_checks, ((SINGLE, _is_single),), repeats=False)
