"""Detects problems in texts: pure functions on strings and dialogues, shared by all readers."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from listenwell.data.dialogue import Dialogue

# Reasons reported by more than one reader, so that their counts add up under one name.
JUNK_TURN = "junk turn (only digits or punctuation)"
REPEATED_TURN = "turn repeats the one before"
GARBLED = "garbled characters"
DUPLICATE = "duplicate dialogue"
UNKNOWN_EMOTION = "unknown emotion name"
UNKNOWN_LABEL = "unknown label name"
ONE_TURN = "one-turn conversation"

# These pairs indicate UTF-8 decoded as Latin-1 or cp1252; a replacement character indicates lost bytes.
_MOJIBAKE = re.compile("\ufffd|â€|ðŸ|Ã[\x80-\xbf\u0192\u201a]|Â[\xa0-\xbf]")


def is_junk(text: str) -> bool:
    """Whether a turn has only digits, punctuation and spaces. An emoji is not junk."""
    return not any(char.isalpha() or unicodedata.category(char) == "So" for char in text)


def is_garbled(text: str) -> bool:
    """Whether a text holds replacement characters or UTF-8 decoded with the wrong code page."""
    return not text.isascii() and _MOJIBAKE.search(text) is not None


def squeeze(text: str) -> str:
    """Normalizes whitespace: none at the ends, one space between words."""
    return " ".join(text.split())


def fingerprint(dialogue: Dialogue) -> bytes:
    """A hash that is equal for dialogues with equal texts; compact enough to remember a corpus of millions."""
    # The separator cannot occur inside a squeezed text, so ("a b",) and ("a", "b") differ.
    texts = "\n".join(squeeze(turn.text) for turn in dialogue.turns)
    return hashlib.blake2b(texts.encode("utf-8", "surrogatepass"), digest_size=16).digest()
