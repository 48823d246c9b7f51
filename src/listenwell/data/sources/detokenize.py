"""Restores texts that were published as tokens separated by spaces."""

from __future__ import annotations

import re

_QUOTES = "'’‘`´′"
_DOTS = re.compile(r"\. \.(?: \.)+|\. \.\.(?!\.)")
_INITIALS = re.compile(r"\b([A-Za-z]) \. ?(?=[A-Za-z] \.)")
_CLOCK = re.compile(r"(?<=\d) : (?=\d\d)")
_MONEY = re.compile(r"([$£€¥]) (?=\d)")
_BEFORE = re.compile(r" +(?=[,?!;:%)\]}”。，？！…])|(?<!\.) +(?=\.)")
_AFTER = re.compile(r"(?<=[(\[{“]) +")
# "don 't" and "don ’ t", "DON 'T"; and words recognizable by their first half: "y 'all", but not "them 'all …".
_CLITIC = re.compile(
    rf"(?<=\w) ?(?P<mark>[{_QUOTES}]) ?(?P<end>(?:s|t|m|re|ll|[vV]e|d)\b)"
    rf"|(?<=\w) (?P<loud>[{_QUOTES}](?:S|T|M|RE|LL|VE|D|II|Il|ii)\b)"
    rf"|\b(?P<head>[oO]|[mM]a|MA|[yY]|[cC]|[gG]) ?(?P<joint>[{_QUOTES}]) ?(?P<tail>(?i:clock|am|all|mon|day)\b)"
    rf"|\bO ?(?P<irish>[{_QUOTES}]) ?(?=[A-Z][a-z])"
)
# Words that begin with an apostrophe, and years: "get 'em", "in the '80s".
_ELIDED = re.compile(r"(?:em|cause|till?|bout|round|n|tis|twas|kay|\d\ds?)$", re.IGNORECASE)


def detokenise(text: str) -> str:
    """Undo tokenization of English: no space before a comma, "don't" for "don 't" and for "don ’ t"."""
    text = " ".join(text.split())
    if " " not in text:
        return text
    if any(quote in text for quote in _QUOTES):
        text = _CLITIC.sub(_attach, text)
        text = _lone_apostrophes(text)
    if '"' in text:
        text = _double_quotes(text)
    if " ." in text:
        text = _DOTS.sub("...", text)
        text = _INITIALS.sub(r"\1.", text)
    text = _CLOCK.sub(":", text)
    text = _MONEY.sub(r"\1", text)
    return _AFTER.sub("", _BEFORE.sub("", text))


def _attach(match: re.Match[str]) -> str:
    if match["irish"]:
        return "O" + match["irish"]
    if match["head"]:
        return match["head"] + match["joint"] + match["tail"]
    if match["loud"]:
        return match["loud"]
    # DailyDialog has "I ’ Ve" throughout, capitalized by a spell checker.
    return match["mark"] + ("ve" if match["end"] == "Ve" else match["end"])


def _lone_apostrophes(text: str) -> str:
    """Resolves an apostrophe between spaces: "cook ' em", "runnin ' away", or a pair of quotes."""
    words = text.split(" ")
    lone = [index for index, word in enumerate(words) if word in ("'", "’", "‘")]
    if not lone:
        return text
    left: set[int] = set()  # those that attach to the word before them
    right: set[int] = set()
    is_open = False
    for order, index in enumerate(lone):
        before = words[index - 1] if index else ""
        after = words[index + 1] if index + 1 < len(words) else ""
        coming = len(lone) - order - 1
        if _ELIDED.match(after):
            right.add(index)
        elif is_open:
            left.add(index)
            is_open = False
        elif before.endswith("in") or before == "n" or (before.endswith("s") and coming % 2 == 0):
            left.add(index)  # "the parents ' room"; if another one follows, it probably opens a quote
        elif coming:
            right.add(index)
            is_open = True
        # else it is ambiguous and stays as it is
    return _glue(words, left, right)


def _double_quotes(text: str) -> str:
    """Attaches double quotes if they come in pairs; otherwise it is unclear which side they belong to."""
    words = text.split(" ")
    marks = [index for index, word in enumerate(words) if word == '"']
    if not marks or len(marks) % 2 or text.count('"') != len(marks):
        return text
    return _glue(words, set(marks[1::2]), set(marks[0::2]))


def _glue(words: list[str], left: set[int], right: set[int]) -> str:
    pieces: list[str] = []
    for index, word in enumerate(words):
        if index and index not in left and index - 1 not in right:
            pieces.append(" ")
        pieces.append(word)
    return "".join(pieces)


def join_characters(text: str) -> str:
    """Remove the spaces between Chinese characters. Spaces between whole Latin words are kept.

    If Latin letters were separated by spaces too, their words run together: "b a d c a l l" gives "badcall".
    """
    pieces: list[str] = []
    before = ""
    for token in text.split():
        if before and _is_latin(before[-1]) and _is_latin(token[0]) and (len(before) > 1 or len(token) > 1):
            pieces.append(" ")
        pieces.append(token)
        before = token
    return "".join(pieces)


def _is_latin(char: str) -> bool:
    return char.isascii() and char.isalnum()
