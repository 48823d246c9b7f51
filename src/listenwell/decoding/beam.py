"""Beam search, batched over rows × beams.

At each step the best 2 × beams continuations of a row are considered. An end token among the first `beams` of
them completes a hypothesis; the best `beams` that do not end are continued, so the width does not shrink as
hypotheses are completed. An end token of lower rank is dropped, as usual: otherwise a small length penalty
would favour truncated replies.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, fields, replace
from math import inf
from typing import TypeVar

import torch
from torch import Tensor

from listenwell.contract import State, Steps, map_tensors
from listenwell.decoding.hypotheses import Hypothesis, normalised
from listenwell.decoding.options import Decoding
from listenwell.decoding.rules import Rules

Tree = TypeVar("Tree")

BLOCK = 64
"""How many numbers of a row to compare at once."""


@dataclass(slots=True)
class Live:
    """The hypotheses that are continued."""

    logprobs: Tensor
    """(rows, width), −inf where a row has fewer hypotheses than others."""
    tokens: Tensor
    """(rows, width, max_length)"""


@dataclass(slots=True)
class Completed:
    """Completed hypotheses of each row, best first."""

    scores: Tensor
    """(rows, completed), −inf if there is none yet."""
    logprobs: Tensor
    lengths: Tensor
    """Without the end token."""
    finished: Tensor
    tokens: Tensor
    """(rows, completed, max_length)"""

    @classmethod
    def of(cls, live: Live, length: int, finished: bool, penalty: float) -> Completed:
        return cls(
            scores=normalised(live.logprobs, length + finished, penalty),
            logprobs=live.logprobs,
            lengths=torch.full_like(live.logprobs, length, dtype=torch.long),
            finished=torch.full_like(live.logprobs, finished, dtype=torch.bool),
            tokens=live.tokens,
        )

    def best(self, other: Completed, count: int) -> Completed:
        """The `count` best of both."""
        pairs = [(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)]
        joined = Completed(*(torch.cat(pair, dim=1) for pair in pairs))
        order = joined.scores.topk(min(count, joined.scores.shape[1]), dim=1).indices
        return map_tensors(joined, lambda tensor: pick(tensor, order))

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Hypotheses of each row; fewer than requested if the row has no more."""
        columns = (self.tokens, self.lengths, self.scores, self.logprobs, self.finished)
        return [
            [
                Hypothesis(tokens[:length], score, logprob, finished)
                for tokens, length, score, logprob, finished in zip(*row, strict=True)
                if score > -inf
            ]
            for row in zip(*(column.tolist() for column in columns), strict=True)
        ]


@dataclass(slots=True)
class Continuations:
    """The best continuations, best first; all tensors are (rows, considered)."""

    logprobs: Tensor
    origins: Tensor
    """Which live hypothesis is continued."""
    tokens: Tensor


def search(
    model: Steps, state: State, options: Decoding, rules: Rules, *, start: int, count: int, device: torch.device
) -> list[list[Hypothesis]]:
    """The best `candidates` hypotheses of each of the `count` rows, best first."""
    steps = search_steps(model, state, options, rules, start=start, count=count, device=device)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


# As a decorator, inference mode is exited at each yield: it must not leak into the caller's code.
@torch.inference_mode()
def search_steps(
    model: Steps,
    state: State,
    options: Decoding,
    rules: Rules,
    *,
    start: int,
    count: int,
    device: torch.device,
    dropped: Callable[[int], bool] | None = None,
) -> Generator[dict[int, list[Hypothesis]], None, list[list[Hypothesis]]]:
    """Like `search`, but yields after each step the rows that it decided. Rows that are `dropped` leave the search."""
    results: list[list[Hypothesis]] = [[] for _ in range(count)]
    rows = torch.arange(count, device=device)  # those still being searched
    # All rows begin with one hypothesis: `beams` equal ones would all be continued the same way.
    tokens = torch.zeros(count, 1, options.max_length, dtype=torch.long, device=device)
    live = Live(torch.zeros(count, 1, device=device), tokens)
    completed = map_tensors(Completed.of(live, 0, True, options.length_penalty), lambda tensor: tensor[:, :0])
    last = torch.full((count,), start, device=device)
    for step in range(options.max_length):
        logits, state = model.step(last, state)
        allowed = rules.apply(logits, live.tokens.flatten(0, 1)[:, :step])
        ways = continuations(live, allowed, 2 * options.beams)
        ended = ended_ones(live, ways, rules.end, options.beams)
        completed = completed.best(Completed.of(ended, step, True, options.length_penalty), options.candidates)
        width = live.logprobs.shape[1]
        live, origins = going_on(live, ways, rules.end, options.beams, step)
        if step + 1 == options.max_length:
            cut = Completed.of(live, options.max_length, False, options.length_penalty)
            completed = completed.best(cut, options.candidates)
            settled = torch.ones_like(rows, dtype=torch.bool)
        else:
            settled = decided(live, completed, step + 1, options)
        if dropped is not None:
            settled |= torch.tensor([dropped(row) for row in rows.tolist()], dtype=torch.bool, device=device)
        decided_now: dict[int, list[Hypothesis]] = {}
        if bool(settled.any()):
            decided_now = dict(zip(rows[settled].tolist(), only(completed, settled).hypotheses(), strict=True))
            for row, hypotheses in decided_now.items():
                results[row] = hypotheses
        yield decided_now
        if bool(settled.all()):
            break
        state = follow(state, origins, width, ~settled)
        rows, live, completed = rows[~settled], only(live, ~settled), only(completed, ~settled)
        last = live.tokens[:, :, step].flatten()
    return results


