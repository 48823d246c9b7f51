"""Losses that many models share, as the terms of an objective."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell.contract import ABSENT, Term


def classification_terms(name: str, believed: Tensor, gold: Tensor, smoothing: float = 0.0) -> dict[str, Term]:
    """Cross-entropy of log-probabilities (batch, classes) where gold is known, and their accuracy, only to be shown."""
    known = int((gold != ABSENT).sum())
    # The softmax of log-probabilities is the probabilities themselves.
    loss = F.cross_entropy(believed, gold, ignore_index=ABSENT, reduction="sum", label_smoothing=smoothing)
    plain = F.nll_loss(believed, gold, ignore_index=ABSENT, reduction="sum")
    right = (believed.argmax(-1) == gold).sum()
    return {name: Term(loss, known, plain), f"{name}-accuracy": Term(right, known, learned=False)}


def sum_by_row(values: Tensor, mask: Tensor) -> Tensor:
    """Sums (batch,) of values that are given for the true positions of a mask (batch, time), in order."""
    rows = torch.arange(len(mask), device=values.device)[:, None].expand_as(mask)[mask]
    return torch.zeros(len(mask), device=values.device, dtype=values.dtype).index_add_(0, rows, values)
