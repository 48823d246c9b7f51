r"""Advanced SubStation Alpha (and SSA): "Dialogue:" lines, with columns named by a "Format:" line.

Titles and signs are positioned with \pos or \move, and shapes are drawn with \p1; neither is speech. Some files
position all their text, speech included, so positioned text is only dropped if it is the exception.
"""

from __future__ import annotations

import re
from dataclasses import replace

from listenwell.data.curation.formats.parsed import RawCue, plain, seconds

_SECTION = re.compile(r"^\s*\[(.+)\]\s*$")
_OVERRIDE = re.compile(r"\{[^{}]*\}")
_DRAWING = re.compile(r"\{[^{}]*\\p[1-9]")
_PLACED = re.compile(r"\{[^{}]*\\(?:pos|move)\s*\(")
_BREAK = re.compile(r"\\[Nn]")
_COLUMNS = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"]


def looks_like(text: str) -> bool:
    return (
        re.search(r"^[^\S\n]*(?:\[Script Info\]|\[Events\]|Dialogue:)", text, re.MULTILINE | re.IGNORECASE) is not None
    )


def parse(text: str) -> list[RawCue]:
    """All "Dialogue:" lines, in file order; drawings, titles and signs have a reason to drop them."""
    cues: list[RawCue] = []
    columns = _COLUMNS
    section = "events"
    for line in text.split("\n"):
        if header := _SECTION.match(line):
            section = header[1].strip().lower()
        elif section == "events" and line.lstrip().lower().startswith("format:"):
            columns = [name.strip().lower() for name in line.split(":", 1)[1].split(",")]
        elif section == "events" and line.lstrip().lower().startswith("dialogue:"):
            cues.append(_cue(line.split(":", 1)[1], columns))
    placed = sum(cue.drop == "positioned text" for cue in cues)
    if 2 * placed > len(cues):
        cues = [replace(cue, drop=None) if cue.drop == "positioned text" else cue for cue in cues]
    return cues


def _cue(line: str, columns: list[str]) -> RawCue:
    values = line.split(",", len(columns) - 1)  # the text is last and may contain commas
    row = dict(zip(columns, values, strict=False))
    text = row.get("text", values[-1])
    drop = "drawing" if _DRAWING.search(text) else "positioned text" if _PLACED.search(text) else None
    words = plain(_BREAK.sub("\n", _OVERRIDE.sub("", text)).replace(r"\h", " "))
    return RawCue(seconds(row.get("start", "")), seconds(row.get("end", "")), words, drop=drop)
