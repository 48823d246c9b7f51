"""Output that every terminal can show: where its encoding lacks a symbol, a plain one is written instead."""

from __future__ import annotations

import codecs
import sys
import unicodedata
from typing import Any

PLAIN = {
    "…": "...",
    "·": "-",
    "•": "-",
    "—": "-",
    "–": "-",
    "−": "-",  # the minus sign
    "×": "x",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "≈": "~",
    "±": "+-",
    "√": "sqrt",
    "→": "->",
    "←": "<-",
    "↑": "^",
    "↓": "v",
    "▶": ">",
    "█": "#",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "«": '"',
    "»": '"',
    "✓": "+",
    "✗": "x",
}
"""What stands for a symbol where only ASCII can be shown."""

HANDLER = "listenwell.plain"
BOXES = range(0x2500, 0x2580)
"""Lines and corners of tables and bars."""


def plain(character: str) -> str:
    """A character in ASCII: its plain stand-in, its letter without the accent, else a question mark."""
    if character in PLAIN:
        return PLAIN[character]
    if ord(character) in BOXES:
        return "|" if character in "│┃║╎╏┆┇┊┋" else "-" if character in "─━═╌╍┄┅┈┉╸╺" else "+"
    letters = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode("ascii")
    return letters or "?"


def _replace(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    return "".join(map(plain, problem.object[problem.start : problem.end])), problem.end


def make_streams_robust() -> None:
    """What is printed never fails for a symbol that the terminal lacks; what is read in ASCII is read as UTF-8."""
    codecs.register_error(HANDLER, _replace)
    for stream in (sys.stdout, sys.stderr):
        if not _is_utf8(stream) and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)
    if _encoding(sys.stdin) == "ascii" and hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8")  # of which ASCII is a part


def shows_all() -> bool:
    """Whether standard output can show any character: else JSON is written with escapes, which lose nothing."""
    return _is_utf8(sys.stdout)


def _is_utf8(stream: Any) -> bool:
    return _encoding(stream) == "utf-8"


def _encoding(stream: Any) -> str:
    """The common name of a stream's encoding; "" where it has none."""
    try:
        return codecs.lookup(getattr(stream, "encoding", None) or "").name
    except LookupError:
        return ""
