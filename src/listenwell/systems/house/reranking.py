"""Chooses among candidates by a weighted sum of terms, each of them higher for a better reply.

| term | what it is | found by |
|---|---|---|
| likelihood | mean log-probability per token of the reply, given the context and the plan | the writer |
| plan | log-probability that the reply does what was planned | the labeller of turns |
| consensus | mean log-probability per token of the last turn, given the reply (Dual-Emp) | the writer, backwards |
| positivity | p(positive) − p(negative) of the reply minus the last turn's, times the plan's positivity | sentiment |
| fresh | 0, or −1 for a stock phrase ("I'm sorry to hear that") | the metric's list of stock phrases |
| new | minus the share of its word pairs that the listener has said before, or that the reply says twice | |
| fits | log-probability that a person said it in this dialogue | the chooser, if there is one |

While a negative feeling is unacknowledged, a gain in positivity counts only for replies that acknowledge it or ask a
question. Terms that need a model are not computed if their weight is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from listenwell.metrics.stock import is_bland
from listenwell.systems.house.planner import ACKNOWLEDGES, Plan
from listenwell.text.words import words


def uplift(gain: float, plan: Plan, label: str) -> float:
    """Returns the value of a gain in positivity for a reply with this predicted label.

    Cheer before the feeling is acknowledged is not rewarded; lowering the mood always counts against a reply.
    """
    early = plan.phase == "acknowledge" and label not in ACKNOWLEDGES and label != "questioning"
    return plan.positivity * (min(gain, 0.0) if early else gain)


def fresh(reply: str) -> float:
    return -1.0 if is_bland(reply) else 0.0


def new(reply: str, earlier: Sequence[str]) -> float:
    """Minus the share of the reply's word pairs that occur in an earlier reply, or were already used in this one."""
    said = Counter(_pairs(reply))
    before = {pair for text in earlier for pair in _pairs(text)}
    again = sum(count if pair in before else count - 1 for pair, count in said.items())
    return -again / max(1, said.total())


def _pairs(text: str) -> list[tuple[str, str]]:
    return list(pairwise(words(text)))
