"""Dropout with one random byte per element. On a CPU, generating the noise is most of the cost of dropout."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Like torch's, with the rate rounded to the nearest 1/256; the scale matches the rounded rate exactly."""
    threshold = min(round(rate * 256), 255)  # something is always kept: dropping all would divide by zero
    if not training or threshold <= 0:
        return x
    if x.device.type != "cpu":
        return nn.functional.dropout(x, threshold / 256)
    # One 64-bit number gives eight bytes; one random float per element would take an eighth of a training step.
    noise = torch.empty(math.ceil(x.numel() / 8), dtype=torch.int64).random_(-(2**63), None)
    keep = (noise.view(torch.uint8)[: x.numel()] >= threshold).view(x.shape)
    return x * (keep * (256 / (256 - threshold))).to(x.dtype)


class Dropout(nn.Module):
    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ValueError(f"a dropout rate is at least 0 and below 1, found {rate}")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.rate, self.training)
