"""The cleaning steps for subtitles, each a small function on a text or a dialogue.

MEED2 cleans its dialogues in a sequence of steps (§ 3.1) that the paper does not specify: these are ours. The steps for
posts are those of `listenwell data clean`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from listenwell.data.sources.quality import is_garbled, squeeze

LONGEST_TURN = 80
"""Maximum words of a turn. A longer one is usually several turns taken for one, or text on the screen."""
FEWEST_WORDS = 6
"""Minimum words of a dialogue."""
LONG_TURN = 4
"""A repeated turn of at least this many words is an error in the file; people do say "No!" twice."""

WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+(?:['’][^\W_]+)*")
"""A word, or a character of Chinese and Japanese."""

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,80}>|\{\\?[^{}]{0,80}\}|&(?:nbsp|lt|gt|amp|quot);|\\[Nnh]")
_BRACKETS = re.compile(r"\[[^\[\]]{0,200}\]|【[^【】]{0,200}】")
_ROUND = re.compile(r"[(（]([^()（）]{0,200})[)）]")
_SUNG = re.compile(r"[♪♫♬♩][^♪♫♬♩]*[♪♫♬♩]?|^\s*#[^#]{2,}#?\s*$")
_NAME = re.compile(r"(?:^|(?<=[.!?…] ))[A-Z][A-Z.'’#&0-9-]+(?: [A-Z0-9#][A-Z.'’#&0-9-]*){0,3} ?: (?=\S)")
_LEADING = re.compile(r"^[\s\-–—‐*~>_|/\\,;:.…]+(?=[\w\"'“‘¿¡$£€(])")
_MARKS = str.maketrans(
    {**dict.fromkeys("’‘`´", "'"), **dict.fromkeys("“”„«»", '"'), **dict.fromkeys("–—―", "-"), "…": "..."}
    | dict.fromkeys("\u00ad\u200b\u200e\u200f\ufeff", "")
)
_REPEATED_MARK = re.compile(r"([!?,;:\"'-])(?:\s?\1)+")
_DOTS = re.compile(r"\.{2,}(?:\s\.{2,})*|(?<=\w)(?: \.){3,}")
_REPEATED_LETTER = re.compile(r"([^\W\d_])\1{3,}")
_BEFORE_MARK = re.compile(r" +(?=[,!?;:](?:\s|$)|\.(?:\s|$))")
_NO_SPACE = re.compile(r"(?<=[^\W\d_])[,;!?](?=[^\W\d_])")
_CREDITS = re.compile(
    r"https?:|www\.|\w\.(?:com|org|net)\b|open ?subtitles|addic7ed|podnapisi|subscene"
    r"|^\W*(?:sub(?:title)?s?|caption(?:s|ed|ing)?|(?:re-?)?synch?(?:ed|ro(?:nized)?)?|transcript(?:s|ion)?"
    r"|translat(?:ed|ion)|ripped|encoded|corrected|edited|timed)\b[^.!?]{0,40}?(?:\bby\b|[:@])"
    r"|(?:字幕|翻译|校对|时间轴|压制|后期|听译)[^。]{0,6}[:：组]|字幕组|人人影视|伊甸园"
    r"|advertise your product|become (?:a )?vip member|all rights reserved|^\W*previously on\b",
    re.IGNORECASE,
)
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_HAN = re.compile(r"[\u3400-\u9fff]")
# fmt: off
_FUNCTION_WORDS = frozenset({
    "i", "you", "the", "to", "a", "it", "and", "that", "is", "of", "in", "me", "what", "we", "this", "he", "for",
    "my", "on", "your", "do", "have", "not", "be", "was", "no", "with", "are", "so", "she", "just", "know", "but",
    "don't", "i'm", "it's", "all", "there", "can", "get", "go", "here", "they", "him", "out", "up", "got", "about",
    "right", "if", "at", "her", "as", "how", "one", "come", "oh", "well", "why", "yeah", "hey", "who", "us", "did",
    "would", "now", "from", "like", "want", "an", "think", "let's", "that's", "you're", "what's", "okay", "ok",
    "yes", "them", "been", "were", "has", "had", "will", "could", "where", "when", "see", "tell", "his", "by", "or",
    "good", "too", "he's", "she's", "we're", "they're", "can't", "i'll", "i've", "didn't",
})
# fmt: on
LANGUAGE_WORDS = 12
LANGUAGE_SHARE = 0.2
"""English dialogues with at least LANGUAGE_WORDS words have at least this share of function words; lists of names have
less."""


def strip_markup(text: str) -> str:
    """Remove leftover tags and escapes, misplaced or incomplete in the file: <i>, {\\an8}, &nbsp;."""
    return _TAG.sub(" ", text)


def strip_sounds(text: str) -> str:
    """Remove sound descriptions: [door slams], (SIGHS). Asides in parentheses of four words or more are kept."""
    return _ROUND.sub(_without_sound, _BRACKETS.sub(" ", text))


def _without_sound(match: re.Match[str]) -> str:
    inside = match[1].strip()
    is_aside = len(inside.split()) > 3 and any(map(str.islower, inside))
    return match[0] if is_aside else " "


def strip_songs(text: str) -> str:
    """Remove lyrics, which are marked by notes."""
    return _SUNG.sub(" ", text)


def strip_speaker_names(text: str) -> str:
    """Remove speaker names: "ROSS: Hi." becomes "Hi."."""
    return _NAME.sub("", text)


def plain_marks(text: str) -> str:
    """Convert quotes, dashes and dots to ASCII, as in other corpora; remove invisible characters."""
    return unicodedata.normalize("NFC", text).translate(_MARKS)


def shorten_repeats(text: str) -> str:
    """Collapse repeated marks ("!!!" becomes "!"), dots to three, and letters to three ("Nooooo" becomes "Nooo")."""
    text = _DOTS.sub("...", _REPEATED_MARK.sub(r"\1", text))
    return _REPEATED_LETTER.sub(lambda match: match[1] * 3, text)


def tidy(text: str) -> str:
    """Leave one space between words and after a comma, none before a mark; remove leading dashes."""
    return _LEADING.sub("", _NO_SPACE.sub(r"\g<0> ", _BEFORE_MARK.sub("", squeeze(text)))).strip()


TEXT_STEPS: dict[str, Callable[[str], str]] = {
    "markup": strip_markup,
    "sound descriptions": strip_sounds,
    "songs": strip_songs,
    "speaker names": strip_speaker_names,
    "typographic marks": plain_marks,
    "repeated marks and letters": shorten_repeats,
    "spaces and dashes": tidy,
}
"""The steps in order: a speaker name is at the start of a text once sound descriptions are removed."""


def count_words(text: str) -> int:
    return len(WORD.findall(text))


def has_no_words(text: str) -> bool:
    """Whether a text has no words, only marks and digits."""
    return not any(map(str.isalpha, text))


def is_credit(text: str) -> bool:
    """Whether a turn is about the subtitles themselves: who made them, where they are from, what they advertise."""
    return _CREDITS.search(text) is not None


def is_too_long(text: str) -> bool:
    return count_words(text) > LONGEST_TURN


def is_broken(text: str) -> bool:
    """Whether characters were lost or decoded wrongly."""
    if text.isascii():
        return False
    return is_garbled(text) or any(unicodedata.category(char) in ("Co", "Cn", "Cc") for char in text)


def has_other_script(text: str, language: str) -> bool:
    """Whether most letters are in another script than that of the language; always False for unknown languages."""
    script = {"en": _LATIN, "zh": _HAN}.get(language)
    letters = sum(map(str.isalpha, text))
    return script is not None and 2 * len(script.findall(text)) < letters


def is_too_short(turns: Sequence[str]) -> bool:
    """Whether a dialogue has too few words to learn from."""
    return sum(map(count_words, turns)) < FEWEST_WORDS


def is_repetitive(turns: Sequence[str]) -> bool:
    """Whether at most half of the turns are distinct: a chorus, a crowd, or an error in the file."""
    return len(turns) > 2 and 2 * len({turn.casefold() for turn in turns}) <= len(turns)


def is_not_english(turns: Sequence[str]) -> bool:
    """Whether a dialogue of some length has hardly any common English words."""
    words = [word.casefold() for turn in turns for word in WORD.findall(turn)]
    common = sum(word in _FUNCTION_WORDS for word in words)
    return len(words) >= LANGUAGE_WORDS and common < LANGUAGE_SHARE * len(words)