def continuations(live: Live, allowed: Tensor, count: int) -> Continuations:
    """The `count` most likely continuations of each row, from `allowed` (rows × width, vocabulary)."""
    each = min(count, allowed.shape[1])
    # What is not among the best of its hypothesis is not among the best of the row.
    logprobs, tokens = topk_in_blocks(allowed, each)
    totals = (live.logprobs.flatten()[:, None] + logprobs).view(len(live.logprobs), -1)
    best, index = totals.topk(min(count, totals.shape[1]), dim=1)
    return Continuations(best, index // each, tokens.view_as(totals).gather(1, index))


def topk_in_blocks(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Like `values.topk(count, dim=1)`, in less than half the time for rows as long as a vocabulary.

    On a CPU, topk looks at one number at a time. The maximum of each block is vectorised, and the `count` largest
    numbers of a row are in the `count` blocks with the largest maxima.
    """
    blocks = values.shape[1] // BLOCK
    if blocks < 4 * count:
        ranked = values.topk(count, dim=1)
        return ranked.values, ranked.indices
    whole = blocks * BLOCK
    table = values[:, :whole].unflatten(1, (blocks, BLOCK))
    chosen = table.amax(dim=2).topk(count, dim=1).indices
    columns = (chosen[:, :, None] * BLOCK + torch.arange(BLOCK, device=values.device)).flatten(1)
    rest = torch.arange(whole, values.shape[1], device=values.device).expand(len(values), -1)
    columns = torch.cat([columns, rest], dim=1)
    best, place = values.gather(1, columns).topk(count, dim=1)
    return best, columns.gather(1, place)


def ended_ones(live: Live, ways: Continuations, end: int, beams: int) -> Live:
    """Hypotheses completed by the end token: the best `beams` continuations, at −inf if they do not end."""
    logprobs = ways.logprobs[:, :beams].masked_fill(ways.tokens[:, :beams] != end, -inf)
    return Live(logprobs, pick(live.tokens, ways.origins[:, :beams]))


def going_on(live: Live, ways: Continuations, end: int, beams: int, step: int) -> tuple[Live, Tensor]:
    """The best `beams` hypotheses that do not end, and which live one each continues (rows, width)."""
    is_end = ways.tokens == end
    # A stable sort puts the ends last and leaves the rest best first.
    order = is_end.byte().sort(dim=1, stable=True).indices[:, :beams]
    logprobs = pick(ways.logprobs.masked_fill(is_end, -inf), order)
    # An empty slot repeats the best of its row, at −inf: the model must never see a forbidden token.
    order = torch.where(logprobs == -inf, order[:, :1], order)
    origins = pick(ways.origins, order)
    tokens = pick(live.tokens, origins)
    tokens[:, :, step] = pick(ways.tokens, order)
    return Live(logprobs, tokens), origins


def decided(live: Live, completed: Completed, length: int, options: Decoding) -> Tensor:
    """True for rows in which no live hypothesis, `length` tokens long, can still become one of the best.

    A live hypothesis can at best continue at no cost (log 1 = 0). It ends after length + 1 to max_length
    steps; as its log-probability is negative, a positive penalty gives the longest of these the best
    score, a negative one the shortest. With `early` only the first counts: its score if it ended now.
    """
    best = live.logprobs.amax(dim=1)
    lengths = (length + 1, length + 1 if options.early else options.max_length)
    bounds = [normalised(best, steps, options.length_penalty) for steps in lengths]
    hopeless = torch.maximum(*bounds) <= completed.scores[:, -1]
    full = (completed.scores[:, -1] > -inf) & (completed.scores.shape[1] == options.candidates)
    return (full & hopeless) | (best == -inf)


def follow(state: State, origins: Tensor, width: int, stay: Tensor) -> State:
    """The state of the continued hypotheses: each copies the one it continues, out of `width` in its row."""
    offsets = torch.arange(len(origins), device=origins.device)[:, None] * width
    chosen = (origins + offsets)[stay].flatten()
    if origins.shape[1] != width or not bool(stay.all()):
        return state.select(chosen)
    # Hypotheses only move within their rows, and all of a row attend to the same context: copying
    # `fixed`, the encoded context, would be most of the cost of a step.
    moved = replace(state, fixed=None).select(chosen)
    return replace(moved, fixed=state.fixed)


def only(tree: Tree, rows: Tensor) -> Tree:
    """Only the rows where `rows` is True."""
    return map_tensors(tree, lambda tensor: tensor[rows])


def pick(tensor: Tensor, index: Tensor) -> Tensor:
    """The entries `index` (rows, n) of each row of a tensor (rows, width, …)."""
    rows = torch.arange(len(index), device=index.device)[:, None]
    return tensor[rows, index]
