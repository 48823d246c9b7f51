"""Hypothesis: one reply as token ids, with what the model thinks of it."""

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
    """logprob / length ** length_penalty, the end token counted where there is one: what "best first" goes by."""
    logprob: float
    """The model's own log p of the tokens and the end, whatever temperature or filter they were drawn with."""
    finished: bool
    """False where max_length cut it."""


def normalised(logprob: Length, length: int, penalty: float) -> Length:
    """The score of a hypothesis that took `length` steps: its end token, if it has one, was a step too."""
    return logprob / float(length) ** penalty
