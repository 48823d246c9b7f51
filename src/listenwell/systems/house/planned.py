"""A dialogue with its plan, the other plans to try, and the order of its candidates."""

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
"""Plans to try when all candidates were vetoed, by feeling: the first two that differ from the original plan."""

MOVES: frozenset[str] = frozenset(
    {"acknowledging", "agreeing", "consoling", "encouraging", "questioning", "sympathizing", "suggesting", "wishing"}
)
"""What a listener does besides sharing the feeling: the labels that candidates are written for besides the plan."""

AGAIN = 1 << 40
"""Added to the sampling number when more candidates are written; larger than any position in a corpus."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A dialogue, what was recognised in it, and the plan for the reply."""

    context: tuple[Turn, ...]
    prediction: ListenerPrediction
    labels: tuple[str, ...]
    """The label of each turn."""
    now: Now
    """The feeling in the last turn, besides the dialogue's emotion."""
    plan: Plan

    @property
    def feels_bad(self) -> bool:
        return feels_bad_now(self.prediction, self.now)

    @property
    def is_bad_news(self) -> bool:
        """Whether cheer is out of place, judging by words or mood. Emotions that good news can evoke too, such as
        "sentimental", do not count."""
        if self.now.is_bad or tells_of_a_loss(self.last):
            return True
        return not self.now.is_good and mood_of(self.prediction.emotions) <= -CLEAR

    @property
    def small_talk(self) -> tuple[str, str] | None:
        """The kind of small talk of the last message, and the answer; a requested intent takes precedence over it."""
        return None if self.plan.requested else small_talk(self.context)

    @property
    def last(self) -> str:
        return self.context[-1].text

    def said(self) -> list[str]:
        return [turn.text for turn in self.context if turn.speaker == "speaker"]

    def earlier_replies(self) -> list[str]:
        return [turn.text for turn in self.context if turn.speaker == "listener"]


def other_plans(one: Planned) -> list[Planned]:
    """Returns the plans to try when all candidates were vetoed; a requested plan is kept and only sampled again."""
    if one.plan.requested:
        return [one]
    labels = [label for label in OTHERS["bad" if one.feels_bad else "good"] if label != one.plan.label]
    reason = "what was written for {} was vetoed: {} instead"
    return [
        replace(one, plan=replace(one.plan, label=label, reason=reason.format(one.plan.label, label)))
        for label in labels[:2]
    ]


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sorts candidates by score, with vetoed ones last."""
    return sorted(candidates, key=lambda candidate: (bool(candidate.vetoed), -candidate.score))


def plain_candidates(one: Planned, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Returns a plain sentence if all candidates are vetoed and there is one that was not said yet, else nothing."""
    if not all(candidate.vetoed for candidate in candidates):
        return []
    text = plain_reply(one.feels_bad, one.earlier_replies())
    return [] if text is None else [Candidate(text, max((c.score for c in candidates), default=0.0))]


def moves(one: Planned, count: int) -> list[str]:
    """Returns the labels to write candidates for: the plan's own, then the likeliest moves after the lean.

    If the user requested a label, it is the only one.
    """
    if one.plan.requested:
        return [one.plan.label] * count
    others = [label for label in one.plan.chances if label in MOVES and label != one.plan.label]
    return [one.plan.label, *others][:count]


def as_item(row: int, one: Planned, turns: int = 0) -> Example:
    """Returns what is answered: the whole dialogue or at most its last `turns` turns, beginning with the speaker."""
    context = one.context[-turns:] if turns else one.context
    while context[0].speaker != "speaker" and len(context) > 1:
        context = context[1:]
    return Example(str(row), context)


def plan_ids(planned: Sequence[Planned], count: int = 1) -> torch.Tensor:
    """(items, count) labels to write candidates for, as ids of PLANS."""
    return torch.tensor([[PLANS.ids[label] for label in moves(one, count)] for one in planned])
