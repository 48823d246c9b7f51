"""Splits the text of a cue into sentences, the smallest units that have one speaker."""

from __future__ import annotations

import re

_CLOSE = r"[\"'”’)\]]*"
_LATIN_END = re.compile(
    rf"(?<!\.)\.(?!\.){_CLOSE}(?:\s+(?=\S)|(?=[A-Z][a-z' ]))"  # "Hi. It's me", and the sloppy "Hi.It's me"
    rf"|(?<![.…?!])[.…]*[?!][.?!…]*{_CLOSE}(?:\s+(?=\S)|(?=[A-Z]))"
    rf"|(?<![.…])(?:\.\.+|…){_CLOSE}\s*(?=[A-Z\"“])"  # "Well... no" goes on; "Well... No" may not
)
_CHINESE_END = re.compile(r"[。？！?!…]+[\"”’」』）)]*\s*(?=\S)")
_ABBREVIATED = re.compile(r"(?:^|[\s(\"'-])(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|Prof|Capt|Lt|Sgt|Gen|Col|vs|No|[A-Z])\.$")
_HAN = re.compile(r"[\u3400-\u9fff]")


def sentences(text: str) -> list[str]:
    """Split into sentences, at least one; nothing but whitespace is lost."""
    pattern = _CHINESE_END if _HAN.search(text) else _LATIN_END
    pieces: list[str] = []
    begin = 0
    for end in pattern.finditer(text):
        # Only the last word can be an abbreviation, so there is no need to search the whole text each time.
        if not _ABBREVIATED.search(text[max(begin, end.end() - 12) : end.end()].rstrip()):
            if piece := text[begin : end.end()].strip():
                pieces.append(piece)
            begin = end.end()
    if rest := text[begin:].strip():
        pieces.append(rest)
    return pieces or [text]
