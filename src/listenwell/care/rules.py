"""What a rule is. The rules themselves are data: english.py and chinese.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["self-harm", "danger"]
Directness = Literal["direct", "indirect"]
Whom = Literal["self", "other"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One family of statements that are a sign."""

    name: str
    pattern: re.Pattern[str]
    kind: Kind
    directness: Directness
    whom: Whom = "self"
    """Who is in danger: the writer or somebody else."""


@dataclass(frozen=True, slots=True)
class Hint:
    """Not a sign alone. Hints of two different families in one message are an indirect sign of self-harm."""

    family: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Guard:
    """A setting in which the words of a sign are none. Every part that is given must be found."""

    name: str
    rules: re.Pattern[str]
    """The names of the rules that it can silence."""
    before: re.Pattern[str] | None = None
    """In the sentence, up to the match."""
    clause: re.Pattern[str] | None = None
    """In the writer's own clause: from the last "i" before the match to its end."""
    after: re.Pattern[str] | None = None
    """In the sentence, behind the match."""
    sentence: re.Pattern[str] | None = None
    """Anywhere in the sentence."""
    message: re.Pattern[str] | None = None
    """Anywhere in the message."""
    unless: re.Pattern[str] | None = None
    """Found anywhere in the message, this keeps the guard from silencing."""


@dataclass(frozen=True, slots=True)
class Language:
    """All that is known of the signs in one language."""

    idioms: tuple[re.Pattern[str], ...]
    """Cut out of the message before anything is looked for, so that what stands beside them is still read."""
    rules: tuple[Rule, ...]
    """In order of urgency: the first that is found is the sign."""
    hints: tuple[Hint, ...]
    guards: tuple[Guard, ...]


class Words:
    """Families of words by name; `<name>` in a pattern stands for any of them."""

    def __init__(self, families: Mapping[str, str], words: bool) -> None:
        self.families = families
        self.words = words
        """Whether patterns match whole words only, as in English."""

    def compile(self, pattern: str) -> re.Pattern[str]:
        for _ in range(3):  # families may be made of families
            pattern = re.sub(r"<([a-z_]+)>", lambda m: f"(?:{self.families[m[1]]})", pattern)
        return re.compile(rf"\b(?:{pattern})(?!\w)" if self.words else pattern)
