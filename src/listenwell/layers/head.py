"""A classification head: pools an encoder's outputs over all positions and classifies the text."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from listenwell.layers.dropout import Dropout


class Head(nn.Module):
    """Attention pooling followed by a linear classifier.

    α = softmax_t(v·h_t / √width),   logits = W Σ α_t h_t + b
    """

    temperature: Tensor
    """Divides the logits, so that probabilities can be marginalised over. Set by calibration, 1 before it."""

    def __init__(self, width: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.attention = nn.Parameter(torch.zeros(width))  # uniform attention at first
        self.dropout = Dropout(dropout)
        self.out = nn.Linear(width, classes)
        nn.init.normal_(self.out.weight, std=0.02)
        nn.init.zeros_(self.out.bias)
        self.register_buffer("temperature", torch.ones(()))

    def pool(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """The mean over positions, weighted by exp(v·h / √width): (batch, time, width) to (batch, width)."""
        scores = hidden @ self.attention * hidden.shape[-1] ** -0.5
        weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        return (weights[:, None] @ hidden)[:, 0]

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Uncalibrated logits (batch, classes)."""
        return self.out(self.dropout(self.pool(hidden, mask)))

    def log_probs(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Calibrated log-probabilities (batch, classes)."""
        return (self(hidden, mask) / self.temperature).log_softmax(dim=-1)
