"""Fixed answers to messages that a system cannot read.

A direct sign of danger is answered in its own language; any other message with a sentence that says which language is
understood; emoji alone with a sentence that asks for words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from listenwell.data.dialogue import Turn
from listenwell.systems.safety.detector import Kind, Sign, detect
from listenwell.systems.safety.foreign_signs import KINDS, ForeignSign, detect_foreign
from listenwell.systems.safety.language_id import ENGLISH, NO_WORDS, data, language_of, phrase_data, words_of
from listenwell.systems.safety.resources import Resources

LATELY = 3
"""For how many replies a sign in another language keeps a conversation in Care."""
FEW = 4
"""A message of up to this many words that may be English counts as an answer."""
NUMBER = re.compile(r"[\d\s/+-]+")


@dataclass(frozen=True, slots=True)
class FixedReply:
    """A text that no model wrote, and why it was used."""

    text: str
    reason: str


def languages_of(system: Any) -> tuple[str, ...]:
    """The languages that a system declares in its attribute `languages`; English if it declares none."""
    return tuple(getattr(system, "languages", (ENGLISH,)))


def foreign_care(turns: Sequence[Turn], resources: Resources) -> FixedReply | None:
    """Returns the reply to a direct sign in another language, and to the short answers that follow it."""
    sign = detect_foreign(turns[-1].text)
    earlier = _answered_lately(turns)
    if sign is not None:
        again = any((sign.kind, sign.language) == (given.kind, given.language) for given in earlier)
    elif earlier and _follows(turns[-1].text, earlier[-1].language):
        sign, again = earlier[-1], True
    else:
        return None
    return FixedReply(_sign_reply(sign, resources, again), str(sign))


def trusted(sign: Sign, text: str) -> bool:
    """Whether a sign that the English or Chinese detector found in a message can be trusted.

    The English classifier was not trained on other languages, and the Chinese rules misread Japanese.
    """
    language = language_of(text)
    if language in (ENGLISH, "zh", NO_WORDS):
        return True
    return not sign.why.startswith("learned") and (language, sign.language) != ("ja", "zh")


def language_notice(turns: Sequence[Turn], spoken: Collection[str], speaker: str = "") -> FixedReply | None:
    """Returns the reply to a message in none of the languages spoken; None if the system can read it.

    `speaker` is the name of a system that does speak the language, if there is one.
    """
    text = turns[-1].text
    language = language_of(text) if text.strip() else ENGLISH
    if language == ENGLISH or language in spoken:
        return None
    if language == NO_WORDS:
        chinese = "zh" in spoken and _language_before(turns) == "zh"
        return FixedReply(data()["notices"]["no words zh" if chinese else NO_WORDS], f"language: {NO_WORDS}")
    notice = _notices().get(language, _notices()[ENGLISH])
    if speaker:
        elsewhere = data()["elsewhere"]
        notice += " " + elsewhere.get(language, elsewhere[ENGLISH]).format(system=speaker)
    return FixedReply(notice, f"language: {language}")


def _language_before(turns: Sequence[Turn]) -> str:
    """Returns the language of the speaker's last message with words before this one."""
    earlier = (language_of(turn.text) for turn in reversed(turns[:-1]) if turn.speaker == "speaker")
    return next((language for language in earlier if language != NO_WORDS), ENGLISH)


def _follows(text: str, language: str) -> bool:
    """Whether a message without a sign answers Care in this language. "Ja" and "ok" may also be English."""
    written = language_of(text)
    if written == ENGLISH:
        return len(words_of(text)) <= FEW and detect(text) is None
    return written in (language, NO_WORDS)


def _answered_lately(turns: Sequence[Turn]) -> list[ForeignSign]:
    """Returns the signs that the latest replies answered in full."""
    replies = ["".join(turn.text.split()) for turn in turns if turn.speaker == "listener"][-LATELY:]
    return [sign for text in replies for opening, sign in _openings().items() if text.startswith(opening)]


@cache
def _openings() -> dict[str, ForeignSign]:
    """Returns how the full replies begin, before anything that depends on the resources."""
    return {
        "".join(entry["replies"][kind].split("{")[0].split()): ForeignSign(kind, language, "")
        for language, entry in phrase_data().items()
        for kind in KINDS
    }


@cache
def _notices() -> dict[str, str]:
    further = {**phrase_data(), **data()["latin"]}
    return data()["notices"] | {code: entry["notice"] for code, entry in further.items() if "notice" in entry}


def _sign_reply(sign: ForeignSign, resources: Resources, again: bool) -> str:
    replies = phrase_data()[sign.language]["replies"]
    text = replies["again" if again else sign.kind].format(emergency=_emergency(replies, resources))
    return "\n".join([text, *(() if again else _numbers(sign.kind, resources))])


def _emergency(replies: dict[str, str], resources: Resources) -> str:
    """Returns the emergency number of the chosen region; without one, words that are true everywhere."""
    number = resources.emergency["en"]
    return replies.get("number", "{number}").format(number=number) if _is_number(number) else replies["emergency"]


def _numbers(kind: Kind, resources: Resources) -> list[str]:
    """Returns the lines of the region that need no translation."""
    lines = [line for line in resources.lines if kind in line.kinds and _is_number(line.contact["en"])]
    return [f"- {line.text('en')}" for line in lines]


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None
