"""Cue, Subtitle and CueTurn: what subtitle files are read into, and how one file becomes dialogues.

    subtitle = read_cues(path)                          # reading.py: any format, any encoding, or SubtitleError
    for language, cues in split_by_script(subtitle).items():      # bilingual.py: {"en": […], "zh": […]}
        parts = split_dashes(cues)                      # turns.py: sentences; "- Hi. - Hello." is said by two people
        scores = same_speaker(parts, language)          # same_speaker.py: len(parts) - 1 scores, > 0 is "the same"
        turns = turns_from_cues(parts, scores)          # turns.py: consecutive sentences of one speaker
        dialogues = cut_dialogues(turns)                # turns.py: a gap of more than 5 s cuts

Each step keeps the file and the cue numbers, so that every turn leads back to where it stands.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


class SubtitleError(ValueError):
    """A file that cannot be read as subtitles: says which file, and what is wrong with it."""

    def __init__(self, file: str, reason: str, detail: str = "") -> None:
        super().__init__(f"{file}: {reason}" + (f" ({detail})" if detail else ""))
        self.file, self.reason, self.detail = file, reason, detail

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with the message alone, in the process that the error is sent to.
        return type(self), (self.file, self.reason, self.detail)


@dataclass(frozen=True, slots=True)
class Cue:
    """One piece of text on the screen. Markup is removed; lines are separated by a newline."""

    file: str
    number: int
    """Its position in the file, from 1. The numbers written in a file may repeat or jump, so they are not used."""
    start: float | None
    """Seconds; None where the file has no timestamp or an impossible one."""
    end: float | None
    text: str
    part: int = 0
    """Which sentence of the cue, once it is cut into sentences."""
    dash: bool = False
    """Whether a dash stood in front of the text: somebody else begins to speak."""
    speaker: str | None = None
    """Who speaks, where the file says so: a <v Name> tag, or "NAME:" in front of the text."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Cue:
        return cls(**record)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A cue that is no speech, and why: "drawing", "positioned text", "no text"."""

    reason: str
    cue: Cue


@dataclass(frozen=True, slots=True)
class Subtitle:
    """One file: its cues in the order of time, and what was left out. Cues in the file = cues + dropped."""

    file: str
    format: str
    """ "srt", "vtt", "ass" or "opus"."""
    encoding: str
    """The name of the codec that decoded it, such as "utf-8" or "gb18030"."""
    language: str
    """The languages of its cues, joined with a plus: "en", "zh", "en+zh"; "und" where none is recognised."""
    cues: list[Cue]
    dropped: list[Dropped] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CueTurn:
    """What one speaker says in one go: the text of consecutive cues, joined by spaces."""

    file: str
    cues: tuple[int, ...]
    """The numbers of the cues it is made of, in order, each once."""
    start: float | None
    end: float | None
    text: str
    speaker: str | None = None
    """The name, where the file gives one."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "cues": list(self.cues)}
