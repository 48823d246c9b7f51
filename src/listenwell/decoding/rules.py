"""Which tokens may come next: the model's log-probabilities with forbidden tokens at −inf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

LEAST = -1e9
"""The lowest log-probability of a forced end token: finite, so that such a reply is a last resort but still valid."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Which tokens a hypothesis must not contain. `end` is allowed even if `banned` contains it."""

    end: int
    banned: Sequence[int]
    min_length: int
    block_ngrams: int

    def apply(self, logits: Tensor, history: Tensor) -> Tensor:
        """Log-probabilities (rows, vocabulary) after `history` (rows, length), −inf where forbidden.

        They are the model's own, not renormalised over the allowed tokens, so that logprobs stay comparable
        across rules. If no token is left, the end token is allowed, even before min_length.
        """
        logprobs = self._logprobs(logits, history.shape[1])
        forced_end = logprobs[:, self.end].clamp(min=LEAST)
        banned = [token for token in self.banned if token != self.end]
        if banned:
            logprobs[:, banned] = -inf
        if history.shape[1] < self.min_length:
            logprobs[:, self.end] = -inf
        if self.block_ngrams:
            block_repeats(logprobs, history, self.block_ngrams)
        stuck = logprobs.amax(dim=1) == -inf
        logprobs[:, self.end] = torch.where(stuck, forced_end, logprobs[:, self.end])
        return logprobs

    def _logprobs(self, logits: Tensor, length: int) -> Tensor:
        if logits.dim() != 2:
            raise ValueError(f"step() gave logits of shape {tuple(logits.shape)}, expected (rows, vocabulary)")
        vocabulary = logits.shape[1]
        for name, token in [("end", self.end), *(("banned", token) for token in self.banned)]:
            if not 0 <= token < vocabulary:
                raise ValueError(f"the {name} token is {token}, but step() gave logits for {vocabulary} tokens")
        logprobs = logits.float().log_softmax(dim=1)
        # One NaN, one +inf or nothing but −inf turns a whole row into NaN, so checking one column is enough.
        if logprobs[:, 0].isnan().any():
            raise ValueError(f"step() gave logits that are no distribution (NaN, +inf, or all -inf) at token {length}")
        return logprobs


def block_repeats(logprobs: Tensor, history: Tensor, size: int) -> None:
    """Sets −inf in place where a token would complete an n-gram that `history` (rows, length) already has."""
    length = history.shape[1]
    if length < size:
        return
    windows = history.unfold(1, size, 1)  # (rows, windows, size)
    tail = history[:, length - size + 1 :]  # the size − 1 tokens that the next one would follow; none for size 1
    again = (windows[:, :, :-1] == tail[:, None, :]).all(dim=2)
    row, window = again.nonzero(as_tuple=True)
    logprobs[row, windows[row, window, -1]] = -inf
