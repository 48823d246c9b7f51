"""What a word is, and how words become a sentence again. No dependency but `re`-like patterns."""

from __future__ import annotations

import re
from collections.abc import Sequence

WORD_PATTERN = r"\w+(?=n't)|n't|'(?:s|m|re|ve|ll|d)(?!\w)|\w+|\.{2,}|[^\w\s]"
"""Treebank-like: clitics stand alone, runs of dots are one word, other punctuation is a word each."""

_WORD = re.compile(WORD_PATTERN)
_CLITICS = frozenset({"n't", "'s", "'m", "'re", "'ve", "'ll", "'d"})
_CLOSING = frozenset(".,!?;:%)]}…")
_OPENING = frozenset("([{$£€#")
_QUOTES = str.maketrans("‘’`´", "''''")


def words(text: str) -> list[str]:
    """The lower-cased words of a text: the unit that perplexity per word and all overlap metrics count."""
    return _WORD.findall(text.translate(_QUOTES).lower())


def detokenize(tokens: Sequence[str]) -> str:
    """Words joined as people write them, with sentence case and a capital I."""
    pieces: list[str] = []
    glue = True  # whether the next word sticks to what stands before it
    quoted = False
    for token in tokens:
        opens_quote = token == '"' and not quoted
        sticks = token in _CLITICS or token[0] in _CLOSING or (token == '"' and quoted) or token in ("-", "/", "'")
        pieces.append(token if glue or sticks else f" {token}")
        glue = token in _OPENING or opens_quote or token in ("-", "/", "'")
        if token == '"':
            quoted = not quoted
    return sentence_case("".join(pieces))


def sentence_case(text: str) -> str:
    """A capital at the start of each sentence and for the word "i"."""
    text = re.sub(r"\bi\b(?!\.e)", "I", text)
    return re.sub(r"(^|[.!?]\s+)([\"'(]*)([a-z])", lambda m: m[1] + m[2] + m[3].upper(), text)
