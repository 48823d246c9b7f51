"""Direct signs of danger in languages that no system here speaks: lists of phrases, one file each in phrases/.

A file has, for one language:
  common    its commonest words, if its letters do not identify it (see language_id.py)
  negation  words that a gap <2> (up to two words) never spans; `negated`: what cancels a match before it
  after     what cancels a match after it
  words     families of words, written <name> in patterns
    idioms    "I am dying of laughter": cut out before signs are searched for
    signs     patterns by kind of danger; all count as direct
    replies   the fixed answers, the words for `emergency` in them, and `number`, the wording if there is a number
  notice    says, in that language, that only English is understood
Patterns and messages are folded the same way (`language_id.fold`), so patterns may have accents. " . " ends a sentence,
" , " is any smaller break; languages that are `unspaced` have 。 and 、 instead and no spaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from listenwell.systems.safety.detector import CUT, Kind, Spelling
from listenwell.systems.safety.language_id import fold, language_of, phrase_data
from listenwell.systems.safety.once import once

KINDS: tuple[Kind, ...] = get_args(Kind)
LAUGHTER = re.compile(
    r"😂|🤣|😆|😹|\b(?:lol|lmao|mdr|ptdr|xd|(?:ha|he|ja|je|ah|хa|ха){2,}h?|k{4,}|(?:rs){2,})\b|[ㅋㅎ]{2,}|www+|笑|草$|ههه"
)
"""A threat to others is not meant if it is said with laughter. About themselves, people laugh and mean it."""
KATAKANA = {code: code - 0x60 for code in range(0x30A1, 0x30F7)}


@dataclass(frozen=True, slots=True)
class ForeignSign:
    """A direct sign in a language that has a phrase file."""

    kind: Kind
    language: str
    words: str

    def __str__(self) -> str:
        return f"{self.kind}, direct"


@dataclass(frozen=True, slots=True)
class Phrases:
    """The patterns that are searched for in one language."""

    language: str
    unspaced: bool
    idioms: re.Pattern[str]
    negated: re.Pattern[str]
    after: re.Pattern[str]
    signs: Mapping[Kind, re.Pattern[str]]

    def find(self, text: str) -> ForeignSign | None:
        laughs = LAUGHTER.search(text.casefold()) is not None
        text = self.idioms.sub(f" {CUT} ", unspaced(text) if self.unspaced else spaced(text))
        for kind, pattern in self.signs.items():
            for match in () if laughs and kind == "harm-to-others" else pattern.finditer(text):
                if not self.negated.search(text[: match.start()]) and not self.after.match(text[match.end() :]):
                    return ForeignSign(kind, self.language, match[0].strip())
        return None


@once
def spaced(text: str) -> str:
    """Returns folded words with single spaces, and marks for breaks."""
    text = re.sub(r"[.!?;…。؟۔।\n]+", " . ", fold(text))
    text = re.sub(r"[,:()،؛—–\"«»“”]+", " , ", text)
    text = re.sub(r"[^\w\s.,\u0900-\u097f]|_", " ", text)  # Hindi vowel signs do not match \w
    return f" {' '.join(text.split())} "


@once
def unspaced(text: str) -> str:
    """Returns folded characters without spaces, katakana as hiragana, and marks for breaks."""
    text = re.sub(r"[.!?。！？…\n]+", "。", fold(text).translate(KATAKANA))
    text = re.sub(r"[,、，・「」『』()（）\"“”]+", "、", text)
    return re.sub(r"[^\w。、]|_", "", text)


@cache
def phrases() -> dict[str, Phrases]:
    return {language: _phrases(language, entry) for language, entry in phrase_data().items()}


def _phrases(language: str, entry: Mapping[str, Any]) -> Phrases:
    is_unspaced = bool(entry.get("unspaced"))
    gap = "[^。、~]" if is_unspaced else f"(?!(?:{_folded(entry['negation'], is_unspaced)}) )[^ .,~]+ "
    families = {name: _folded(family, is_unspaced) for name, family in entry["words"].items()}
    spelling = Spelling(families, gap, whole_words=False)

    def compiled(patterns: list[str]) -> re.Pattern[str]:
        joined = spelling.expression([_folded(pattern, is_unspaced) for pattern in patterns])
        return re.compile(joined if is_unspaced else rf"(?<= )(?:{joined})(?= )")

    return Phrases(
        language,
        is_unspaced,
        compiled(entry["idioms"]),
        re.compile(rf" (?:{_folded(entry['negated'], is_unspaced)}) $" if "negated" in entry else "(?!)"),
        re.compile(_folded(entry.get("after", "(?!)"), is_unspaced)),
        {kind: compiled(entry["signs"][kind]) for kind in KINDS},
    )


def _folded(pattern: str, is_unspaced: bool) -> str:
    folded = fold(pattern)
    return folded.translate(KATAKANA) if is_unspaced else folded


def detect_foreign(text: str) -> ForeignSign | None:
    """Returns a sign in any language that has a phrase file, even in the middle of English text."""
    language = language_of(text)  # tried first, since two languages may share a phrase
    ordered = sorted(phrases().values(), key=lambda entry: entry.language != language)
    return next((sign for entry in ordered if (sign := entry.find(text)) is not None), None)
