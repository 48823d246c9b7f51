"""Answers with letters resolved to systems: the raw data of every table and export."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from listenwell.labels.taxonomy import EMOTION_ID, polarity
from listenwell.studies.kinds import BOTH_BAD, TIE
from listenwell.studies.layout import letters
from listenwell.studies.records import Design, Item, Study
from listenwell.studies.schema import answers, assignments, raters, slots
from listenwell.studies.spec import HUMAN, StudySpec
from listenwell.studies.store import Store
from listenwell.studies.tie_break import verdict

OUTCOMES = ("win", "loss", TIE, BOTH_BAD)


@dataclass(frozen=True, slots=True)
class Answer:
    """A rater's last answer to an item."""

    item: str
    systems: tuple[str, ...]
    """In the order of the letters."""
    values: Mapping[str, Any]
    """As sent, by letters."""
    seconds: float
    received_at: float

    def by_system(self) -> dict[str, Any]:
        """The values for each system's reply; for a pair, the verdict under the key `verdict`."""
        if "choice" in self.values:
            return {"verdict": verdict(self.values["choice"], self.systems)}
        return {system: self.values[letter] for letter, system in letters(self.systems).items()}


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One rater's work on one task."""

    assignment: str
    rater: str
    """The id given by the researcher."""
    machine: bool
    task: str
    slot: str
    tie_break: bool
    state: str
    started_at: float
    done_at: float | None
    size: int
    """The number of items in the task."""
    answers: tuple[Answer, ...]

    @property
    def minutes(self) -> float | None:
        return None if self.done_at is None else (self.done_at - self.started_at) / 60

    @property
    def is_complete(self) -> bool:
        return len(self.answers) == self.size


@dataclass(frozen=True, slots=True)
class Results:
    """A study with all its answers."""

    study: Study
    design: Design
    records: tuple[TaskRecord, ...]
    raters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Facts about each rater, by the researcher's id, including raters who answered nothing."""

    @property
    def spec(self) -> StudySpec:
        return self.study.spec

    def items(self) -> dict[str, Item]:
        return {item.id: item for item in self.design.items}

    def counted(self, machine: bool = False) -> list[TaskRecord]:
        """One record per slot: from the rater who finished it or, if nobody did, the one who answered the most.

        So no item has more raters than designed, even if some started and left.
        """
        best: dict[str, TaskRecord] = {}
        for record in self.records:
            if record.machine != machine or record.state == "extra" or not record.answers:
                continue
            other = best.get(record.slot)
            if other is None or _worth(record) > _worth(other):
                best[record.slot] = record
        return list(best.values())


def _worth(record: TaskRecord) -> tuple[bool, int, float]:
    return record.state == "done", len(record.answers), -record.started_at


def collect(store: Store, study: Study) -> Results:
    """Read all answers of a study in one transaction."""
    with store.read() as connection:
        known = (
            connection.execute(
                select(raters).where(raters.c.study_id == study.id).order_by(raters.c.created_at, raters.c.id)
            )
            .mappings()
            .all()
        )
        held = (
            connection.execute(
                select(assignments, slots.c.layout)
                .join(slots, assignments.c.slot_id == slots.c.id)
                .where(assignments.c.study_id == study.id)
                .order_by(assignments.c.started_at)
            )
            .mappings()
            .all()
        )
        given = (
            connection.execute(
                select(answers)
                .where(answers.c.study_id == study.id, answers.c.assignment_id.is_not(None))
                .order_by(answers.c.number)
            )
            .mappings()
            .all()
        )
    by_assignment: dict[str, dict[str, Any]] = {}
    for row in given:
        by_assignment.setdefault(row["assignment_id"], {})[row["item_id"]] = row  # the last one counts
    names = {row["id"]: row for row in known}
    design = store.design(study)
    parents = {task.id for task in design.tasks if task.parent is not None}
    records = tuple(_record(row, names[row["rater_id"]], by_assignment.get(row["id"], {}), parents) for row in held)
    about = {
        row["external_id"]: {
            "machine": bool(row["machine"]),
            "joined_at": row["created_at"],
            "completion_code": row["completion_code"],
        }
        for row in known
    }
    return Results(study, design, records, about)


def _record(
    row: Mapping[Any, Any], rater: Mapping[Any, Any], given: Mapping[str, Any], parents: set[str]
) -> TaskRecord:
    layout = json.loads(row["layout"])
    answers = tuple(
        Answer(
            entry["item"],
            tuple(entry["systems"]),
            json.loads(given[entry["item"]]["values"]),
            given[entry["item"]]["seconds"],
            given[entry["item"]]["received_at"],
        )
        for entry in layout
        if entry["item"] in given
    )
    return TaskRecord(
        row["id"],
        rater["external_id"],
        bool(rater["machine"]),
        row["task_id"],
        row["slot_id"],
        row["task_id"] in parents,
        row["state"],
        row["started_at"],
        row["done_at"],
        len(layout),
        answers,
    )


@dataclass(frozen=True, slots=True)
class Judgement:
    """One value for one reply on one scale, or the verdict on a pair."""

    rater: str
    machine: bool
    item: str
    system: str
    """For a pair, both systems, as "first vs second"."""
    scale: str
    value: float | str


def judgements(records: Sequence[TaskRecord], results: Results) -> list[Judgement]:
    """Every judgement in these records, except those of human replies in bonus checks, which are not under test."""
    judgements = []
    items = results.items()
    for record in records:
        for answer in record.answers:
            for system, scale, value in _judged(answer, items[answer.item], results.spec):
                judgements.append(Judgement(record.rater, record.machine, answer.item, system, scale, value))
    return judgements


def _judged(answer: Answer, item: Item, spec: StudySpec) -> list[tuple[str, str, float | str]]:
    said = answer.by_system()
    if spec.kind == "ab":
        first, second = item.systems
        return [(pair_name(first, second), "choice", _outcome(said["verdict"], first))]
    values: list[tuple[str, str, float | str]] = []
    for system, value in said.items():
        if item.bonus and system == HUMAN and HUMAN not in spec.systems:
            continue
        if spec.kind == "likert":
            values += [(system, scale, number) for scale, number in value.items()]
        elif spec.kind == "drag":
            values.append((system, "appropriate", value))
        else:
            values.append((system, "emotion", float(value == item.emotion) if spec.picks_emotion else float(value)))
    return values


def pair_name(first: str, second: str) -> str:
    return f"{first} vs {second}"


def _outcome(said: str, first: str) -> str:
    """From the side of the pair's first system."""
    return said if said in (TIE, BOTH_BAD) else "win" if said == first else "loss"


def polarity_of(item: Item) -> str | None:
    """The polarity of the item's emotion as MIME groups them; None if it is not one of the 32."""
    return polarity(item.emotion) if item.emotion in EMOTION_ID else None
