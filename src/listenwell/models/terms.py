"""Losses shared by many models, as terms of an objective."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell.contract import ABSENT, Term
from listenwell.layers.embedding import WordEmbedding
from listenwell.layers.loss import packed_cross_entropy


def classification_terms(name: str, believed: Tensor, gold: Tensor, smoothing: float = 0.0) -> dict[str, Term]:
    """Cross-entropy of log-probabilities (batch, classes) where gold is known, and their accuracy, for display only."""
    known = int((gold != ABSENT).sum())
    # The softmax of log-probabilities gives back the probabilities.
    loss = F.cross_entropy(believed, gold, ignore_index=ABSENT, reduction="sum", label_smoothing=smoothing)
    plain = F.nll_loss(believed, gold, ignore_index=ABSENT, reduction="sum")
    right = (believed.argmax(-1) == gold).sum()
    return {name: Term(loss, known, plain), f"{name}-accuracy": Term(right, known, learned=False)}


def reply_term(
    hidden: Tensor, targets: Tensor, words: WordEmbedding, smoothing: float = 0.0, count: float | None = None
) -> Term:
    """Cross-entropy of the target tokens (positions,), with `words` as output layer on hidden (positions, width).

    It is averaged per token unless `count` is given; the displayed value excludes label smoothing.
    """
    loss, nll = packed_cross_entropy(hidden, words.choices, words.bias, targets, smoothing)
    return Term(loss, len(targets) if count is None else count, nll.sum())


def reply_nll(hidden: Tensor, targets: Tensor, words: WordEmbedding, mask: Tensor) -> Tensor:
    """−log p of each row's tokens (batch,); positions are the True ones of the mask (batch, time), in order."""
    _, nll = packed_cross_entropy(hidden, words.choices, words.bias, targets)
    return sum_by_row(nll, mask)


def sum_out(log_p: Tensor, nll: Tensor) -> Tensor:
    """−log Σ_l p(l) p(reply | l), (batch,), from log p(l) and −log p(reply | l), (batch, labels) each."""
    return -(log_p - nll).logsumexp(dim=1)


def average_out(nll: Tensor) -> Tensor:
    """−log of the mean of p(reply | draw), (batch,), from −log p(reply | draw), (batch, draws)."""
    return math.log(nll.shape[1]) - (-nll).logsumexp(dim=1)


def sum_by_row(values: Tensor, mask: Tensor) -> Tensor:
    """Row sums (batch,) of values that are given for the True positions of a mask (batch, time), in order."""
    rows = torch.arange(len(mask), device=values.device)[:, None].expand_as(mask)[mask]
    return torch.zeros(len(mask), device=values.device, dtype=values.dtype).index_add_(0, rows, values)
