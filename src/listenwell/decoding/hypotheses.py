"""Hypothesis: one reply as token ids, with its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

Length = TypeVar("Length", float, Tensor)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One reply, as token ids."""

    tokens: list[int]
    """Without the end token."""
    score: float
    """logprob / length ** length_penalty, counting the end token if there is one: hypotheses are sorted by it."""
    logprob: float
    """The model's own log p of the tokens and the end token, regardless of the temperature or filter used."""
    finished: bool
    """False if it was cut off at max_length."""


def normalised(logprob: Length, length: int, penalty: float) -> Length:
    """The score of a hypothesis of `length` steps, including its end token if it has one."""
    return logprob / float(length) ** penalty
