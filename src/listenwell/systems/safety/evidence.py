"""Evidence over several messages: the groups of conversation.yaml, and what they add up to."""

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
"""How many messages of the speaker are read together."""
PARTS = ("means", "intent", "despair", "farewell", "ending", "grief", "follow the dead")
Question = Literal["harm", "safe"]
YesNo = Literal["yes", "no", "unsure"]


REPLY = 160
"""How many characters of a listener's reply are read with the speaker's messages: questions stand last."""
TURN = " [SEP] "
"""Stands between the turns of a script: MiniLM's own mark between texts."""


class Messages(tuple[str, ...]):
    """What a speaker said, message by message, and what the listener had said before each (`replies`)."""

    replies: tuple[str, ...]

    @classmethod
    def of(cls, turns: Sequence[Turn]) -> Messages:
        """Those of a conversation; a message without words is left out."""
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
        """Of messages, each with the reply before it."""
        pairs = list(pairs)
        messages = cls(text for text, _ in pairs)
        messages.replies = tuple(reply for _, reply in pairs)
        return messages

    def filtered(self, keep: Callable[[str], bool]) -> Messages:
        """Those that a condition holds for."""
        return self.of_pairs(pair for pair in zip(self, self.replies, strict=True) if keep(pair[0]))

    def recent(self, most: int = RECENT) -> Messages:
        return self.of_pairs(list(zip(self, self.replies, strict=True))[-most:])


def script(messages: Sequence[str]) -> str:
    """Messages as the English classifier reads them: turn by turn, the ends of the replies between them quoted."""
    replies = messages.replies[1:] if isinstance(messages, Messages) else [""] * len(messages[1:])
    texts = [messages[0].strip()]
    for reply, text in zip(replies, messages[1:], strict=True):
        texts += [f'"{quoted}"'] if (quoted := reply.strip().replace('"', "'")[-REPLY:]) else []
        texts.append(text.strip())
    return TURN.join(texts)


def joined(messages: Sequence[str]) -> str:
    """Messages as one text, each ended like a sentence."""
    stripped = [text.strip() for text in messages if text.strip()]
    return " ".join(text if text[-1] in ".!?…。！？" else f"{text}{_stop(text)}" for text in stripped)


def _stop(text: str) -> str:
    return "。" if "\u4e00" <= text[-1] <= "\u9fff" else "."


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is looked for in the messages of one language."""

    rules: Rules
    parts: dict[str, re.Pattern[str]]
    harmless: re.Pattern[str]
    beyond_grief: re.Pattern[str]
    asks: dict[Question, re.Pattern[str]]
    answers: dict[YesNo, re.Pattern[str]]
    """What is tried first comes first."""
    joke: re.Pattern[str]

    def sign(self, messages: Sequence[str]) -> Sign | None:
        """What the messages make together, if the last has a part in it."""
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
        """Whether any of these parts stands in a message."""
        text = self._read(text)
        return any(self.parts[part].search(text) for part in parts)

    def is_harmless(self, messages: Sequence[str]) -> bool:
        """Whether something was told that gives means and endings another use."""
        return any(self.harmless.search(self._read(text)) for text in messages)

    def mourns(self, messages: Sequence[str]) -> bool:
        """Whether a death was told, by somebody who does not want to follow."""
        texts = [self._read(text) for text in messages]
        mourns = any(self.parts["grief"].search(text) for text in texts)
        # Who has a means at hand is asked, whoever died.
        more = (self.beyond_grief, self.parts["means"])
        return mourns and not any(pattern.search(text) for pattern in more for text in texts)

    def is_question(self, text: str, about: Question) -> bool:
        return self.asks[about].search(self.rules.normal(text)) is not None

    def answer(self, text: str) -> YesNo | None:
        """What a message says to a question of yes or no, if it answers it."""
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
    """Read once, when first asked for."""
    data = yaml.safe_load(files("listenwell.systems.safety").joinpath("conversation.yaml").read_text(encoding="utf-8"))[
        language
    ]
    spelling = spelling_of(language)
    compiled = {name: spelling.compiled(patterns) for name, patterns in data.items()}
    # Answers are looked for at the start of a message as typed.
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
