"""Which of several candidates is said: a weighted sum of terms, each of them higher where a reply is better.

| term | what it is | found by |
|---|---|---|
| likelihood | mean log-probability of a token of the reply, given the context and the plan | the writer |
| plan | log-probability that the reply does what was planned | the labeller of turns |
| consensus | mean log-probability of a token of the last turn, given the reply (Dual-Emp) | the writer, backwards |
| positivity | p(positive) − p(negative), of the reply less of the last turn, times the plan's positivity | sentiment |
| fresh | 0, or −1 for a stock phrase ("I'm sorry to hear that") | the list that the metric counts by |
| new | less the share of its pairs of words that the listener has said before, or that the reply says twice | |
| fits | the rating that a reader would give it, from 1 to 5 | the chooser, if there is one |

While a negative feeling is not acknowledged, no gain of positivity counts but that of a reply which does so, or asks.
A term whose weight is 0 is not computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from listenwell.metrics.stock import is_bland
from listenwell.systems.house.planner import ACKNOWLEDGES, Plan
from listenwell.text.words import words


def uplift(gain: float, plan: Plan, label: str) -> float:
    """What a gain in positivity counts for, of a reply that the classifier gave this label.

    Cheer that comes before the feeling is acknowledged is not rewarded; what lowers the mood is held against any reply.
    """
    early = plan.phase == "acknowledge" and label not in ACKNOWLEDGES and label != "questioning"
    return plan.positivity * (min(gain, 0.0) if early else gain)


def fresh(reply: str) -> float:
    return -1.0 if is_bland(reply) else 0.0


def new(reply: str, earlier: Sequence[str]) -> float:
    """Less the share of the reply's pairs of words that stand in an earlier reply, or come again in this one."""
    said = Counter(_pairs(reply))
    before = {pair for text in earlier for pair in _pairs(text)}
    again = sum(count if pair in before else count - 1 for pair, count in said.items())
    return -again / max(1, said.total())


def _pairs(text: str) -> list[tuple[str, str]]:
    return list(pairwise(words(text)))
