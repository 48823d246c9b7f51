"""Chinese as characters: splitting text into tokens of the "char" kind, and joining them again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tokenizers import Regex, pre_tokenizers

_SCRIPT = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}"
_LATIN = rf"[\w&&[^_{_SCRIPT}]]"
CHARACTERS = pre_tokenizers.Split(
    Regex(rf"{_LATIN}+(?:['’]{_LATIN}+|(?<=\d)[.,:](?=\d){_LATIN}+)*|[^\s\p{{Cc}}]"),
    behavior="removed",
    invert=True,
)
"""A Latin word ("don't") or a number ("3.5") is one token; everything else is split into characters. Nothing is
normalised: the wide punctuation of Chinese stays wide. Spaces are dropped: Chinese has none, and those between Latin
words are restored."""

_IDEOGRAPHIC = re.compile(
    "[\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U000323af]"
)
_CLOSING = frozenset(".,!?;:%)]}…")
_OPENING = frozenset("([{$£€#“@")


def characters(text: str) -> list[str]:
    """The tokens of a text, in order."""
    return [token for token, _ in CHARACTERS.pre_tokenize_str(text)]


def join_tokens(tokens: Sequence[str]) -> str:
    """Join tokens into text: spaces between Latin words and after Latin punctuation, none in Chinese."""
    pieces: list[str] = []
    before, word = "", ""  # the token before, and the last one that is not a closing mark
    for token in tokens:
        pieces.append(f" {token}" if _is_apart(word, before, token) else token)
        before, word = token, word if token in _CLOSING else token
    return "".join(pieces)


def _is_apart(word: str, before: str, token: str) -> bool:
    if not (_is_latin(token) or token in _OPENING):
        return False
    if before == "." and len(word) == len(token) == 1 and word.isalpha():
        return False  # a.m., T.T
    # After a mark only if it ends a piece of Latin: "Hi, you", but "你好,you".
    return _is_latin(word) and (before == word or before in _CLOSING)


def _is_latin(token: str) -> bool:
    return token[-1:].isalnum() and not _IDEOGRAPHIC.match(token)
