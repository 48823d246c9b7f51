"""The result of a study of a system's replies: the scores, and all replies they were computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from listenwell.checkpoint import write_json
from listenwell.data.dialogue import Dialogue, Example, without_annotations
from listenwell.data.sources.jsonl import write_lines
from listenwell.metrics import Score
from listenwell.outputs import Owner, write_folder


@dataclass
class StudyResult:
    """The scores, a record for each reply, and a description of the study."""

    scores: list[Score]
    records: list[dict[str, Any]]
    about: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"about": self.about, "scores": [score.to_json() for score in self.scores]}


def contexts_of(items: Sequence[Example]) -> list[Dialogue]:
    """The contexts alone, without the annotations of the corpus."""
    if not items:
        raise ValueError("there is nothing to reply to: no reply with a context in the data")
    return [Dialogue(item.id, without_annotations(item).context) for item in items]


def write(result: StudyResult, folder: Path, study: Owner) -> None:
    """Write scores.json and replies.jsonl: the scores, and a record for each reply."""

    def fill(place: Path) -> None:
        write_lines(result.records, place / "replies.jsonl")
        write_json(place / "scores.json", {"command": study.command, **result.to_json()})

    write_folder(folder, fill, study)
