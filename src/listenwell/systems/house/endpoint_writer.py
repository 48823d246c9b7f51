"""A remote endpoint that writes the house system's candidates; it returns text but no probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from torch import Tensor

from listenwell.contract import Controls
from listenwell.data.dialogue import Dialogue, Example
from listenwell.systems.base import Precision
from listenwell.systems.house.options import HouseDecoding
from listenwell.systems.house.planner import PLANS
from listenwell.systems.remote.endpoint import Endpoint
from listenwell.systems.reply import Candidate


class EndpointWriter:
    """An endpoint that implements the CandidateWriter protocol."""

    has_likelihoods = False

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.decoding = HouseDecoding.extend(endpoint.decoding)

    @property
    def system_name(self) -> str:
        return self.endpoint.name

    @property
    def about(self) -> Mapping[str, str]:
        return self.endpoint.about

    @property
    def engine(self) -> str:
        return self.endpoint.name

    @property
    def decoding(self) -> HouseDecoding:
        return HouseDecoding.extend(self.endpoint.decoding)

    @decoding.setter
    def decoding(self, decoding: HouseDecoding) -> None:
        self.endpoint.decoding = decoding

    @property
    def precision(self) -> Precision:
        return ""

    @precision.setter
    def precision(self, precision: Precision) -> None:
        raise ValueError(f"{self.endpoint.name} has a fixed precision; leave --precision out")

    def with_decoding(self, **changes: object) -> EndpointWriter:
        return EndpointWriter(self.endpoint.with_decoding(**changes))

    def feel(self, items: Sequence[Example], to_answer: bool = False) -> None:
        return None

    def write(
        self,
        items: Sequence[Example],
        plans: Tensor,
        numbers: Sequence[int],
        done: Callable[[int], None] | None = None,
    ) -> list[list[Candidate]]:
        each = [(item, plan) for item, some in zip(items, plans, strict=True) for plan in some]
        written = self.endpoint.many_candidates([(item.context, _controls(plan)) for item, plan in each], done)
        marked = [
            [replace(one, moves=(PLANS.labels[int(plan)],)) for one in candidates]
            for (_, plan), candidates in zip(each, written, strict=True)
        ]
        count = plans.shape[1]
        return [list(chain(*marked[first : first + count])) for first in range(0, len(marked), count)]

    def say(self, item: Example, plan: Tensor, number: int) -> Iterator[str]:
        (label,) = plan
        return self.endpoint.stream(Dialogue("", item.context), _controls(label))

    def consensus(self, turns: Sequence[str], replies: Sequence[str]) -> None:
        return None

    def likelihoods_by(
        self, items: Sequence[Example], chances: Tensor, done: Callable[[int], None] | None = None
    ) -> None:
        return None

    def oracle_likelihoods(self, items: Sequence[Example], done: Callable[[int], None] | None = None) -> None:
        return None


def _controls(plan: Tensor) -> Controls:
    return Controls(label=PLANS.labels[int(plan)])
