"""What the house system asks of whoever writes its candidates: its own model, or an endpoint."""

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
    """Writes candidates by a plan. What a writer cannot tell is None, and the house system does without it."""

    has_likelihoods: bool
    """Whether it knows likelihoods: those of its candidates, which are their scores, and those of given replies."""

    @property
    def system_name(self) -> str:
        """What the house system is called that has this writer."""
        ...

    @property
    def about(self) -> Mapping[str, str]:
        """What an evaluation notes of it, beyond name and decoding."""
        ...

    @property
    def engine(self) -> str:
        """What computes the replies, in words."""
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
        """The same writer with other options."""
        ...

    def feel(self, items: Sequence[Example], to_answer: bool = False) -> np.ndarray | None:
        """log p(emotion | context) of each item, (items, emotions). With `to_answer`, readings are kept for writing."""
        ...

    def write(
        self,
        items: Sequence[Example],
        plans: Tensor,
        numbers: Sequence[int],
        done: Callable[[int], None] | None = None,
    ) -> list[list[Candidate]]:
        """Candidates for the context of each item by each of its plans, labels' ids (items, k). `numbers` seed what is
        drawn."""
        ...

    def say(self, item: Example, plan: Tensor, number: int) -> Iterator[str]:
        """One reply as it grows, each time the whole text so far."""
        ...

    def consensus(self, turns: Sequence[str], replies: Sequence[str]) -> np.ndarray | None:
        """Mean log-probability of a token of each turn, given the reply alone."""
        ...

    def likelihoods_by(
        self, items: Sequence[Example], chances: Tensor, done: Callable[[int], None] | None = None
    ) -> Likelihoods | None:
        """Of the replies, the plan summed out by its log-probabilities (items, labels)."""
        ...

    def oracle_likelihoods(
        self, items: Sequence[Example], done: Callable[[int], None] | None = None
    ) -> Likelihoods | None:
        """Of the replies, with their true labels as plans."""
        ...
