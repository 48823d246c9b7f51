"""Cue, Subtitle and CueTurn: the data types for subtitle files, and how one file becomes dialogues.

    subtitle = read_cues(path)                          # reading.py: any format, any encoding, or SubtitleError
    for language, cues in split_by_script(subtitle).items():      # bilingual.py: {"en": […], "zh": […]}
        parts = split_dashes(cues)                      # turns.py: sentences; "- Hi. - Hello." has two speakers
        scores = same_speaker(parts, language)          # same_speaker.py: len(parts) - 1 scores, > 0 means the same
        turns = turns_from_cues(parts, scores)          # turns.py: consecutive sentences of one speaker
        dialogues = cut_dialogues(turns)                # turns.py: split at gaps of more than 5 s

Each step keeps the file and the cue numbers, so that every turn can be traced to its source.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


class SubtitleError(ValueError):
    """A file cannot be read as subtitles; the message names the file and the problem."""

    def __init__(self, file: str, reason: str, detail: str = "") -> None:
        super().__init__(f"{file}: {reason}" + (f" ({detail})" if detail else ""))
        self.file, self.reason, self.detail = file, reason, detail

    def __reduce__(self) -> tuple[Any, ...]:
        # For pickling between processes: the default would call the class with only the message.
        return type(self), (self.file, self.reason, self.detail)


@dataclass(frozen=True, slots=True)
class Cue:
    """One piece of text on the screen. Markup is removed; lines are separated by a newline."""

    file: str
    number: int
    """The position in the file, from 1. The numbers given in the file may repeat or jump, so they are not used."""
    start: float | None
    """Seconds; None if the file has no timestamp or an invalid one."""
    end: float | None
    text: str
    part: int = 0
    """The index of the sentence in the cue, after splitting into sentences."""
    dash: bool = False
    """Whether the text began with a dash, which marks a new speaker."""
    speaker: str | None = None
    """The speaker's name, if the file gives it: a <v Name> tag, or "NAME:" before the text."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Cue:
        return cls(**record)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A cue that is not speech, and why: "drawing", "positioned text", "no text"."""

    reason: str
    cue: Cue


@dataclass(frozen=True, slots=True)
class Subtitle:
    """One file: its cues in order of time, and the dropped ones. Cues in the file = cues + dropped."""

    file: str
    format: str
    """ "srt", "vtt", "ass" or "opus"."""
    encoding: str
    """The name of the codec, such as "utf-8" or "gb18030"."""
    language: str
    """The languages of its cues, joined with a plus: "en", "zh", "en+zh"; "und" if none is recognized."""
    cues: list[Cue]
    dropped: list[Dropped] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CueTurn:
    """A turn of one speaker: the text of consecutive cues, joined by spaces."""

    file: str
    cues: tuple[int, ...]
    """The numbers of its cues, in order and without duplicates."""
    start: float | None
    end: float | None
    text: str
    speaker: str | None = None
    """The speaker's name, if the file gives it."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "cues": list(self.cues)}
