"""Guidance: a reply that follows the request more strongly than the model alone would.

Two states of one context are decoded in parallel, one as requested and one as the model would otherwise reply, and each
next token is chosen by

    log p(y | requested) + strength · (log p(y | requested) − log p(y | otherwise))

so that tokens that fit the request better than the model's own choice gain, and tokens common to both gain nothing. By
Bayes' rule the difference is, up to a constant, how much a token is evidence for the request. Each step costs twice as
much.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from listenwell.contract import State, Steps


@dataclass(frozen=True, slots=True)
class Guided:
    """A model whose states are pairs made by `paired`. Every decoder works with it as with the model alone."""

    model: Steps
    strength: float

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        requested, requested_state = self.model.step(tokens, _side(state, 0))
        otherwise, otherwise_state = self.model.step(tokens, _side(state, 1))
        likely = requested.float().log_softmax(dim=-1)
        logits = likely + self.strength * (likely - otherwise.float().log_softmax(dim=-1))
        return logits, paired(requested_state, otherwise_state)


def paired(requested: State, otherwise: State) -> State:
    """Both states as one, for decoding only."""
    fixed = ((requested.beliefs, requested.fixed), (otherwise.beliefs, otherwise.fixed))
    return State(fixed=fixed, moving=(requested.moving, otherwise.moving), length=requested.length)


def _side(state: State, index: int) -> State:
    beliefs, fixed = state.fixed[index]
    return State(beliefs, fixed, state.moving[index], state.length)
