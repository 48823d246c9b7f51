"""Normalizes messages for the rules: one spelling for each word, however it was typed.

English becomes lower-case words with single spaces, with contractions written out, typos and disguises corrected ("im",
"k1ll", "s u i c i d e", "suicde") and filler words removed ("really", "just"). " . " ends a sentence, " , " is any
smaller break. Chinese loses its spaces; traditional characters and net spellings take the usual form; 。 and ， remain.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from listenwell.systems.safety.once import once

# Laughter distinguishes a joke from despair, so it is kept, as one word.
LAUGHTER = re.compile(r"[😂🤣😆😹]+|\b(?:l+o+l+|lmf?ao+|rofl|(?:ha|he){2,}h?|jk|xd)\b")
MARKS = re.compile(r"[a-z0-9]+(?:[*!|$@]+[a-z0-9]+)*|[.!?;\n…。！？；]+|[,:()—–/，、：-]+")
APOSTROPHES = str.maketrans("’‘`´ʼ′", "''''''")
LEET = str.maketrans("1!|3450$@7", "iiieasosat")
CLITICS = (
    (re.compile(r"\bcan't\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"'d\b"), " would"),
    (re.compile(r"\b(it|that|what|there|he|she|who|everyone|someone|nobody)'s\b"), r"\1 is"),
    (re.compile(r"'s\b"), " s"),
)


def plain(text: str) -> str:
    """Returns lower case without accents, full-width forms, invisible characters or variants of the apostrophe."""
    text = unicodedata.normalize("NFKC", text.translate(APOSTROPHES)).casefold()
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) not in ("Cf", "Mn"))


class English:
    """Normalizes by a table of spellings: `whole` words and phrases, words `hidden` by digits and stars, `slips`."""

    def __init__(self, spelling: Mapping[str, Any]) -> None:
        self.whole: dict[str, str] = {
            spelled: word for word, many in spelling["whole"].items() for spelled in str(many).split("|")
        }
        self.hidden = frozenset(spelling["hidden"].split())
        self.slips = tuple(spelling["slips"].split())
        self.true = frozenset(spelling["no slips"].split()) | self.hidden | frozenset(self.slips)
        self.phrases = [(re.compile(rf"\b(?:{pattern})\b"), word) for word, pattern in spelling["phrases"].items()]
        self.fillers = re.compile(rf" (?:{'|'.join(spelling['fillers'].split())})(?= )")

    @once
    def __call__(self, text: str) -> str:
        text = LAUGHTER.sub(" haha ", plain(text))
        text = re.sub(
            r"(?<![a-z'])(?:[a-z][ ._*-]){2,}[a-z](?![a-z'])|[a-z]+[._][a-z]+", self._joined, text
        )  # s u i.cide
        text = re.sub(r"(?<=[a-z0-9])-(?=[a-z0-9])", " ", text)
        for clitic, words in CLITICS:
            text = clitic.sub(words, text)
        tokens = MARKS.findall(text.replace("'", ""))
        text = f" {' '.join(map(self._word, tokens))} "
        for pattern, words in self.phrases:
            text = pattern.sub(words, text)
        return " ".join(self.fillers.sub("", text).split())

    def _joined(self, letters: re.Match[str]) -> str:
        word = re.sub(r"[ ._*-]", "", letters[0])
        return word if word in self.true else letters[0]

    def _word(self, token: str) -> str:
        if not token[0].isalnum():
            return "," if token[0] in ",:()—–/，、：-" else "."
        if token in self.whole:
            return self.whole[token]
        if not token.isalpha() and not token.isdigit():
            token = self._undisguised(token)
        if len(token) > 3 and re.search(r"(.)\1\1", token):  # dieeee
            once, twice = (re.sub(r"(.)\1{2,}", letters, token) for letters in (r"\1", r"\1\1"))
            token = twice if twice in self.true else once
        if len(token) > 4 and token not in self.true:
            for word in self.slips:
                if token[0] == word[0] and abs(len(token) - len(word)) < 2 and _one_slip(token, word):
                    return word
        return self.whole.get(token, token)

    def _undisguised(self, token: str) -> str:
        read = token.translate(LEET)
        if "*" in token:  # k*ll
            stars = re.compile(re.escape(read).replace(r"\*", "[a-z]"))
            return next(
                (word for word in sorted(self.hidden) if stars.fullmatch(word)), "".join(re.findall("[a-z]", read))
            )
        return read if read in self.true else re.sub("[^a-z0-9]", " . ", token)


def _one_slip(a: str, b: str) -> bool:
    """Whether one inserted, deleted or wrong letter, or two swapped ones, turn a into b."""
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rest_a, rest_b = a[start:], b[start:]
    if len(a) != len(b):
        return rest_a[1:] == rest_b if len(a) > len(b) else rest_a == rest_b[1:]
    return rest_a[1:] == rest_b[1:] or (rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:])


class Chinese:
    """Normalizes by a table of spellings: `traditional` with `simplified`, `net` forms, `fillers`."""

    def __init__(self, spelling: Mapping[str, Any]) -> None:
        self.simplified = str.maketrans(spelling["traditional"], spelling["simplified"])
        self.net = [(re.compile(pattern), word) for word, pattern in spelling["net"].items()]
        self.fillers = re.compile("|".join(spelling["fillers"].split()))

    @once
    def __call__(self, text: str) -> str:
        text = LAUGHTER.sub("哈哈", plain(text)).translate(self.simplified)
        text = re.sub(r"\[[^\[\]]{1,6}\]", "，", text)  # Weibo's emoticons
        text = re.sub(r"(?<=[\u4e00-\u9fff])[*·.\-_ ]+(?=[\u4e00-\u9fff])", " ", text)
        if len(re.findall("[\u4e00-\u9fff] ", text)) * 3 >= len(text):  # each character apart
            text = text.replace(" ", "")
        for pattern, word in self.net:
            text = pattern.sub(word, text)
        text = re.sub(r"[。.!?！？；;\n…~～]+", "。", text)
        text = re.sub(r"[,，、:：()（）—\-\"'“”‘’《》【】\s]+", "，", text)
        text = re.sub(r"，*。，*", "。", text)
        return self.fillers.sub("", text)
