"""Continuous batching: independent replies that begin at different steps share one batch of the writer's engine.

Each writing requests its steps through `requests`, and all requests made at the same time become one step of the
engine: a reply that begins later, or is restarted, costs no steps of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor

from listenwell.backbones.llama_engine import Cache, CacheRow, LlamaEngine
from listenwell.backbones.llama_slots import Slots
from listenwell.contract import State, Steps
from listenwell.decoding import Row, Rules, requests
from listenwell.decoding.rows import Request


@dataclass(eq=False, slots=True)
class Writing:
    """Rows that began together."""

    asking: Generator[Request | None, Request, None]
    rows: list[Row]
    numbers: list[int]
    """The numbers of the rows in the engine's cache; empty if another model writes."""
    kept: set[int]
    """The numbers that are still in the cache."""
    is_ahead: bool = False
    """Whether a step was made whose result has not been read yet."""


class Joint:
    """All replies being written by one engine or, one writing after another, by another model."""

    def __init__(
        self, model: Steps, engine: LlamaEngine | None, computing: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.model, self.computing = model, computing
        self.slots = None if engine is None else Slots(engine)
        self.going: list[Writing] = []
        self._first: dict[int, int] = {}

    def begin(self, state: State, rows: list[Row], rules: Rules, start: int) -> Writing:
        """Begins rows on any model."""
        self.going.append(Writing(requests(state, rows, rules, start), rows, [], set()))
        return self.going[-1]

    def begin_in_slots(self, cache: Cache, first: Tensor, rows: list[Row], rules: Rules, start: int) -> Writing:
        """Begins rows on the engine. `first`, the token after the cached prefix, takes the place of the start token."""
        assert self.slots is not None
        numbers = self.slots.add(cache)
        self._first.update(zip(numbers, first.tolist(), strict=True))
        writing = self.begin(State(moving=torch.tensor(numbers)), rows, rules, start)
        writing.numbers, writing.kept = numbers, set(numbers)
        return writing

    def reading(self, writing: Writing, row: Row, length: int) -> CacheRow | None:
        """Returns the cached prefix of a row, `length` tokens, to restart from; None if it is not in the cache."""
        place = next(place for place, one in enumerate(writing.rows) if one is row)
        if self.slots is None or writing.numbers[place] not in writing.kept:
            return None
        return self.slots.reading(writing.numbers[place], length)

    def advance(self) -> None:
        """Makes one step for every writing whose last result has been read."""
        asked: list[tuple[Writing, Request]] = []
        with self.computing():
            for one in [one for one in self.going if not one.is_ahead]:
                request = next(one.asking, None)
                if request is None:
                    self.end(one)
                    one.is_ahead = True
                else:
                    self._keep(one, set(request[1].moving.tolist()) if one.kept else set())
                    asked.append((one, request))
            answers = self._answer([request for _, request in asked]) if asked else []
            for (one, _), answer in zip(asked, answers, strict=True):
                one.asking.send(answer)
                one.is_ahead = True

    def end(self, writing: Writing) -> None:
        """Ends a writing and frees its cache."""
        if writing in self.going:
            self.going.remove(writing)
            writing.asking.close()
            self._keep(writing, set())

    def _keep(self, writing: Writing, numbers: set[int]) -> None:
        for number in sorted(writing.kept - numbers):
            assert self.slots is not None
            self.slots.remove(number)
            self._first.pop(number, None)
        writing.kept = writing.kept & numbers

    def _answer(self, asked: Sequence[Request]) -> list[Request]:
        if self.slots is None:
            return [self.model.step(*request) for request in asked]
        numbers = [number for _, state in asked for number in state.moving.tolist()]
        tokens = torch.cat([self._to_read(*request) for request in asked])
        logits = self.slots.step(tokens, numbers).split([len(some) for some, _ in asked])
        states = [State(state.beliefs, None, state.moving, state.length + 1) for _, state in asked]
        return list(zip(logits, states, strict=True))

    def _to_read(self, tokens: Tensor, state: State) -> Tensor:
        if state.length:
            return tokens
        return torch.tensor([self._first.pop(number) for number in state.moving.tolist()])
