"""Greedy decoding and sampling, one token per step: rows that have ended leave the batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from listenwell.contract import State, Steps
from listenwell.decoding.hypotheses import Hypothesis, normalised
from listenwell.decoding.rules import Rules
from listenwell.decoding.sampling import Choose


@dataclass(slots=True)
class Page:
    """What has been generated so far, for all rows, ended or not."""

    tokens: Tensor
    """(rows, max_length)"""
    lengths: Tensor
    """(rows,) excluding the end token."""
    logprobs: Tensor
    """(rows,)"""
    finished: Tensor
    """(rows,) True once the end token was generated."""

    @classmethod
    def empty(cls, rows: int, max_length: int, device: torch.device) -> Page:
        return cls(
            tokens=torch.zeros(rows, max_length, dtype=torch.long, device=device),
            lengths=torch.zeros(rows, dtype=torch.long, device=device),
            logprobs=torch.zeros(rows, device=device),
            finished=torch.zeros(rows, dtype=torch.bool, device=device),
        )

    def hypotheses(self, penalty: float) -> list[Hypothesis]:
        """One for each row, in order."""
        columns = (self.tokens, self.lengths, self.logprobs, self.finished)
        return [
            Hypothesis(tokens[:length], normalised(logprob, length + finished, penalty), logprob, finished)
            for tokens, length, logprob, finished in zip(*(column.tolist() for column in columns), strict=True)
        ]


def walk(model: Steps, state: State, page: Page, rules: Rules, choose: Choose, start: int) -> Iterator[Tensor]:
    """Generates `page` to its end. Yields after each step the tokens of the rows that go on; stops when none do."""
    count, max_length = page.tokens.shape
    rows = torch.arange(count, device=page.tokens.device)  # those still being generated
    last = torch.full_like(rows, start)
    for step in range(max_length):
        logits, state = model.step(last, state)
        logprobs = rules.apply(logits, page.tokens[rows, :step])
        last = choose(logprobs, rows, step)
        page.logprobs[rows] += logprobs.gather(1, last[:, None]).squeeze(1)
        ended = last == rules.end
        if bool(ended.any()):
            page.finished[rows[ended]] = True
            going_on = (~ended).nonzero().squeeze(1)
            rows, last = rows[going_on], last[going_on]
            if not len(rows):
                return
            state = state.select(going_on)
        page.tokens[rows, step] = last
        page.lengths[rows] += 1
        yield last
