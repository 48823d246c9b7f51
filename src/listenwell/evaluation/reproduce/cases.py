"""The papers' case studies: a file of contexts (short quotations, as printed), answered by the systems of a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import yaml

from listenwell.checkpoint import write_json
from listenwell.configuration import instantiate
from listenwell.data.dialogue import Dialogue, Turn
from listenwell.evaluation.reproduce.plan import Plan, Scoring
from listenwell.systems.reply import Reply

FILE = "cases.json"


@dataclass(frozen=True)
class Case:
    """A context shown in a paper."""

    paper: str
    place: str
    """Where, such as "table 6"."""
    context: list[str]
    """The turns; the last one is to be answered."""
    language: str = "en"
    emotion: str = ""
    """The emotion given in the paper; never passed to a system."""

    @property
    def key(self) -> str:
        return json.dumps(self.context, ensure_ascii=False)

    @property
    def dialogue(self) -> Dialogue:
        """The context as a dialogue: roles alternate, and the last turn is the speaker's."""
        last = len(self.context) - 1
        turns = [
            Turn("speaker" if (last - place) % 2 == 0 else "listener", text) for place, text in enumerate(self.context)
        ]
        return Dialogue(f"{self.paper} {self.place}", tuple(turns), language=self.language)


@dataclass(frozen=True, slots=True)
class Answer:
    row: str
    reply: str
    recognised: str
    """The predicted emotion and the chosen label, if any."""


@dataclass(frozen=True, slots=True)
class AnsweredCase:
    title: str
    context: Sequence[str]
    answers: Sequence[Answer]


class Talks(Protocol):
    """The part of a system's interface that cases need."""

    languages: tuple[str, ...]

    def replies(self, talks: Sequence[Any]) -> list[Reply]: ...


@cache
def cases(paper: str | None = None) -> tuple[Case, ...]:
    """The cases of a paper, or all cases."""
    text = resources.files("listenwell.evaluation.reproduce").joinpath("cases.yaml").read_text(encoding="utf-8")
    every = [instantiate(Case, entry, f"cases.yaml: {number}") for number, entry in enumerate(yaml.safe_load(text), 1)]
    return tuple(one for one in every if paper in (None, one.paper))


def answer_cases(paper: str, plan: Plan, root: Path, load: Callable[[Scoring], Talks]) -> None:
    """Let each scored system answer the cases in its languages; stored answers are reused."""
    kept = _kept(root)
    for system, scoring in _first_of_each(plan).items():
        answers = kept.setdefault(system, {})
        if all(case.key in answers for case in cases(paper)):
            continue
        talks = load(scoring)
        missing = [case for case in cases(paper) if case.key not in answers and case.language in talks.languages]
        for case, reply in zip(missing, talks.replies([case.dialogue for case in missing]), strict=True):
            known = [word for word in (reply.emotion, reply.label) if word]
            answers[case.key] = {"reply": reply.text, "recognised": ", ".join(known)}
        for case in cases(paper):
            answers.setdefault(case.key, None)  # in another language: not asked again
        root.mkdir(parents=True, exist_ok=True)
        write_json(root / FILE, kept)


def answered_cases(paper: str, plan: Plan, root: Path) -> list[AnsweredCase]:
    """The cases of a paper with their stored answers."""
    kept = _kept(root)
    rows = {scoring.row: kept.get(system, {}) for system, scoring in _first_of_each(plan).items()}
    shown = []
    for case in cases(paper):
        answers = [Answer(row, **known) for row, by_case in rows.items() if (known := by_case.get(case.key))]
        title = f"{case.place[0].upper()}{case.place[1:]}" + (f", {case.emotion}" if case.emotion else "")
        shown.append(AnsweredCase(title, case.context, answers))
    return shown


def _first_of_each(plan: Plan) -> dict[str, Scoring]:
    """One finished scoring per system, with the paper's decoding."""
    found: dict[str, Scoring] = {}
    for several in plan.of_row.values():
        for one in several[:1]:
            if one.done:
                found.setdefault(f"{one.system} {' '.join(one.decoding)}".strip(), one)
    return found


def _kept(root: Path) -> dict[str, dict[str, Any]]:
    try:
        return json.loads((root / FILE).read_text(encoding="utf-8"))
    except OSError:
        return {}
