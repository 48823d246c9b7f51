"""Output that every terminal can show: symbols missing from its encoding are replaced with plain ones."""

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
"""ASCII replacements for symbols."""

HANDLER = "listenwell.plain"
BOXES = range(0x2500, 0x2580)
"""Lines and corners of tables and bars."""


def plain(character: str) -> str:
    """A character in ASCII: its plain replacement, its letter without the accent, or else a question mark."""
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
    """Make printing never fail on a symbol that the terminal lacks, and read ASCII input as UTF-8."""
    codecs.register_error(HANDLER, _replace)
    for stream in (sys.stdout, sys.stderr):
        if not _is_utf8(stream) and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)
    if _encoding(sys.stdin) == "ascii" and hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8")  # a superset of ASCII


def shows_all() -> bool:
    """Whether standard output can show any character. If not, JSON is written with escapes, without loss."""
    return _is_utf8(sys.stdout)


def _is_utf8(stream: Any) -> bool:
    return _encoding(stream) == "utf-8"


def _encoding(stream: Any) -> str:
    """The normalized name of a stream's encoding; "" if it has none."""
    try:
        return codecs.lookup(getattr(stream, "encoding", None) or "").name
    except LookupError:
        return ""
