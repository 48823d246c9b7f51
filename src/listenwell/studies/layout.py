"""The order in which raters see items and replies: balanced, seeded, and different for every rater of a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from listenwell.studies.kinds import LETTERS
from listenwell.studies.records import Item, Layout, Task, new_id


def balanced_orders(systems: Sequence[str], random: Random) -> Iterator[list[str]]:
    """Yield orders endlessly. In every block of len(systems) orders, each system is in each position once.

    So with two systems, each is on the left in half of the displays, give or take one.
    """
    size = len(systems)
    while True:
        names, shifts = list(systems), list(range(size))
        random.shuffle(names)
        random.shuffle(shifts)
        for shift in shifts:
            yield [names[(place + shift) % size] for place in range(size)]


class Orders:
    """The orders of all displays of a study, balanced for each group of systems shown together."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._by_group: dict[tuple[str, ...], Iterator[list[str]]] = {}

    def next(self, systems: Sequence[str]) -> list[str]:
        group = tuple(sorted(systems))
        if group not in self._by_group:
            self._by_group[group] = balanced_orders(group, self._random)
        return next(self._by_group[group])


def lay_out(tasks: Sequence[Sequence[Item]], raters: int, random: Random) -> list[Task]:
    """Give each task one layout per rater, with its own order of items and of replies.

    Orders are dealt rater by rater and task by task, so replies are balanced within each task too, and a study that
    ends early is as balanced as a complete one.
    """
    orders = Orders(random)
    layouts: list[list[Layout]] = [[] for _ in tasks]
    for _ in range(raters):
        for place, items in enumerate(tasks):
            layouts[place].append(shuffled([(item.id, orders.next(item.systems)) for item in items], random))
    return [
        Task(new_id(), tuple(item.id for item in items), tuple(own)) for items, own in zip(tasks, layouts, strict=True)
    ]


def shuffled(displays: list[tuple[str, list[str]]], random: Random) -> Layout:
    random.shuffle(displays)
    return [{"item": item, "systems": systems} for item, systems in displays]


def deal(items: Sequence[Item], size: int, bonus_per_task: int, random: Random) -> list[list[Item]]:
    """Split items into tasks of `size`; the last may be shorter. Each task gets `bonus_per_task` bonus checks.

    The order of the items is kept, so items of the same dialogue that are far apart land in different tasks.
    """
    if not bonus_per_task:
        return [list(items[start : start + size]) for start in range(0, len(items), size)]
    checks = [item for item in items if item.bonus]
    plain = [item for item in items if not item.bonus]
    tasks = []
    while checks or plain:
        now = checks[:bonus_per_task]
        checks = checks[bonus_per_task:]
        more = plain[: size - len(now)]
        plain = plain[size - len(now) :]
        task = [*now, *more]
        random.shuffle(task)
        tasks.append(task)
    return tasks


def letters(systems: Sequence[str]) -> dict[str, str]:
    """The system that each letter stands for."""
    return dict(zip(LETTERS, systems, strict=False))
