"""A fourth rater where three disagree (MIME § 4.3): items without a majority go into a new tie-break task."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from sqlalchemy import Connection, func, select

from listenwell.studies.kinds import BOTH_BAD, LEFT, RIGHT, TIE
from listenwell.studies.layout import balanced_orders
from listenwell.studies.records import Study, Task, new_id
from listenwell.studies.schema import answers, assignments, items, slots, tasks
from listenwell.studies.store import add_task


def verdict(choice: str, systems: Sequence[str]) -> str:
    """Translate a rater's choice to the name of a system, tie or both-bad."""
    return {LEFT: systems[0], RIGHT: systems[1]}.get(choice, choice)


def majority(verdicts: Iterable[str]) -> str | None:
    """The verdict of the most raters; None if no verdict leads.

    both-bad counts as a tie, since neither reply is better. If ties win, the result is both-bad when more of these
    raters chose both-bad than tie.
    """
    said = Counter(verdicts)
    votes = Counter({name: number for name, number in said.items() if name not in (TIE, BOTH_BAD)})
    votes[TIE] = said[TIE] + said[BOTH_BAD]
    (best, most), *others = votes.most_common()
    if not most or (others and others[0][1] == most):
        return None
    return BOTH_BAD if best == TIE and said[BOTH_BAD] > said[TIE] else best


def add_if_needed(connection: Connection, study: Study, task_id: str) -> None:
    """Once the last rater of a task is done, add a task with one slot for the items on which no two raters agree."""
    task = connection.execute(select(tasks).where(tasks.c.id == task_id)).mappings().one()
    if task["parent_id"] is not None:
        return
    places = connection.execute(
        select(func.count()).select_from(slots).where(slots.c.task_id == task_id, slots.c.machine == 0)
    ).scalar_one()
    done = _verdicts(connection, task_id)
    if len(done) < max(places, 3):
        return
    open_items = [
        item
        for item in json.loads(task["item_ids"])
        if len({TIE if one[item] == BOTH_BAD else one[item] for one in done}) == len(done)
    ]
    exists = connection.execute(select(tasks.c.id).where(tasks.c.parent_id == task_id)).first()
    if open_items and not exists:
        _add(connection, study, task_id, open_items)


def _verdicts(connection: Connection, task_id: str) -> list[dict[str, str]]:
    """The verdicts on each item, for each rater who has finished the task."""
    rows = connection.execute(
        select(assignments.c.id, slots.c.layout)
        .join(slots, assignments.c.slot_id == slots.c.id)
        .where(assignments.c.task_id == task_id, assignments.c.state == "done", slots.c.machine == 0)
    ).all()
    done = []
    for row in rows:
        systems = {entry["item"]: entry["systems"] for entry in json.loads(row.layout)}
        said = connection.execute(
            select(answers.c.item_id, answers.c["values"])
            .where(answers.c.assignment_id == row.id)
            .order_by(answers.c.number)  # the last answer to an item counts
        ).all()
        done.append({one.item_id: verdict(json.loads(one[1])["choice"], systems[one.item_id]) for one in said})
    return done


def _add(connection: Connection, study: Study, parent: str, item_ids: list[str]) -> None:
    position = connection.execute(select(func.max(tasks.c.position)).where(tasks.c.study_id == study.id)).scalar_one()
    # Balance the sides within this task: each system should be on the left about as often as on the right.
    first_left: Counter[str] = Counter()
    layout: list[dict[str, Any]] = []
    random = Random(f"{study.spec.seed} {position}")
    shown = shown_systems(connection, study)
    for item in item_ids:
        order = next(balanced_orders(sorted(shown[item]), random))
        if first_left[order[0]] > first_left[order[1]]:
            order.reverse()
        first_left[order[0]] += 1
        layout.append({"item": item, "systems": order})
    add_task(connection, study.id, position + 1, Task(new_id(), tuple(item_ids), (layout,), parent))


def shown_systems(connection: Connection, study: Study) -> dict[str, list[str]]:
    """The systems whose replies are shown, by item."""
    rows = connection.execute(select(items.c.id, items.c.systems).where(items.c.study_id == study.id)).all()
    return {row.id: json.loads(row.systems) for row in rows}
