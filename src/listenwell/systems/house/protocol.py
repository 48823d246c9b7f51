"""The interface between the house system and the writer of its candidates: its own model, or an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, Self

import numpy as np
from torch import Tensor

from listenwell.data.dialogue import Example
from listenwell.systems.base import Likelihoods, Precision
from listenwell.systems.house.options import HouseDecoding
from listenwell.systems.reply import Candidate


class CandidateWriter(Protocol):
    """Writes candidates for a plan. A writer returns None for what it cannot compute; the house system does without."""

    has_likelihoods: bool
    """Whether it computes likelihoods: those of its candidates, which are their scores, and those of given replies."""

    @property
    def system_name(self) -> str:
        """The name of a house system that has this writer."""
        ...

    @property
    def about(self) -> Mapping[str, str]:
        """What an evaluation records about it, besides name and decoding."""
        ...

    @property
    def engine(self) -> str:
        """A description of what computes the replies."""
        ...

    @property
    def decoding(self) -> HouseDecoding: ...

    @decoding.setter
    def decoding(self, decoding: HouseDecoding) -> None: ...

    @property
    def precision(self) -> Precision: ...

    @precision.setter
    def precision(self, precision: Precision) -> None: ...

    def with_decoding(self, **changes: object) -> Self:
        """Returns the same writer with other options."""
        ...

    def feel(self, items: Sequence[Example], to_answer: bool = False) -> np.ndarray | None:
        """log p(emotion | context), (items, emotions). With `to_answer`, encoded contexts are cached for writing."""
        ...

    def write(
        self,
        items: Sequence[Example],
        plans: Tensor,
        numbers: Sequence[int],
        done: Callable[[int], None] | None = None,
    ) -> list[list[Candidate]]:
        """Returns candidates for the context of each item under each of its plans, label ids (items, k). `numbers` seed
        the sampling."""
        ...

    def say(self, item: Example, plan: Tensor, number: int) -> Iterator[str]:
        """Streams one reply: each item is the whole text so far."""
        ...

    def consensus(self, turns: Sequence[str], replies: Sequence[str]) -> np.ndarray | None:
        """Mean log-probability per token of each turn, given only the reply."""
        ...

    def likelihoods_by(
        self, items: Sequence[Example], chances: Tensor, done: Callable[[int], None] | None = None
    ) -> Likelihoods | None:
        """Likelihoods of the replies, marginalized over the plan by its log-probabilities (items, labels)."""
        ...

    def oracle_likelihoods(
        self, items: Sequence[Example], done: Callable[[int], None] | None = None
    ) -> Likelihoods | None:
        """Likelihoods of the replies with their gold labels as plans."""
        ...
