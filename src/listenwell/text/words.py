"""Splitting text into words, and joining words into sentences again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tokenizers import Regex, normalizers, pre_tokenizers

# The word-level tokenizer uses these two, so that it always agrees with `words`, in any script.
NORMAL_FORM = normalizers.Sequence(
    [
        normalizers.Replace("´", "'"),  # before NFKC turns it into a space and an accent
        normalizers.NFKC(),
        normalizers.Replace(Regex("[‘’`]"), "'"),
        normalizers.Replace("\ufe0f", ""),  # variation selector for the coloured form of the preceding symbol
        normalizers.Lowercase(),
    ]
)
SPLIT = pre_tokenizers.Split(
    Regex(r"\p{Han}|[\w&&[^\p{Han}]]+(?=n't)|n't|'(?:s|m|re|ve|ll|d)(?!\w)|[\w&&[^\p{Han}]]+|\.{2,}|[^\w\s\p{Cc}]"),
    behavior="removed",
    invert=True,
)
"""Treebank-like: clitics are separate, a run of dots is one word, and any other punctuation mark is a word. A Chinese
character is a word: Chinese has no spaces between words, and its systems here work on characters."""

_HAN = re.compile("[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_NARROW = re.compile(f"({_HAN.pattern})([,?!:;()]+)")
_WIDE = str.maketrans(",?!:;()", "，？！：；（）")
_CLITICS = frozenset({"n't", "'s", "'m", "'re", "'ve", "'ll", "'d"})
_CLOSING = frozenset(".,!?;:%)]}…。、”』」》")
_OPENING = frozenset("([{$£€#“『「《")
_ELIDING = frozenset({"y", "o", "c", "d", "l", "ma"})  # y'all, o'clock, c'mon, d'oh, l'amour, ma'am
_CLIPPED = frozenset({"em", "cause", "cuz", "til", "till", "bout", "round", "tis", "twas"})  # get 'em
_ABBREVIATED = frozenset({("a", "m"), ("p", "m"), ("e", "g"), ("i", "e"), ("u", "s"), ("u", "k")})


def words(text: str) -> list[str]:
    """The lower-cased words of a text: the unit of perplexity per word and all overlap metrics."""
    return [word for word, _ in SPLIT.pre_tokenize_str(NORMAL_FORM.normalize_str(text))]


def detokenize(tokens: Sequence[str]) -> str:
    """Join words as people write them, with sentence case and a capital I."""
    pieces: list[str] = []
    glue = True  # whether the next word attaches to what is before it
    quoted: set[str] = set()
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else ""
        after = tokens[index + 1] if index + 1 < len(tokens) else ""
        inside = _inside(token, before, after)
        opens = closes = False
        if token in ("'", '"') and not inside:
            pair = token in quoted or token == '"' or (not before.endswith("s") and token in tokens[index + 1 :])
            closes = token in quoted or not (pair or index == 0 or after in _CLIPPED)
            opens = not closes
            if pair:
                quoted ^= {token}
        chinese = _chinese(before, tokens[index - 2] if index > 1 else "") and (_han(token) or token in _OPENING)
        sticks = inside or closes or chinese or token in _CLITICS or token[0] in _CLOSING
        pieces.append(token if glue or sticks else f" {token}")
        glue = inside or opens or token in _OPENING
    text = "".join(pieces)
    # NFKC narrowed the wide punctuation of Chinese in the input; after a Chinese character it is made wide again.
    return sentence_case(_NARROW.sub(lambda match: match[1] + match[2].translate(_WIDE), text))


def _han(token: str) -> bool:
    return bool(_HAN.match(token))


def _chinese(before: str, earlier: str) -> bool:
    """Whether Chinese comes before, or punctuation that ends a piece of Chinese: then no space follows."""
    return _han(before) or (_han(earlier) and bool(before) and not before[-1].isalnum())


def _inside(token: str, before: str, after: str) -> bool:
    """Whether a mark joins its neighbours: well-known, and/or, o'clock, 5.50, 10,000, 3:30, p.m."""
    if token in ("-", "/"):
        return True
    if token == "'":
        return before in _ELIDING
    if token == "." and (before, after) in _ABBREVIATED:
        return True
    digits = {".": len(after), ",": 3, ":": 2}.get(token)
    return digits == len(after) and before.isdigit() and after.isdigit()


def sentence_case(text: str) -> str:
    """A capital at the start of each sentence and for the word "i"."""
    text = re.sub(r"\bi\b(?!\.e)", "I", text)
    return re.sub(r"(^|[.!?]\s+)([\"'(]*)([a-z])", lambda m: m[1] + m[2] + m[3].upper(), text)
