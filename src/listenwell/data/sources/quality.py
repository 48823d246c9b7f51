"""How problems in texts are detected: pure functions on strings and dialogues, shared by all readers."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from listenwell.data.dialogue import Dialogue

# Reasons that more than one reader reports, so that their counts add up under one name.
JUNK_TURN = "junk turn (only digits or punctuation)"
REPEATED_TURN = "turn repeats the one before"
GARBLED = "garbled characters"
DUPLICATE = "duplicate dialogue"
UNKNOWN_EMOTION = "unknown emotion name"
UNKNOWN_LABEL = "unknown label name"
ONE_TURN = "one-turn conversation"

# UTF-8 that was once read as Latin-1 or cp1252 shows these pairs; a replacement character, that bytes were lost.
_MOJIBAKE = re.compile("\ufffd|â€|ðŸ|Ã[\x80-\xbf\u0192\u201a]|Â[\xa0-\xbf]")


def is_junk(text: str) -> bool:
    """Whether a turn says nothing in words: only digits, punctuation and spaces. An emoji is not junk."""
    return not any(char.isalpha() or unicodedata.category(char) == "So" for char in text)


def is_garbled(text: str) -> bool:
    """Whether a text holds replacement characters or UTF-8 decoded with the wrong code page."""
    return not text.isascii() and _MOJIBAKE.search(text) is not None


def squeeze(text: str) -> str:
    """The text without stray spaces: none at the ends, one between words."""
    return " ".join(text.split())


def fingerprint(dialogue: Dialogue) -> bytes:
    """Equal for dialogues of equal texts. A hash, so that a corpus of millions can be remembered."""
    # The separator cannot stand inside a squeezed text, so ("a b",) and ("a", "b") differ.
    texts = "\n".join(squeeze(turn.text) for turn in dialogue.turns)
    return hashlib.blake2b(texts.encode("utf-8", "surrogatepass"), digest_size=16).digest()
