"""Replies for several people at once: each row has its own options, seed and end, and can be dropped.

Each row gives the same reply as decode() for that row alone, since it has its own uniform numbers by seed, item and
candidate.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from listenwell.contract import State, Steps
from listenwell.decoding.decode import rows_of
from listenwell.decoding.hypotheses import Hypothesis, normalised
from listenwell.decoding.options import Decoding
from listenwell.decoding.rules import Rules
from listenwell.decoding.sampling import draw, likeliest, precise, uniforms

Way = tuple[str, float, int, float]
"""How a token is chosen: method, temperature, top_k, top_p."""


@dataclass(eq=False, slots=True)
class Row:
    """One reply of a batch. `write_rows` fills it in."""

    options: Decoding
    """Greedy or sampling, not beam search. Options shared by all rows, such as block_ngrams, are in the rules."""
    item: int
    """Determines the samples, together with the seed and the candidate."""
    candidate: int = 0
    tokens: list[int] = field(default_factory=list)
    """Generated so far, without the end token."""
    logprob: float = 0.0
    finished: bool = False
    """True once the end token was generated."""
    dropped: bool = False
    """Set by the caller to cancel the row: no further steps are computed for it."""

    @property
    def goes_on(self) -> bool:
        return not (self.dropped or self.finished or len(self.tokens) == self.options.max_length)

    @property
    def way(self) -> Way:
        options = self.options
        if options.method == "sample":
            return ("sample", options.temperature, options.top_k, options.top_p)
        return ("greedy", 0.0, 0, 0.0)

    def hypothesis(self) -> Hypothesis:
        length = len(self.tokens) + self.finished
        score = normalised(self.logprob, max(length, 1), self.options.length_penalty)
        return Hypothesis(self.tokens, score, self.logprob, self.finished)


Request = tuple[Tensor, State]
"""Input for a model's step: a token of each row, and the state of these rows. The answer is logits and a state."""


def write_rows(model: Steps, state: State, rows: Sequence[Row], rules: Rules, start: int) -> Iterator[None]:
    """Generates all rows, one token each per step, and yields after every step. Rows that are done leave the batch."""
    writing = requests(state, rows, rules, start)
    while (request := next(writing, None)) is not None:
        with torch.inference_mode():
            answer = model.step(*request)
        writing.send(answer)
        yield


# As a decorator, inference mode is exited at each yield: it must not leak into the caller's code.
@torch.inference_mode()
def requests(state: State, rows: Sequence[Row], rules: Rules, start: int) -> Generator[Request | None, Request, None]:
    """The same for a caller that runs the model: yields the model's input, is sent its answer, and yields None once
    the rows have their tokens."""
    count, device = rows_of(state)
    if count != len(rows):
        raise ValueError(f"there are {len(rows)} rows to write, but the state has {count}")
    if any(row.options.method == "beam" for row in rows):
        raise ValueError("Decoding.method is 'beam', expected greedy or sample: a beam has no token before its end")
    longest = max((row.options.max_length for row in rows), default=0)
    noise = _noise(rows, longest).to(precise(device)).to(device)
    tokens = torch.zeros(count, longest, dtype=torch.long, device=device)
    logprobs = torch.zeros(count, device=device)
    live = list(range(count))
    last = torch.full((count,), start, device=device)
    for step in range(longest):
        going_on = [place for place, index in enumerate(live) if rows[index].goes_on]
        if len(going_on) < len(live):
            live = [live[place] for place in going_on]
            if not live:
                return
            chosen = torch.tensor(going_on, device=device)
            last, state = last[chosen], state.select(chosen)
        where = torch.tensor(live, device=device)
        logits, state = yield last, state
        allowed = rules.apply(logits, tokens[where, :step])
        last = _choose(allowed, noise[where, step], [rows[index] for index in live])
        logprobs[where] += allowed.gather(1, last[:, None]).squeeze(1)
        tokens[where, step] = last
        for index, token, logprob in zip(live, last.tolist(), logprobs[where].tolist(), strict=True):
            row = rows[index]
            row.logprob = logprob
            if token == rules.end:
                row.finished = True
            else:
                row.tokens.append(token)
        yield None


def _noise(rows: Sequence[Row], longest: int) -> Tensor:
    """(rows, longest) uniform numbers; zeros for rows that are not sampled."""
    noise = torch.zeros(len(rows), longest, dtype=torch.float64)
    for index, row in enumerate(rows):
        if row.options.method == "sample":
            steps = row.options.max_length
            noise[index, :steps] = uniforms(row.options.seed, [row.item], row.candidate + 1, steps)[row.candidate]
    return noise


def _choose(logprobs: Tensor, uniform: Tensor, rows: Sequence[Row]) -> Tensor:
    """A token for each row, chosen its own way; rows with the same way are handled together."""
    ways: dict[Way, list[int]] = {}
    for place, row in enumerate(rows):
        ways.setdefault(row.way, []).append(place)
    if len(ways) == 1:
        return _chosen(logprobs, uniform, rows[0])
    tokens = torch.empty(len(rows), dtype=torch.long, device=logprobs.device)
    for places in ways.values():
        where = torch.tensor(places, device=logprobs.device)
        tokens[where] = _chosen(logprobs[where], uniform[where], rows[places[0]])
    return tokens


def _chosen(logprobs: Tensor, uniform: Tensor, row: Row) -> Tensor:
    if row.options.method == "sample":
        return draw(logprobs, uniform, row.options)
    return likeliest(logprobs, uniform, 0)
