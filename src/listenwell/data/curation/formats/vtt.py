"""WebVTT: blocks separated by empty lines, of which those with an arrow are cues."""

from __future__ import annotations

import re

from listenwell.data.curation.formats.parsed import RawCue, plain, seconds

_ARROW = re.compile(r"^[^\S\n]*([\d:.,]+)[^\S\n]+-->[^\S\n]+([\d:.,]+)(?:[^\S\n].*)?$", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?[ \t]+([^>]+)>")


def looks_like(text: str) -> bool:
    return re.match(r"WEBVTT(?:[ \t\n]|\Z)", text) is not None


def parse(text: str) -> list[RawCue]:
    """All cues, without notes, styles and regions; a <v Name> tag becomes the speaker."""
    cues: list[RawCue] = []
    for block in re.split(r"\n[^\S\n]*\n\s*", text):
        arrow = _ARROW.search(block)
        if arrow is None:
            continue
        body = block[arrow.end() :]
        start, end = seconds(arrow[1]), seconds(arrow[2])
        voices = list(_VOICE.finditer(body))
        if len(voices) < 2:
            cues.append(RawCue(start, end, plain(body), voices[0][1].strip() if voices else None))
        else:
            cues.extend(_by_voice(body, voices, start, end))
    return cues


def _by_voice(body: str, voices: list[re.Match[str]], start: float | None, end: float | None) -> list[RawCue]:
    """Splits a cue with several people into one cue for each, with the same times."""
    ends = [voice.start() for voice in voices[1:]] + [len(body)]
    return [
        RawCue(start, end, plain(body[voice.end() : stop]), voice[1].strip())
        for voice, stop in zip(voices, ends, strict=True)
    ]
