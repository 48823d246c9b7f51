"""detect: does a message say that its writer, or somebody near, is in danger?

Rules over normalised text, without a model; english.yaml and chinese.yaml can be read and checked. Idioms are cut out,
signs are searched for, and each match is checked against the guards (denial, the past, fiction, others' words,
accidents, jokes). If no sign is found, hints are added up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

import yaml

from listenwell.data.dialogue import readable
from listenwell.systems.safety.normalize import Chinese, English
from listenwell.systems.safety.once import once

if TYPE_CHECKING:
    from listenwell.systems.safety.classifier import Prediction

Kind = Literal["self-harm", "danger", "harm-to-others"]
Directness = Literal["direct", "indirect"]
LanguageCode = Literal["en", "zh"]

CUT = "~"
"""Replaces an idiom; no pattern matches across it."""
ALONE = 1.0
"""The log-odds that the classifier must exceed for a sign that no rule finds."""
BACKED = -2.0
"""The same for a sign that a rule finds."""
CHINESE = re.compile("[\u3000-\u303f\u4e00-\u9fff\uff0c\uff01\uff1f]+")
ENOUGH, TOGETHER = 3, 3
"""Points at which hints become a sign, and within how many neighbouring sentences."""


@dataclass(frozen=True, slots=True)
class Sign:
    """What was found in a message."""

    kind: Kind
    """Harm to oneself, danger from others (or to somebody near, now), harm to others."""
    directness: Directness
    language: LanguageCode
    words: str
    """What was found, normalised."""
    why: str
    """The sign's name in the rules, and what it means."""

    def __str__(self) -> str:
        return f"{self.kind}, {self.directness}"


@dataclass(frozen=True, slots=True)
class Find:
    """Where in the text a rule matched."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Rule:
    """A sign as defined in the data file."""

    name: str
    kind: Kind
    directness: Directness
    why: str
    one: re.Pattern[str]
    """Patterns that match at one place."""
    several: tuple[tuple[re.Pattern[str], ...], ...]
    """Patterns that must match together within two sentences."""

    def finds(self, text: str) -> Iterator[Find]:
        for match in self.one.finditer(text):
            yield Find(match.start(), match.end())
        for parts in self.several:
            if all(part.search(text) for part in parts):  # rare: most messages end here
                yield from self._together(text, parts)

    def _together(self, text: str, parts: tuple[re.Pattern[str], ...]) -> Iterator[Find]:
        for start, end in windows(text, 2):
            first = parts[0].search(text, start, end)
            if first is not None and all(part.search(text, start, end) for part in parts[1:]):
                yield Find(first.start(), first.end())


@dataclass(frozen=True, slots=True)
class Guard:
    """A context in which the words of a sign are not a sign."""

    before: re.Pattern[str] | None
    sentence: re.Pattern[str] | None
    message: re.Pattern[str] | None
    also: re.Pattern[str] | None
    unless: re.Pattern[str] | None

    def silences(self, text: str, find: Find, whole: str) -> bool:
        """Whether it suppresses a find in `text`; `whole` is the message with its idioms."""
        start, end = sentence_around(text, find)
        return (
            (self.before is None or self.before.search(text[start : find.start]) is not None)
            and (self.sentence is None or self.sentence.search(text[start:end]) is not None)
            and (self.message is None or self.message.search(whole) is not None)
            and (self.also is None or self.also.search(whole) is not None)
            and (self.unless is None or self.unless.search(text) is None)
        )


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules for the signs in one language."""

    language: LanguageCode
    normal: Callable[[str], str]
    idioms: re.Pattern[str]
    signs: tuple[tuple[Rule, tuple[Guard, ...]], ...]
    """Each with the guards that may suppress it; the most urgent first."""
    hints: tuple[tuple[int, re.Pattern[str]], ...]
    hint_guards: tuple[Guard, ...]
    follow: re.Pattern[str]
    eased: re.Pattern[str]
    few: int
    """A message of up to this many words (or characters) is an answer rather than a new subject."""

    @once
    def read(self, text: str) -> str:
        """Returns the text in which signs are searched for: normalised, without its idioms."""
        return self.idioms.sub(CUT, self.normal(text))

    @once
    def look(self, text: str) -> Sign | None:
        whole, text = self.normal(text), self.read(text)
        for rule, guards in self.signs:
            for find in rule.finds(text):
                if not any(guard.silences(text, find, whole) for guard in guards):
                    words = text[find.start : find.end].strip()
                    return Sign(rule.kind, rule.directness, self.language, words, f"{rule.name}: {rule.why}")
        return self._weigh(text, whole)

    def silenced(self, text: str) -> bool:
        """Whether a guard suppresses the words of a sign in the text."""
        whole, text = self.normal(text), self.read(text)
        finds = [(find, guards) for rule, guards in self.signs for find in rule.finds(text)]
        return any(guard.silences(text, find, whole) for find, guards in finds for guard in guards)

    def follows(self, text: str) -> bool:
        text = self.normal(text)
        if self.eased.search(text):
            return False
        length = len(text.split()) if self.language == "en" else len(text)
        return length <= self.few or self.follow.search(text) is not None

    def _weigh(self, text: str, whole: str) -> Sign | None:
        """Returns the sign that hints in neighbouring sentences add up to, if any."""
        for start, end in windows(text, TOGETHER):
            matches = [(points, match) for points, hint in self.hints if (match := hint.search(text, start, end))]
            for_it = [match for points, match in matches if points > 0]
            if len(for_it) < 2 or sum(points for points, _ in matches) < ENOUGH:
                continue
            find = Find(for_it[0].start(), for_it[0].end())
            if not any(guard.silences(text, find, whole) for guard in self.hint_guards):
                words = " … ".join(match[0].strip() for match in for_it)
                return Sign("self-harm", "indirect", self.language, words, "hints: several together")
        return None


