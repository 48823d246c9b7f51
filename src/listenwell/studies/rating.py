"""Raters, the slots they hold, and their answers. Every method is one transaction.

A slot is held by at most one rater at a time. A rater who is inactive for longer than the lease loses it, and gets it
back on returning unless somebody else has taken it. Answers are stored whatever happened to the slot.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from listenwell.studies import tie_break
from listenwell.studies.layout import letters
from listenwell.studies.practice import ITEM, TASK, practice_letters
from listenwell.studies.records import Layout, Study, new_id, new_token
from listenwell.studies.schema import answers, assignments, raters, slots, tasks
from listenwell.studies.store import Store, lock_study

ACTIVE, DONE, EXPIRED, EXTRA = "active", "done", "expired", "extra"

MAX_ID = 200
"""Maximum length of an id given by a researcher or a browser."""


class UnknownLinkError(LookupError):
    """No rater has this token, or no study has this code."""


class RefusedError(ValueError):
    """An answer or a finished task was refused; the message is for the rater's page."""


@dataclass(frozen=True, slots=True)
class Rater:
    id: str
    external_id: str
    token: str
    machine: bool
    practised: bool
    completion_code: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """A rater's task, with the layout made for them."""

    id: str
    task_id: str
    slot_id: str
    state: str
    layout: Layout
    answered: tuple[str, ...] = ()
    """The items that have an answer."""


@dataclass(frozen=True, slots=True)
class Progress:
    done: int
    """Items answered."""
    total: int
    """Items of the tasks that this rater has had or could still get."""
    tasks_done: int
    has_more: bool
    """Whether there is a free slot for this rater."""


@dataclass(frozen=True, slots=True)
class Given:
    """An answer as a browser sends it."""

    id: str
    item: str
    values: Any
    seconds: float


