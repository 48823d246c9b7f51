"""Tiny untrained models, and an exhaustive search as the reference for the decoders."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from listenwell.contract import State

START, END = 0, 1
"""In every toy vocabulary; the other ids are words."""


class Markov:
    """The next token depends only on the last one: `table` (vocabulary, vocabulary) has the logits."""

    def __init__(self, table: Tensor) -> None:
        self.table = table
        self.rows_seen: list[int] = []

    def understand(self, rows: int = 1) -> State:
        return State(fixed=torch.zeros(rows, 1))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        self.rows_seen.append(len(tokens))
        return self.table[tokens] + state.fixed, state


class Recurrent:
    """The next token depends on all before it, through a hidden state, and on the row's own context.

    The state also remembers the tokens it was fed, as a key-value cache would: growing, checked in
    `step` against the hidden state, so that a decoder which mixes up its rows cannot go unnoticed.
    """

    def __init__(self, seed: int, vocabulary: int = 5, hidden: int = 6) -> None:
        generator = torch.Generator().manual_seed(seed)

        def weights(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator)

        self.vocabulary = vocabulary
        self.embedding, self.inner, self.outer = (
            weights(vocabulary, hidden),
            weights(hidden, hidden),
            weights(hidden, vocabulary),
        )
        self.contexts = weights(64, hidden)
        self.rows_seen: list[int] = []
        self.tokens_seen: set[int] = set()

    def understand(self, contexts: list[int]) -> State:
        context = self.contexts[contexts]
        moving = {"hidden": torch.zeros_like(context), "cache": torch.zeros(len(contexts), 0, dtype=torch.long)}
        return State(beliefs={"context": context}, fixed=(context,), moving=moving)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        self.rows_seen.append(len(tokens))
        self.tokens_seen.update(tokens.tolist())
        (context,) = state.fixed
        assert len(context) == len(tokens) == len(state.moving["cache"])
        assert state.moving["cache"].shape[1] == state.length
        assert torch.equal(context, state.beliefs["context"])
        cache = torch.cat([state.moving["cache"], tokens[:, None]], dim=1)
        hidden = self.forward(state.moving["hidden"], tokens, context)
        assert torch.allclose(hidden, self.replay(cache, context), atol=1e-5)
        moving = {"hidden": hidden, "cache": cache}
        return hidden @ self.outer * 1.5, State(state.beliefs, state.fixed, moving, state.length + 1)

    def forward(self, hidden: Tensor, tokens: Tensor, context: Tensor) -> Tensor:
        return torch.tanh(hidden @ self.inner + self.embedding[tokens] + context)

    def replay(self, cache: Tensor, context: Tensor) -> Tensor:
        hidden = torch.zeros_like(context)
        for column in cache.unbind(dim=1):
            hidden = self.forward(hidden, column, context)
        return hidden


def logprobs_after(model: Recurrent, context: int, tokens: tuple[int, ...]) -> Tensor:
    """The model's log p of each next token after the start and `tokens`, computed from the start."""
    state = model.understand([context])
    for token in (START, *tokens):
        logits, state = model.step(torch.tensor([token]), state)
    return logits[0].log_softmax(dim=0)


def repeats(tokens: tuple[int, ...], size: int) -> bool:
    """Whether any n-gram of this size occurs twice."""
    grams = [tokens[i : i + size] for i in range(len(tokens) - size + 1)]
    return size > 0 and len(set(grams)) < len(grams)


def everything(model: Recurrent, context: int, options) -> list[tuple[float, float, tuple[int, ...], bool]]:
    """(score, logprob, tokens, finished) of every reply that the options allow, best first. START is banned."""
    words = [token for token in range(model.vocabulary) if token not in (START, END)]
    hypotheses = []
    for length in range(options.max_length + 1):
        for tokens in product(words, repeat=length):
            if repeats(tokens, options.block_ngrams):
                continue
            logprob = sum(float(logprobs_after(model, context, tokens[:i])[token]) for i, token in enumerate(tokens))
            finished = length < options.max_length
            if finished:
                # A reply may end early if its rules leave no other token.
                stuck = all(repeats((*tokens, word), options.block_ngrams) for word in words)
                if length < options.min_length and not stuck:
                    continue
                logprob += float(logprobs_after(model, context, tokens)[END])
            hypotheses.append((logprob / (length + finished) ** options.length_penalty, logprob, tokens, finished))
    return sorted(hypotheses, reverse=True)
