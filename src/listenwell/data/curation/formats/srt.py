"""SubRip: a number, a line with two times, the text, an empty line. Real files break every one of these rules.

So only the lines with an arrow matter: the text of a cue is everything between one of them and the next, without the
next one's number. Times may have any separator and any number of digits. Some editors write hundredths of a second as
if they were thousandths ("00:00:02,099" for 2.99 s): a file in which no fraction reaches 100 is read this way.
"""

from __future__ import annotations

import re

from listenwell.data.curation.formats.parsed import RawCue, plain, seconds

_TIME = r"[^\S\n]*(\d[\d:;,. ]{2,24}?)[^\S\n]*"
_ARROW = re.compile(rf"^{_TIME}-+>{_TIME}(?:[^\S\n]\S.*)?$", re.MULTILINE)
_ANY_ARROW = re.compile(r"^.*-->.*$", re.MULTILINE)
_NUMBER = re.compile(r"(?:^|\n)[^\S\n]*\d+[^\S\n]*\n*\Z")
_FRACTION = re.compile(r"[,.](\d+)\s*\Z")

MIN_TIMES = 20
"""Minimum number of fractions, all below 100, for thousandths to be read as hundredths."""


def looks_like(text: str) -> bool:
    return _ARROW.search(text) is not None


def parse(text: str) -> list[RawCue]:
    """All cues, in file order. A time that cannot be read is None."""
    arrows = list(_ARROW.finditer(text))
    lines = sorted([*arrows, *_unreadable(text, arrows)], key=lambda match: match.start())
    digits = _digits(arrows)
    cues = []
    for index, line in enumerate(lines):
        last = index + 1 == len(lines)
        body = text[line.end() : len(text) if last else lines[index + 1].start()]
        if not last:
            body = _NUMBER.sub("", body)
        times = [seconds(time, digits) for time in line.groups()] if line.re is _ARROW else [None, None]
        cues.append(RawCue(times[0], times[1], plain(body)))
    return cues


def _unreadable(text: str, arrows: list[re.Match[str]]) -> list[re.Match[str]]:
    """Lines with an arrow whose times are damaged: they still separate two cues."""
    known = {match.start() for match in arrows}
    return [match for match in _ANY_ARROW.finditer(text) if match.start() not in known]


def _digits(arrows: list[re.Match[str]]) -> int | None:
    fractions = [digits[1] for arrow in arrows for time in arrow.groups() if (digits := _FRACTION.search(time))]
    if len(fractions) >= MIN_TIMES and all(len(part) == 3 and part[0] == "0" for part in fractions):
        return 2
    return None