class Ratings:
    """The actions of raters in one study."""

    def __init__(self, store: Store, study: Study, clock: Callable[[], float] = time.time) -> None:
        self.store, self.study, self.clock = store, study, clock
        self.kind = study.spec.kind_of_study()

    def join(self, external_id: str, machine: bool = False) -> Rater:
        """The rater with this id, created on the first visit; their link never changes."""
        external_id = external_id.strip()
        if not external_id or len(external_id) > MAX_ID:
            raise RefusedError(f"a rater's id has 1 to {MAX_ID} characters")
        own = (raters.c.study_id == self.study.id, raters.c.external_id == external_id)
        with self.store.write() as connection:
            row = {
                "id": new_id(),
                "study_id": self.study.id,
                "external_id": external_id,
                "token": new_token(),
                "machine": int(machine),
                "created_at": self.clock(),
                "practised_at": None,
                "completion_code": new_id(6).replace("-", "x").replace("_", "y").upper(),
            }
            connection.execute(_insert_new(connection, raters).values(row).on_conflict_do_nothing())
            rater = _rater(connection.execute(select(raters).where(*own)).mappings().one())
        if rater.machine != machine:
            raise RefusedError(
                f"{external_id!r} is the id of a {'machine' if rater.machine else 'person'} in this study"
            )
        return rater

    def has_joined(self, external_id: str) -> bool:
        own = (raters.c.study_id == self.study.id, raters.c.external_id == external_id.strip())
        with self.store.read() as connection:
            return connection.execute(select(raters.c.id).where(*own)).first() is not None

    def rater(self, token: str) -> Rater:
        with self.store.read() as connection:
            return self._rater(connection, token)

    def _rater(self, connection: Connection, token: str) -> Rater:
        own = (raters.c.token == token, raters.c.study_id == self.study.id)
        row = connection.execute(select(raters).where(*own)).mappings().first()
        if row is None:
            raise UnknownLinkError("no rater has this link")
        return _rater(row)

    def is_closed(self) -> bool:
        return self.store.study(self.study.name).closed_at is not None

    def current(self, rater: Rater) -> Assignment | None:
        """The rater's current task, or else a free one; None if there is none for them or the study is closed.

        Calling this renews the lease.
        """
        with self.store.write() as connection:
            closed = lock_study(connection, self.study.id)["closed_at"] is not None
            held = self._held(connection, rater)
            if held is None and not closed:
                held = self._claim(connection, rater)
            if held is None:
                return None
            if not closed and not rater.machine:
                self._renew(connection, held["id"])
            return self._assignment(connection, held)

    def _held(self, connection: Connection, rater: Rater) -> Mapping[Any, Any] | None:
        own = and_(assignments.c.rater_id == rater.id, assignments.c.state == ACTIVE)
        row = connection.execute(select(assignments).where(own).order_by(assignments.c.started_at)).mappings().first()
        return None if row is None else dict(row)

    def _claim(self, connection: Connection, rater: Rater) -> Mapping[Any, Any] | None:
        now = self.clock()
        connection.execute(
            assignments.update()
            .where(
                assignments.c.study_id == self.study.id, assignments.c.state == ACTIVE, assignments.c.expires_at < now
            )
            .values(state=EXPIRED)
        )
        if self._is_used_up(connection, rater):
            return None
        for slot in self._free_slots(connection, rater, limit=1):
            earlier = self._earlier(connection, rater, slot["task_id"])
            row = {
                "id": earlier["id"] if earlier else new_id(),
                "study_id": self.study.id,
                "slot_id": slot["id"],
                "task_id": slot["task_id"],
                "rater_id": rater.id,
                "state": ACTIVE,
                "started_at": earlier["started_at"] if earlier else now,
                "expires_at": now + self._lease,
                "done_at": None,
            }
            if earlier:
                connection.execute(assignments.update().where(assignments.c.id == row["id"]).values(row))
            else:
                connection.execute(assignments.insert().values(row))
            return row
        return None

    def _is_used_up(self, connection: Connection, rater: Rater) -> bool:
        most = self.study.spec.max_tasks
        return bool(most) and not rater.machine and self._tasks_done(connection, rater) >= most

    def _free_slots(self, connection: Connection, rater: Rater, limit: int | None = None) -> Sequence[RowMapping]:
        """Free slots: first those where this rater left off, then task by task, so that tasks get completed.

        Within a task, abandoned slots come last, since their rater may still come back. A tie-break goes to someone who
        has not rated the original task.
        """
        taken = select(assignments.c.slot_id).where(
            assignments.c.study_id == self.study.id, assignments.c.state.in_((ACTIVE, DONE))
        )
        mine = select(assignments.c.task_id).where(assignments.c.rater_id == rater.id)
        left_off = select(assignments.c.slot_id).where(
            assignments.c.rater_id == rater.id, assignments.c.state == EXPIRED
        )
        abandoned = select(assignments.c.slot_id).where(
            assignments.c.study_id == self.study.id, assignments.c.state == EXPIRED
        )
        statement = (
            select(slots.c.id, slots.c.task_id, tasks.c.item_ids)
            .join(tasks, slots.c.task_id == tasks.c.id)
            .where(
                slots.c.study_id == self.study.id,
                slots.c.machine == int(rater.machine),
                slots.c.id.not_in(taken),
                slots.c.task_id.not_in(mine) | slots.c.id.in_(left_off),
                tasks.c.parent_id.is_(None) | tasks.c.parent_id.not_in(mine),
            )
            .order_by(slots.c.id.in_(left_off).desc(), tasks.c.position, slots.c.id.in_(abandoned), slots.c.number)
            .limit(limit)
        )
        return connection.execute(statement).mappings().all()

    def _earlier(self, connection: Connection, rater: Rater, task_id: str) -> RowMapping | None:
        own = and_(assignments.c.rater_id == rater.id, assignments.c.task_id == task_id)
        return connection.execute(select(assignments).where(own)).mappings().first()

    @property
    def _lease(self) -> float:
        return self.study.spec.lease_minutes * 60

    def _renew(self, connection: Connection, assignment_id: str) -> None:
        connection.execute(
            assignments.update()
            .where(assignments.c.id == assignment_id, assignments.c.state == ACTIVE)
            .values(expires_at=self.clock() + self._lease)
        )

    def _assignment(self, connection: Connection, row: Mapping[Any, Any]) -> Assignment:
        layout = connection.execute(select(slots.c.layout).where(slots.c.id == row["slot_id"])).scalar_one()
        statement = select(answers.c.item_id).where(answers.c.assignment_id == row["id"]).distinct()
        answered = set(connection.execute(statement).scalars())
        laid_out: Layout = json.loads(layout)
        return Assignment(
            row["id"],
            row["task_id"],
            row["slot_id"],
            row["state"],
            laid_out,
            tuple(entry["item"] for entry in laid_out if entry["item"] in answered),
        )

    def progress(self, rater: Rater) -> Progress:
        with self.store.read() as connection:
            rows = connection.execute(
                select(assignments.c.state, tasks.c.item_ids, assignments.c.slot_id)
                .join(tasks, assignments.c.task_id == tasks.c.id)
                .where(assignments.c.rater_id == rater.id, assignments.c.state != EXPIRED)
            ).all()
            done = connection.execute(
                select(func.count(answers.c.item_id.distinct())).where(
                    answers.c.rater_id == rater.id, answers.c.assignment_id.is_not(None)
                )
            ).scalar_one()
            free = self._free_tasks(connection, rater, had=len(rows))
            tasks_done = sum(row.state in (DONE, EXTRA) for row in rows)
        had = sum(len(json.loads(row.item_ids)) for row in rows)
        return Progress(done, max(done, had + sum(free)), tasks_done, bool(free))

    def _free_tasks(self, connection: Connection, rater: Rater, had: int) -> list[int]:
        """The sizes of the tasks that this rater could still get."""
        sizes = {row["task_id"]: len(json.loads(row["item_ids"])) for row in self._free_slots(connection, rater)}
        most = self.study.spec.max_tasks
        return list(sizes.values())[: max(0, most - had) if most and not rater.machine else None]

    def _tasks_done(self, connection: Connection, rater: Rater) -> int:
        own = and_(assignments.c.rater_id == rater.id, assignments.c.state.in_((DONE, EXTRA)))
        return connection.execute(select(func.count()).select_from(assignments).where(own)).scalar_one()

    def store_answers(self, token: str, given: Sequence[Given]) -> tuple[list[str], dict[str, str]]:
        """Store answers. Returns the ids now stored, including any sent before, and the reasons for refusing others."""
        stored: list[str] = []
        refused: dict[str, str] = {}
        with self.store.write() as connection:
            rater = self._rater(connection, token)
            layouts = self._layouts(connection, rater)
            for answer in given:
                try:
                    self._store(connection, rater, layouts, answer)
                    stored.append(answer.id)
                except RefusedError as problem:
                    refused[answer.id] = str(problem)
            own = set() if rater.machine else {layouts[one.item][0] for one in given if one.item in layouts}
            for assignment_id in own:
                self._renew(connection, assignment_id)
        return stored, refused

    def _layouts(self, connection: Connection, rater: Rater) -> dict[str, tuple[str, list[str]]]:
        """For each item this rater was given, the assignment and the systems behind its letters."""
        rows = connection.execute(
            select(assignments.c.id, slots.c.layout)
            .join(slots, assignments.c.slot_id == slots.c.id)
            .where(assignments.c.rater_id == rater.id)
        ).all()
        return {entry["item"]: (row.id, entry["systems"]) for row in rows for entry in json.loads(row.layout)}

    def _store(
        self, connection: Connection, rater: Rater, layouts: Mapping[str, tuple[str, list[str]]], answer: Given
    ) -> None:
        if not answer.id or len(answer.id) > MAX_ID:
            raise RefusedError(f"an answer's id has 1 to {MAX_ID} characters")
        if answer.item == ITEM:
            assignment_id, shown = None, list(practice_letters(self.kind))
        elif answer.item in layouts:
            assignment_id, systems = layouts[answer.item]
            shown = list(letters(systems))
        else:
            raise RefusedError("this item is not among those that you were given")
        try:
            self.kind.check(answer.values, shown, some_scales=rater.machine)
        except ValueError as problem:
            raise RefusedError(str(problem)) from None
        row = {
            "study_id": self.study.id,
            "rater_id": rater.id,
            "client_id": answer.id,
            "assignment_id": assignment_id,
            "item_id": answer.item,
            "values": json.dumps(answer.values, sort_keys=True),
            "seconds": answer.seconds,
            "received_at": self.clock(),
        }
        new = connection.execute(
            _insert_new(connection, answers).values(row).on_conflict_do_nothing().returning(answers.c.number)
        ).first()
        if new is None:
            self._check_repeated(connection, rater, row)

    def _check_repeated(self, connection: Connection, rater: Rater, row: Mapping[str, Any]) -> None:
        """Accept an answer that was sent twice; refuse a different answer under a used id, which would be lost."""
        own = and_(answers.c.rater_id == rater.id, answers.c.client_id == row["client_id"])
        kept = connection.execute(select(answers.c.item_id, answers.c["values"]).where(own)).one()
        if tuple(kept) != (row["item_id"], row["values"]):
            raise RefusedError("another answer was stored under this id; send this one under an id of its own")

    def finish(self, token: str, task_id: str) -> None:
        """Mark a task as done once all its items have answers. Idempotent."""
        try:
            with self.store.write() as connection:
                lock_study(connection, self.study.id)
                self._finish(connection, self._rater(connection, token), task_id)
        except IntegrityError:  # the slot went to another rater at the same moment
            with self.store.write() as connection:
                lock_study(connection, self.study.id)
                self._finish(connection, self._rater(connection, token), task_id, state=EXTRA)

    def _finish(self, connection: Connection, rater: Rater, task_id: str, state: str = DONE) -> None:
        now = self.clock()
        if task_id == TASK:
            own = and_(raters.c.id == rater.id, raters.c.practised_at.is_(None))
            connection.execute(raters.update().where(own).values(practised_at=now))
            return
        row = self._earlier(connection, rater, task_id)
        if row is None:
            raise RefusedError("this task is not among those that you were given")
        if row["state"] in (DONE, EXTRA):
            return
        assignment = self._assignment(connection, row)
        missing = len(assignment.layout) - len(assignment.answered)
        if missing:
            raise RefusedError(f"{missing} of {len(assignment.layout)} items have no answer yet")
        if row["state"] == EXPIRED and self._is_taken(connection, row):
            state = EXTRA
        connection.execute(assignments.update().where(assignments.c.id == row["id"]).values(state=state, done_at=now))
        if self.study.spec.kind == "ab" and self.study.spec.fourth_rater and not rater.machine and state == DONE:
            tie_break.add_if_needed(connection, self.study, task_id)

    def _is_taken(self, connection: Connection, row: RowMapping) -> bool:
        others = and_(
            assignments.c.slot_id == row["slot_id"],
            assignments.c.id != row["id"],
            assignments.c.state.in_((ACTIVE, DONE)),
        )
        return connection.execute(select(assignments.c.id).where(others)).first() is not None


def _insert_new(connection: Connection, table: Any) -> Any:
    """An insert that can skip rows that already exist."""
    return (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)


def _rater(row: Mapping[Any, Any]) -> Rater:
    return Rater(
        row["id"],
        row["external_id"],
        row["token"],
        bool(row["machine"]),
        row["practised_at"] is not None,
        row["completion_code"],
    )
