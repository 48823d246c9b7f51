"""The output of a format's parser, before cues are numbered."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

_TIME = re.compile(r"(?:(\d{1,3})\s*:\s*)?(\d{1,3})\s*:\s*(\d{1,2})(?:\s*[,.:;]\s*(\d{1,6}))?")
_TAG = re.compile(r"</?(?:i|b|u|s|em|strong|font|span|c|v|lang|ruby|rt)\b[^<>]*>|<[\d:.]+>", re.IGNORECASE)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_BRACES = re.compile(r"\{[^{}]*\}")
_SPACES = re.compile(r"[ \t\u00a0\u3000\u200b\ufeff]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200e\u200f\u202a-\u202e]")


@dataclass(frozen=True, slots=True)
class RawCue:
    """A cue as found by a parser, in file order."""

    start: float | None
    end: float | None
    text: str
    speaker: str | None = None
    drop: str | None = None
    """The reason to drop it, if it is not speech."""


def seconds(time: str, digits: int | None = None) -> float | None:
    """Parse "01:02:03,450" as seconds; None if it is not a time. `digits`: 2 if fractions are hundredths, and so on."""
    match = _TIME.fullmatch(time.strip())
    if match is None:
        return None
    hours, minutes, whole, fraction = match.groups()
    value = 3600 * int(hours or 0) + 60 * int(minutes) + int(whole)
    if fraction:
        return value + int(fraction) / 10 ** (digits or len(fraction))
    return float(value)


def plain(text: str) -> str:
    """Remove markup: tags, overrides, entities and control characters; collapse spaces and drop empty lines."""
    if "<" in text:
        text = _TAG.sub("", _BREAK.sub("\n", text))
    if "{" in text:
        text = _BRACES.sub(lambda braces: "" if "\\" in braces[0] else braces[0], text)  # {\\an8}, but not {sighs}
    if "&" in text:
        text = html.unescape(text)
    text = _SPACES.sub(" ", _CONTROL.sub("", text))
    return "\n".join(line for line in map(str.strip, text.split("\n")) if line)
