"""Systems that echo, and raters who answer immediately."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from listenwell.labels.taxonomy import EMOTIONS
from listenwell.studies.layout import letters
from listenwell.studies.rating import Given, Rater, Ratings
from listenwell.systems.reply import Reply


class Echo:
    """A system that repeats the last turn with a word of its own; its emotion and label depend on the item."""

    def __init__(self, name: str) -> None:
        self.name = name

    def replies(self, talks: list[Any], controls: Any = None, done: Callable[[int], None] | None = None) -> list[Reply]:
        word = {"echo-one": "Right", "echo-two": "Yes", "echo-three": "Well"}.get(self.name, "Oh")
        labels = ("questioning", "acknowledging", "consoling")
        return [
            Reply(f"{word}: {talk.turns[-1].text}", emotion=EMOTIONS[place % 32], label=labels[place % 3])
            for place, talk in enumerate(talks)
        ]


def some_values(ratings: Ratings, letters: list[str], number: int = 0) -> dict[str, Any]:
    """A valid answer for the study's kind, which varies with the number."""
    kind = ratings.kind
    if kind.name == "ab":
        return {"choice": kind.choices[number % len(kind.choices)]}
    if kind.name == "drag":
        return {letter: kind.choices[(number + place) % 3] for place, letter in enumerate(letters)}
    if kind.name == "emotion":
        return {letter: (number + place) % 2 for place, letter in enumerate(letters)}
    return {
        letter: {scale.key: 1 + (number + place + step) % 5 for step, scale in enumerate(kind.scales)}
        for place, letter in enumerate(letters)
    }


def do_task(
    ratings: Ratings, rater: Rater, values: Callable[[str, dict[str, str]], Any] | None = None, finish: bool = True
) -> str | None:
    """Let a rater do one task; `values` gives the answer to an item by its id and the systems of the letters."""
    assignment = ratings.current(rater)
    if assignment is None:
        return None
    given = []
    for number, entry in enumerate(assignment.layout):
        shown = letters(entry["systems"])
        chosen = values(entry["item"], shown) if values else some_values(ratings, list(shown), number)
        given.append(Given(uuid.uuid4().hex, entry["item"], chosen, 12.5))
    stored, refused = ratings.store_answers(rater.token, given)
    assert len(stored) == len(given), refused
    if finish:
        ratings.finish(rater.token, assignment.task_id)
    return assignment.task_id
