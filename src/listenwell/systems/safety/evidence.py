"""Evidence from several messages: the groups of conversation.yaml, and what they add up to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import yaml

from listenwell.data.dialogue import Turn
from listenwell.systems.safety.detector import Directness, LanguageCode, Rules, Sign, rules, spelling_of
from listenwell.systems.safety.normalize import plain

RECENT = 4
"""Number of speaker messages that are read together."""
PARTS = ("means", "intent", "despair", "farewell", "ending", "grief", "follow the dead")
Question = Literal["harm", "safe"]
YesNo = Literal["yes", "no", "unsure"]


REPLY = 160
"""Characters from the end of a listener's reply that are read with the speaker's messages: questions come last."""
TURN = " [SEP] "
"""Separates the turns of a script: MiniLM's own separator token."""


class Messages(tuple[str, ...]):
    """The speaker's messages, with the listener's reply before each (`replies`)."""

    replies: tuple[str, ...]

    @classmethod
    def of(cls, turns: Sequence[Turn]) -> Messages:
        """Returns the messages of a conversation, except those without words."""
        pairs: list[tuple[str, str]] = []
        reply = ""
        for turn in turns:
            if turn.speaker == "listener":
                reply = turn.text
            elif turn.text.strip():
                pairs.append((turn.text, reply))
                reply = ""
        return cls.of_pairs(pairs)

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[str, str]]) -> Messages:
        """Builds them from pairs of a message and the reply before it."""
        pairs = list(pairs)
        messages = cls(text for text, _ in pairs)
        messages.replies = tuple(reply for _, reply in pairs)
        return messages

    def filtered(self, keep: Callable[[str], bool]) -> Messages:
        """Returns the messages for which a condition holds."""
        return self.of_pairs(pair for pair in zip(self, self.replies, strict=True) if keep(pair[0]))

    def recent(self, most: int = RECENT) -> Messages:
        return self.of_pairs(list(zip(self, self.replies, strict=True))[-most:])


def script(messages: Sequence[str]) -> str:
    """Formats messages for the English classifier: turn by turn, the ends of the replies between them in quotes."""
    replies = messages.replies[1:] if isinstance(messages, Messages) else [""] * len(messages[1:])
    texts = [messages[0].strip()]
    for reply, text in zip(replies, messages[1:], strict=True):
        texts += [f'"{quoted}"'] if (quoted := reply.strip().replace('"', "'")[-REPLY:]) else []
        texts.append(text.strip())
    return TURN.join(texts)


def joined(messages: Sequence[str]) -> str:
    """Joins messages into one text, ending each like a sentence."""
    stripped = [text.strip() for text in messages if text.strip()]
    return " ".join(text if text[-1] in ".!?…。！？" else f"{text}{_stop(text)}" for text in stripped)


def _stop(text: str) -> str:
    return "。" if "\u4e00" <= text[-1] <= "\u9fff" else "."


@dataclass(frozen=True, slots=True)
class Evidence:
    """The patterns that are searched for in the messages of one language."""

    rules: Rules
    parts: dict[str, re.Pattern[str]]
    harmless: re.Pattern[str]
    beyond_grief: re.Pattern[str]
    asks: dict[Question, re.Pattern[str]]
    answers: dict[YesNo, re.Pattern[str]]
    """In the order in which they are tried."""
    joke: re.Pattern[str]

    def sign(self, messages: Sequence[str]) -> Sign | None:
        """Returns the sign that the messages add up to, if the last one contributes to it."""
        if self.is_harmless(messages):
            return None
        texts = [self._read(text) for text in messages]
        match_of = {part: match[0] for part in PARTS for text in texts if (match := self.parts[part].search(text))}
        if not any(self.parts[part].search(texts[-1]) for part in match_of):
            return None
        directness = _weigh(frozenset(match_of))
        if directness is None:
            return None
        words = " … ".join(match.strip() for match in match_of.values())
        return Sign("self-harm", directness, self.rules.language, words, f"conversation: {' and '.join(match_of)}")

    def has(self, text: str, *parts: str) -> bool:
        """Whether a message contains any of these parts."""
        text = self._read(text)
        return any(self.parts[part].search(text) for part in parts)

    def is_harmless(self, messages: Sequence[str]) -> bool:
        """Whether something was said that gives means and endings another use."""
        return any(self.harmless.search(self._read(text)) for text in messages)

    def mourns(self, messages: Sequence[str]) -> bool:
        """Whether a death was mentioned, by somebody who does not want to follow."""
        texts = [self._read(text) for text in messages]
        mourns = any(self.parts["grief"].search(text) for text in texts)
        # Somebody who has means at hand is asked, whoever died.
        more = (self.beyond_grief, self.parts["means"])
        return mourns and not any(pattern.search(text) for pattern in more for text in texts)

    def is_question(self, text: str, about: Question) -> bool:
        return self.asks[about].search(self.rules.normal(text)) is not None

    def answer(self, text: str) -> YesNo | None:
        """Returns the answer of a message to a yes-or-no question; None if it does not answer it."""
        text = plain(text)
        if self.joke.search(text):
            return "no"
        return next((value for value, pattern in self.answers.items() if pattern.search(text)), None)

    def _read(self, text: str) -> str:
        return self.rules.read(text)


def _weigh(parts: frozenset[str]) -> Directness | None:
    if {"means", "intent", "despair"} <= parts:
        return "direct"
    pairs = ({"means", "intent"}, {"means", "despair"}, {"farewell", "ending"}, {"grief", "follow the dead"})
    return "indirect" if any(pair <= parts for pair in pairs) else None


@cache
def evidence(language: LanguageCode) -> Evidence:
    """Returns the evidence patterns of a language, which are loaded on first use."""
    data = yaml.safe_load(files("listenwell.systems.safety").joinpath("conversation.yaml").read_text(encoding="utf-8"))[
        language
    ]
    spelling = spelling_of(language)
    compiled = {name: spelling.compiled(patterns) for name, patterns in data.items()}
    # Answers are matched at the start of a message, as typed.
    compiled |= {name: re.compile(spelling.expression(data[name])) for name in data if name.startswith("says")}
    return Evidence(
        rules(language),
        {part: compiled[part] for part in PARTS},
        compiled["harmless"],
        compiled["beyond grief"],
        {"harm": compiled["asks"], "safe": compiled["asks safe"]},
        {"unsure": compiled["says unsure"], "yes": compiled["says yes"], "no": compiled["says no"]},
        compiled["joke"],
    )