def windows(text: str, count: int) -> Iterator[tuple[int, int]]:
    """Yields start and end of every `count` neighbouring sentences; of the whole text if it has no more."""
    ends = [match.end() for match in re.finditer("[.。]", text)]
    if not ends or ends[-1] < len(text.rstrip()):
        ends.append(len(text))
    starts = [0, *ends[:-1]]
    for first in range(max(1, len(ends) - count + 1)):
        yield starts[first], ends[min(first + count, len(ends)) - 1]


def sentence_around(text: str, find: Find) -> tuple[int, int]:
    start = max(text.rfind(mark, 0, find.start) for mark in ".。") + 1
    ends = [place for mark in ".。" if (place := text.find(mark, find.end)) >= 0]
    return start, min(ends, default=len(text))


class Spelling:
    """Compiles patterns of the data files to regular expressions: <family>, <3>, plain groups, whole words."""

    def __init__(self, families: Mapping[str, str | list[str]], gap: str, whole_words: bool) -> None:
        self.families, self.gap, self.whole_words = families, gap, whole_words

    def expression(self, pattern: str | list[str]) -> str:
        """Returns the expression for one pattern or a list of alternatives."""
        pattern = pattern if isinstance(pattern, str) else "|".join(pattern)
        while name := re.search("<([a-z ]+)>", pattern):
            family = self.expression(self.families[name[1]])
            pattern = pattern[: name.start()] + f"(?:{family})" + pattern[name.end() :]
        pattern = re.sub(r"<(\d+)>", lambda most: f"(?:{self.gap}){{0,{most[1]}}}?", pattern)
        return re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern)

    def compiled(self, pattern: str | list[str]) -> re.Pattern[str]:
        joined = self.expression(pattern) or "(?!)"
        return re.compile(rf"\b(?:{joined})(?!\w)" if self.whole_words else joined)

    def rule(self, record: Mapping[str, Any]) -> Rule:
        kind, directness = record["is"].split(", ")
        alternatives = [alternative for pattern in record["any"] for alternative in alternatives_of(pattern)]
        several = [pattern.split(" && ") for pattern in alternatives if " && " in pattern]
        return Rule(
            record["sign"], kind, directness, record["why"],
            self.compiled([pattern for pattern in alternatives if " && " not in pattern]),
            tuple(tuple(self.compiled(part) for part in parts) for parts in several),
        )  # fmt: skip

    def guard(self, record: Mapping[str, Any]) -> Guard:
        parts = {
            part: self.compiled(record[part]) for part in ("sentence", "message", "also", "unless") if part in record
        }
        before = re.compile(self.expression(record["before"])) if "before" in record else None
        return Guard(before, *(parts.get(part) for part in ("sentence", "message", "also", "unless")))


