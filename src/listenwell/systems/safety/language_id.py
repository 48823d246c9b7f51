"""Which language is a message written in?

Scripts tell most languages; those in Latin letters are told by their commonest words (languages.yaml, phrases/*.yaml).
What cannot be told is English: a wrong "not English" stops a conversation, a missed one only reaches the model.
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
"""Different words of another language that must be there."""
PER_ENGLISH_WORD = 2
"""How many times the words of English they must outnumber."""
LEAST_SHARE = 0.25
"""Of all words."""

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
"""Letters of Korean that stand alone laugh or weep, also in English messages."""
# How many Latin letters a character stands for, where it is a syllable or a word.
WEIGHT = {"CJK": 2, "HANGUL": 2, "HIRAGANA": 2, "KATAKANA": 2}
ALONE = ("CJK", "HANGUL")
"""Scripts of which one character can be a word; of others, one is part of a drawn face."""


@once
def fold(text: str) -> str:
    """One form of each letter: lower case, no accents, no optional signs, Arabic and Cyrillic letters without marks."""
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    text = OPTIONAL_SIGNS.sub("", LATIN_ACCENTS.sub("", text))
    text = text.translate(ONE_LETTER)
    return unicodedata.normalize("NFC", text)


def words_of(text: str) -> list[str]:
    """Folded words; an apostrophe parts two."""
    return re.findall(r"[^\W\d_]+", fold(text))


@cache
def data() -> dict[str, Any]:
    return yaml.safe_load(files("listenwell.systems.safety").joinpath("languages.yaml").read_text(encoding="utf-8"))


@cache
def phrase_data() -> dict[str, dict[str, Any]]:
    """The phrase files, by language."""
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
    """A code such as "de" or "zh"; "other" for a language without one here, "no words" for emoji and signs alone."""
    text = unicodedata.normalize("NFKC", EMOTICON.sub(" ", text))
    scripts = _scripts(text)
    if not scripts:
        return ENGLISH if any(character.isdigit() for character in text) else NO_WORDS
    latin = scripts.pop("LATIN", 0)
    if sum(WEIGHT.get(script, 1) * count for script, count in scripts.items()) > latin:
        return _by_script(text, scripts)
    return _by_words(text)


def _scripts(text: str) -> Counter[str]:
    """How many letters of each script, those of drawn faces left out."""
    letters: Counter[str] = Counter()
    for run in "".join(map(_letter_or_blank, JAMO.sub(" ", text))).split():
        scripts = [unicodedata.name(letter, "OTHER").split()[0].split("-")[0] for letter in run]
        if len(run) > 1 or scripts[0] in (*ALONE, "LATIN"):
            letters.update(scripts)
    return letters


def _letter_or_blank(character: str) -> str:
    """Vowel signs of Hindi and Thai belong to the letters; the signs that colour an emoji do not."""
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
    """Whether marks on the letters of many small words tell a language that is not listed. Names have marks, too."""
    marked = set(re.findall(r"\b[^\W\d_A-Z]*[^\W\d_A-Za-z][^\W\d_A-Z]*\b", text))
    marked = {word for word in marked if word.islower() and len(word) > 1}
    return len(marked) >= 3 and len(marked) >= 0.3 * len(words) and len(words & _english()) <= 1


@cache
def _english() -> frozenset[str]:
    return frozenset(words_of(data()["english"]))


@cache
def _telling_words() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """For each language, the common words that English lacks, and those of English that it lacks."""
    lists = {code: entry["common"] for code, entry in phrase_data().items() if "common" in entry}
    lists |= {code: entry["common"] for code, entry in data()["latin"].items()}
    words = {code: frozenset(word for word in words_of(text) if len(word) > 1) for code, text in lists.items()}
    return {code: (common - _english(), _english() - common) for code, common in words.items()}


@cache
def _borrowed() -> re.Pattern[str]:
    return re.compile(rf"(?<= )(?:{fold('|'.join(data()['borrowed']))})(?= )")
