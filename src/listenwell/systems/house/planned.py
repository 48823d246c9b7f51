"""A dialogue with its plan, what else to try, and the order of its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from listenwell.classifiers.listener import CLEAR, ListenerPrediction, Now, mood_of
from listenwell.data.dialogue import Example, Turn
from listenwell.systems.house.planner import PLANS, Plan, feels_bad_now
from listenwell.systems.house.small_talk import small_talk
from listenwell.systems.house.vetoes import plain_reply, tells_of_a_loss
from listenwell.systems.reply import Candidate

OTHERS: dict[str, tuple[str, ...]] = {
    "bad": ("sympathizing", "questioning", "consoling"),
    "good": ("questioning", "acknowledging", "wishing"),
}
"""The plans tried where all candidates were vetoed, by what is felt: the first two that were not the plan."""

MOVES: frozenset[str] = frozenset(
    {"acknowledging", "agreeing", "consoling", "encouraging", "questioning", "sympathizing", "suggesting", "wishing"}
)
"""What a listener does besides feeling the same: what candidates are written for beside the plan."""

AGAIN = 1 << 40
"""Added to the number that says what is drawn, where more is written: no item of a corpus is so far away."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A dialogue, what was recognised in it, and what is to be done."""

    context: tuple[Turn, ...]
    prediction: ListenerPrediction
    labels: tuple[str, ...]
    """The label of each turn."""
    now: Now
    """What is felt in the last turn, beside the dialogue's emotion."""
    plan: Plan

    @property
    def feels_bad(self) -> bool:
        return feels_bad_now(self.prediction, self.now)

    @property
    def is_bad_news(self) -> bool:
        """Whether cheer is out of place, by words or mood. An emotion that good news have too, such as a sentimental
        one, does not tell."""
        if self.now.is_bad or tells_of_a_loss(self.last):
            return True
        return not self.now.is_good and mood_of(self.prediction.emotions) <= -CLEAR

    @property
    def small_talk(self) -> tuple[str, str] | None:
        """What kind of small talk the last message is, and the answer; an intent that was requested goes before it."""
        return None if self.plan.requested else small_talk(self.context)

    @property
    def last(self) -> str:
        return self.context[-1].text

    def said(self) -> list[str]:
        return [turn.text for turn in self.context if turn.speaker == "speaker"]

    def earlier_replies(self) -> list[str]:
        return [turn.text for turn in self.context if turn.speaker == "listener"]


def other_plans(one: Planned) -> list[Planned]:
    """What else to try where all that was written is vetoed; what was requested is only drawn again."""
    if one.plan.requested:
        return [one]
    labels = [label for label in OTHERS["bad" if one.feels_bad else "good"] if label != one.plan.label]
    reason = "what was written for {} was vetoed: {} instead"
    return [
        replace(one, plan=replace(one.plan, label=label, reason=reason.format(one.plan.label, label)))
        for label in labels[:2]
    ]


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """By score, and what is vetoed behind all that is not."""
    return sorted(candidates, key=lambda candidate: (bool(candidate.vetoed), -candidate.score))


def plain_candidates(one: Planned, candidates: Sequence[Candidate]) -> list[Candidate]:
    """A plain sentence where all candidates are vetoed, as long as there is one that was not said."""
    if not all(candidate.vetoed for candidate in candidates):
        return []
    text = plain_reply(one.feels_bad, one.earlier_replies())
    return [] if text is None else [Candidate(text, max((c.score for c in candidates), default=0.0))]


def moves(one: Planned, count: int) -> list[str]:
    """The labels that candidates are written for: the plan's own, then the moves that are likeliest after the lean.

    What a user requested is all that is written for.
    """
    if one.plan.requested:
        return [one.plan.label] * count
    others = [label for label in one.plan.chances if label in MOVES and label != one.plan.label]
    return [one.plan.label, *others][:count]


def as_item(row: int, one: Planned, turns: int = 0) -> Example:
    """What is answered: the whole dialogue, or its last turns, so many at the most and beginning with the speaker's."""
    context = one.context[-turns:] if turns else one.context
    while context[0].speaker != "speaker" and len(context) > 1:
        context = context[1:]
    return Example(str(row), context)


def plan_ids(planned: Sequence[Planned], count: int = 1) -> torch.Tensor:
    """(items, count): the labels that candidates are written for, as ids of PLANS."""
    return torch.tensor([[PLANS.ids[label] for label in moves(one, count)] for one in planned])
