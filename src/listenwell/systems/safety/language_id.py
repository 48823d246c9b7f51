"""Which language is a message written in?

Most languages are identified by their script, those in Latin letters by their commonest words (languages.yaml,
phrases/*.yaml). If in doubt, a text is English: a wrong "not English" stops a conversation, a missed one only reaches
the model.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from listenwell.systems.safety.once import once

ENGLISH, NO_WORDS, OTHER = "en", "no words", "other"
LEAST_WORDS = 2
"""Minimum number of different words of another language."""
PER_ENGLISH_WORD = 2
"""They must be more than this many times as many as the English words."""
LEAST_SHARE = 0.25
"""Their minimum share of all words."""

LATIN_ACCENTS = re.compile("[\u0300-\u036f]")
# Vowel signs, the lengthening stroke and the hamza signs of Arabic; the dot under letters of Hindi.
OPTIONAL_SIGNS = re.compile("[\u0640\u064b-\u065f\u0670\u093c\u200c\u200d]")
ONE_LETTER = str.maketrans({
    "ı": "i",  # Turkish
    "ى": "ي", "ی": "ي", "ے": "ي", "ک": "ك", "ة": "ه", "ہ": "ه", "ھ": "ه",  # Arabic, Persian, Urdu
    "\u0901": "\u0902",  # Hindi: two signs of a nasal vowel
})  # fmt: skip
APOSTROPHES = re.compile("['’‘`´ʼ]")
EMOTICON = re.compile(
    r"(?<![^\W_])(?:[:;=x8]['’^o-]?[()\[\]dpo3sc/\\|*@]+|<[3/]+3?|[t;ó>o^u.=-][_.]+[t;ò<o^u.=-]|x+d+|\^+)(?![^\W_])",
    re.IGNORECASE,
)
JAMO = re.compile("[\u1100-\u11ff\u3131-\u318e]")
"""Single Korean letters stand for laughing or weeping, also in English messages."""
# How many Latin letters a character counts for if it is a syllable or a word.
WEIGHT = {"CJK": 2, "HANGUL": 2, "HIRAGANA": 2, "KATAKANA": 2}
ALONE = ("CJK", "HANGUL")
"""Scripts in which a single character can be a word; in others, it is part of an emoticon."""


@once
def fold(text: str) -> str:
    """Returns one form of each letter: lower case, no accents or optional signs, no marks on Arabic and Cyrillic."""
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    text = OPTIONAL_SIGNS.sub("", LATIN_ACCENTS.sub("", text))
    text = text.translate(ONE_LETTER)
    return unicodedata.normalize("NFC", text)


def words_of(text: str) -> list[str]:
    """Returns the folded words; an apostrophe separates words."""
    return re.findall(r"[^\W\d_]+", fold(text))


@cache
def data() -> dict[str, Any]:
    return yaml.safe_load(files("listenwell.systems.safety").joinpath("languages.yaml").read_text(encoding="utf-8"))


@cache
def phrase_data() -> dict[str, dict[str, Any]]:
    """Returns the phrase files, by language."""
    phrase_files = (
        entry
        for entry in files("listenwell.systems.safety").joinpath("phrases").iterdir()
        if entry.name.endswith(".yaml")
    )
    return {
        entry.name.removesuffix(".yaml"): yaml.safe_load(entry.read_text(encoding="utf-8"))
        for entry in sorted(phrase_files, key=lambda entry: entry.name)
    }


@once
def language_of(text: str) -> str:
    """Returns a code such as "de" or "zh"; "other" for any other language, "no words" for emoji and symbols only."""
    text = unicodedata.normalize("NFKC", EMOTICON.sub(" ", text))
    scripts = _scripts(text)
    if not scripts:
        return ENGLISH if any(character.isdigit() for character in text) else NO_WORDS
    latin = scripts.pop("LATIN", 0)
    if sum(WEIGHT.get(script, 1) * count for script, count in scripts.items()) > latin:
        return _by_script(text, scripts)
    return _by_words(text)


def _scripts(text: str) -> Counter[str]:
    """Counts the letters of each script, except those in emoticons."""
    letters: Counter[str] = Counter()
    for run in "".join(map(_letter_or_blank, JAMO.sub(" ", text))).split():
        scripts = [unicodedata.name(letter, "OTHER").split()[0].split("-")[0] for letter in run]
        if len(run) > 1 or scripts[0] in (*ALONE, "LATIN"):
            letters.update(scripts)
    return letters


def _letter_or_blank(character: str) -> str:
    """Vowel signs of Hindi and Thai count as letters; the modifiers that colour an emoji do not."""
    category = unicodedata.category(character)
    return character if category[0] == "L" or category == "Mc" or _is_vowel_sign(character, category) else " "


def _is_vowel_sign(character: str, category: str) -> bool:
    return category == "Mn" and "\u0300" < character < "\u1ac0"


def _by_script(text: str, scripts: Counter[str]) -> str:
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]
    if kana >= 2 and kana * 4 >= scripts["CJK"]:  # の alone is fashionable in Chinese
        return "ja"
    script = max(scripts, key=lambda name: WEIGHT.get(name, 1) * scripts[name])
    if script == "CYRILLIC":
        return "uk" if re.search("[іїєґ]", text.casefold()) else OTHER if re.search("[ђћџљњјѓќѕў]", text) else "ru"
    if script == "ARABIC":
        return OTHER if re.search("[ٹڈڑںےھ]", text) else "fa" if re.search("[پچژگکی]", text) else "ar"
    return {"CJK": "zh", "HANGUL": "ko", "DEVANAGARI": "hi", "GREEK": "el"}.get(script, OTHER)


def _by_words(text: str) -> str:
    own_words = _borrowed().sub(" ", f" {' '.join(words_of(APOSTROPHES.sub(' ', text)))} ")
    words = {word for word in own_words.split() if len(word) > 1}
    best, most = ENGLISH, 0
    for language, (ours, english) in _telling_words().items():
        hits, against = len(words & ours), len(words & english)
        if hits > most and hits >= max(LEAST_WORDS, PER_ENGLISH_WORD * against + 1, LEAST_SHARE * len(words)):
            best, most = language, hits
    return best if most else OTHER if _looks_foreign(text, words) else ENGLISH


def _looks_foreign(text: str, words: set[str]) -> bool:
    """Whether accents in many lower-case words suggest a language that is not listed. Names have accents, too."""
    marked = set(re.findall(r"\b[^\W\d_A-Z]*[^\W\d_A-Za-z][^\W\d_A-Z]*\b", text))
    marked = {word for word in marked if word.islower() and len(word) > 1}
    return len(marked) >= 3 and len(marked) >= 0.3 * len(words) and len(words & _english()) <= 1


@cache
def _english() -> frozenset[str]:
    return frozenset(words_of(data()["english"]))


@cache
def _telling_words() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Returns, for each language, its common words that English lacks, and the English ones that it lacks."""
    lists = {code: entry["common"] for code, entry in phrase_data().items() if "common" in entry}
    lists |= {code: entry["common"] for code, entry in data()["latin"].items()}
    words = {code: frozenset(word for word in words_of(text) if len(word) > 1) for code, text in lists.items()}
    return {code: (common - _english(), _english() - common) for code, common in words.items()}


@cache
def _borrowed() -> re.Pattern[str]:
    return re.compile(rf"(?<= )(?:{fold('|'.join(data()['borrowed']))})(?= )")