def alternatives_of(pattern: str) -> list[str]:
    """Splits a pattern at the bars outside of all brackets."""
    parts, depth = [""], 0
    for character in pattern:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


FILES: dict[LanguageCode, str] = {"en": "english.yaml", "zh": "chinese.yaml"}


@cache
def _data(language: LanguageCode) -> dict[str, Any]:
    return yaml.safe_load(files("listenwell.systems.safety").joinpath(FILES[language]).read_text(encoding="utf-8"))


@cache
def spelling_of(language: LanguageCode) -> Spelling:
    """Returns the compiler for patterns of a language, with its families of words."""
    english = language == "en"
    return Spelling(_data(language)["words"], "[a-z0-9]+ " if english else "[^，。~]", whole_words=english)


@cache
def rules(language: LanguageCode) -> Rules:
    """Returns the rules of a language, which are loaded on first use."""
    data, spelling, english = _data(language), spelling_of(language), language == "en"
    guards = [(record.get("of"), spelling.guard(record)) for record in data["guards"]]

    def over(*names: str) -> tuple[Guard, ...]:
        return tuple(guard for of, guard in guards if of is None or set(of) & set(names))

    signs = [spelling.rule(record) for record in data["signs"]]
    return Rules(
        language,
        English(data["spelling"]) if english else Chinese(data["spelling"]),
        spelling.compiled(data["idioms"]),
        tuple((rule, over(rule.name, rule.kind, f"{rule.kind} {rule.directness}")) for rule in signs),
        tuple((record["points"], spelling.compiled(record["any"])) for record in data["hints"]),
        over("hints", "self-harm", "self-harm indirect"),
        spelling.compiled(data["follow"]),
        spelling.compiled(data["eased"]),
        few=6 if english else 12,
    )


@once
def detect(text: str) -> Sign | None:
    """Returns the most urgent sign in a message, from the detectors of all languages in it; None if there is none."""
    from listenwell.systems.safety.detectors import detectors_of  # which uses these rules

    text = readable(text)
    signs = [sign for detector in detectors_of(text) if (sign := detector.detect(text)) is not None]
    return min(signs, key=lambda sign: sign.directness != "direct", default=None)


def decide(
    text: str, sign: Sign | None, prediction: Prediction, backed: float | None = None, alone: float | None = None
) -> Sign | None:
    """Combines rules and classifier for an English text. The thresholds default to those of a single message."""
    if sign is not None:
        return sign if prediction.odds > (BACKED if backed is None else backed) else None
    if prediction.odds <= (ALONE if alone is None else alone):
        return None
    return Sign(
        prediction.kind, prediction.directness, "en", rules("en").normal(text), "learned: it sounds like a sign"
    )


def follows(text: str, sign: Sign | None = None) -> bool:
    """Whether a message without a sign of its own still belongs to the sign of a message shortly before it.

    Without `sign`, whether it could belong to any.
    """
    from listenwell.systems.safety.detectors import detector_for, detectors_of

    detectors = detectors_of(text) or ([] if sign is None else [detector_for(sign.language)])
    return all(detector.follows(text) for detector in detectors)
