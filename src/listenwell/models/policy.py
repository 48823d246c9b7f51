"""Training on a model's own replies: generating them, and the policy gradient of their reward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from listenwell.contract import Batch, Sequence, State, Steps, Term, Vocabulary
from listenwell.decoding import Decoding, decode
from listenwell.decoding.hypotheses import Hypothesis
from listenwell.decoding.rows import Row, write_rows
from listenwell.decoding.rules import Rules
from listenwell.layers.embedding import WordEmbedding
from listenwell.layers.loss import packed_cross_entropy


class Teachable(Protocol):
    """A model whose replies can be scored from a state."""

    words: WordEmbedding

    def teach(self, batch: Batch, state: State) -> tuple[Tensor, Tensor]: ...


@torch.no_grad()
def write(
    model: Steps, state: State, options: Decoding, vocabulary: Vocabulary, role: int, items: tuple[int, ...] = ()
) -> Sequence:
    """Generate texts from a state, in the form of training replies: one that was cut off has no end token."""
    hypotheses = decode(
        model,
        state,
        options,
        start=vocabulary.start,
        end=vocabulary.end,
        banned=_banned(vocabulary),
        items=items or None,
    )
    return _as_replies([best for best, *_ in hypotheses], vocabulary, role)


@torch.no_grad()
def write_drawn_and_greedy(
    model: Steps, state: State, vocabulary: Vocabulary, role: int, items: tuple[int, ...], seed: int, longest: int
) -> tuple[Sequence, Sequence]:
    """A sampled and a greedy text for each row of a state, generated together: half as many steps as one by one."""
    ways = Decoding(method="sample", max_length=longest, seed=seed), Decoding(max_length=longest)
    rows = [Row(way, item) for item in items for way in ways]
    rules = Rules(vocabulary.end, _banned(vocabulary), ways[1].min_length, ways[1].block_ngrams)
    for _ in write_rows(model, state.repeat(len(ways)), rows, rules, vocabulary.start):
        pass
    return _as_replies(rows[0::2], vocabulary, role), _as_replies(rows[1::2], vocabulary, role)


def _banned(vocabulary: Vocabulary) -> tuple[int, ...]:
    return vocabulary.pad, vocabulary.start, vocabulary.ctx


def _as_replies(written: Iterable[Hypothesis | Row], vocabulary: Vocabulary, role: int) -> Sequence:
    rows = [torch.tensor([*text.tokens, *([vocabulary.end] if text.finished else [])]) for text in written]
    tokens = pad_sequence(rows, batch_first=True, padding_value=vocabulary.pad)
    return Sequence(tokens, tokens != vocabulary.pad, torch.full_like(tokens, role))


def advantage(reward: Tensor) -> Tensor:
    """Each row's reward minus the mean reward of the others (batch,), which lowers the variance."""
    if len(reward) < 2:
        return torch.zeros_like(reward)
    return reward - (reward.sum() - reward) / (len(reward) - 1)


def by_position(rows: Tensor, mask: Tensor) -> Tensor:
    """Repeat a number per row (batch,) for each True position of a mask (batch, time)."""
    return rows[:, None].expand_as(mask)[mask]


def policy_term(model: Teachable, batch: Batch, state: State, written: Sequence, reward: Tensor) -> Term:
    """The policy gradient of a reward (batch,) for replies sampled from `state`; the reward itself is displayed."""
    hidden, targets = model.teach(replace(batch, reply=written), state)
    gain = by_position(advantage(reward), written.mask)
    loss, _ = packed_cross_entropy(hidden, model.words.choices, model.words.bias, targets, weights=gain)
    return Term(loss / max(len(targets), 1) * len(reward), len(reward), reward.sum())
