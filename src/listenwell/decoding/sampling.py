"""Choosing the next token: the most likely one, or one sampled by inverse CDF.

Each (seed, item, candidate) has its own random generator and uses one uniform number per step. So a
sample does not depend on which other rows are in the batch or when they finish; given the items' ids,
it does not even depend on how the data is batched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import inf

import torch
from torch import Tensor

from listenwell.decoding.options import Decoding

Choose = Callable[[Tensor, Tensor, int], Tensor]
"""(log-probabilities (rows, vocabulary), which rows these are (rows,), step) -> tokens (rows,)."""

HEAD = 256
"""How many tokens to rank at first: nearly always enough, and sorting the whole vocabulary is slow."""


def likeliest(logprobs: Tensor, rows: Tensor, step: int) -> Tensor:
    return logprobs.argmax(dim=1)


def drawn(options: Decoding, items: Sequence[int], device: torch.device) -> Choose:
    """Sampling for rows in the order item 0 candidate 0, item 0 candidate 1, …"""
    noise = uniforms(options.seed, items, options.candidates, options.max_length).to(precise(device)).to(device)

    def choose(logprobs: Tensor, rows: Tensor, step: int) -> Tensor:
        return draw(logprobs, noise[rows, step], options)

    return choose


def draw(logprobs: Tensor, uniform: Tensor, options: Decoding) -> Tensor:
    """Sample a token for each row with its uniform number, from the few possible tokens if they are few."""
    few = front(logprobs, options)
    if few is None:
        return invert(distribution(logprobs, options), uniform)
    ids, chances, decided = few
    tokens = ids.gather(1, invert(chances, uniform)[:, None]).squeeze(1)
    if not bool(decided.all()):
        tokens[~decided] = invert(distribution(logprobs[~decided], options), uniform[~decided])
    return tokens


def uniforms(seed: int, items: Sequence[int], candidates: int, steps: int) -> Tensor:
    """(items × candidates, steps) numbers in [0, 1), generated on the CPU and so the same on every device."""
    generator = torch.Generator()
    numbers = torch.empty(len(items) * candidates, steps, dtype=torch.float64)
    for index, row in enumerate(numbers):
        name = f"{seed} {items[index // candidates]} {index % candidates}"
        # A hash, since sums such as seed + item would give neighbouring seeds the same samples.
        generator.manual_seed(int.from_bytes(blake2b(name.encode(), digest_size=4).digest()))
        row.uniform_(generator=generator)
    return numbers


def distribution(logprobs: Tensor, options: Decoding) -> Tensor:
    """The probabilities (rows, vocabulary) to sample from: temperature, then top_k, then top_p of what is left."""
    # The maximum is subtracted first: a tiny temperature must not send a whole row to −inf.
    scaled = (logprobs - logprobs.amax(dim=1, keepdim=True)) / options.temperature
    if 0 < options.top_k < scaled.shape[1]:
        ranked = scaled.topk(options.top_k, dim=1).values
        scaled = scaled.masked_fill(~largest(scaled, ranked[:, -1:], options.top_k), -inf)
    probabilities = scaled.softmax(dim=1)
    if options.top_p < 1:
        threshold, count = nucleus(probabilities, options.top_p)
        probabilities = probabilities.masked_fill(~largest(probabilities, threshold, count), 0.0)
    return probabilities


def front(logprobs: Tensor, options: Decoding) -> tuple[Tensor, Tensor, Tensor] | None:
    """Only the tokens that `distribution` leaves possible: ids (rows, some), in ascending order, their probabilities
    relative to the most likely one, and for which rows (rows,) the HEAD most likely tokens suffice to decide this.

    They do not if more than these are possible, or if the last possible token ties with one that is not. None if they
    never suffice: nothing is filtered, or top_k is HEAD or more.
    """
    by_rank = 0 < options.top_k < HEAD
    if logprobs.shape[1] <= HEAD or (options.top_p == 1 and not by_rank) or options.top_k >= HEAD:
        return None
    ranked, ids = logprobs.topk(HEAD, dim=1)
    chances = ((ranked - ranked[:, :1]) / options.temperature).exp()
    if by_rank:
        chances[:, options.top_k :] = 0
        whole = chances.sum(dim=1, keepdim=True)
    else:
        whole = ((logprobs - ranked[:, :1]) / options.temperature).exp_().sum(dim=1, keepdim=True)
    possible = chances > 0
    if options.top_p < 1:
        # A token is kept as long as those before it do not reach top_p. The first one always is.
        possible &= chances.cumsum(dim=1) - chances < options.top_p * whole
        possible[:, 0] = True
    count = possible.sum(dim=1, keepdim=True)
    behind = ranked.gather(1, count.clamp_max(HEAD - 1))
    decided = ((count < HEAD) & (behind < ranked.gather(1, count - 1))).squeeze(1)
    some = int(count.max())
    ids, order = ids[:, :some].masked_fill(~possible[:, :some], logprobs.shape[1]).sort(dim=1)
    return ids, chances[:, :some].masked_fill(~possible[:, :some], 0.0).gather(1, order), decided


def nucleus(probabilities: Tensor, mass: float) -> tuple[Tensor, Tensor]:
    """How many of the most likely tokens it takes to reach `mass`, and the lowest probability among them; (rows, 1)."""
    size, vocabulary = min(HEAD, probabilities.shape[1]), probabilities.shape[1]
    while True:
        ranked = probabilities.topk(size, dim=1).values
        total = ranked.cumsum(dim=1)
        if size == vocabulary or bool((total[:, -1] >= mass).all()):
            break
        size = min(size * 8, vocabulary)
    # A token is kept as long as those before it do not reach `mass`. The first one always is.
    count = (total - ranked < mass).sum(dim=1, keepdim=True)
    return ranked.gather(1, count - 1), count


def largest(values: Tensor, threshold: Tensor, count: int | Tensor) -> Tensor:
    """True at the `count` largest of each row, the smallest of which is `threshold`; ties go to the lower ids."""
    above, equal = values > threshold, values == threshold
    room = count - above.sum(dim=1, keepdim=True)
    return above | (equal & (equal.cumsum(dim=1) <= room))


def invert(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """The token of each row at which the cumulative probability passes the fraction `uniform` (rows,) of the total."""
    total = probabilities.cumsum(dim=1, dtype=uniform.dtype)
    target = uniform[:, None] * total[:, -1:]
    token = torch.searchsorted(total, target, right=True).clamp(max=probabilities.shape[1] - 1)
    # Rounding may put the target at the very end, beyond the last possible token.
    possible = probabilities.gather(1, token) > 0
    return torch.where(possible, token, probabilities.argmax(dim=1, keepdim=True)).squeeze(1)


def precise(device: torch.device) -> torch.dtype:
    """Double precision, so that rare words of a large vocabulary keep their probability; Apple's GPUs lack it."""
    return torch.float32 if device.type == "mps" else torch.float64
