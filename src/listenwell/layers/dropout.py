"""Dropout that draws one byte an element. On a CPU, drawing the noise is most of what dropout costs."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """As torch's, with the rate rounded to the nearest 1/256; the scale fits the rounded rate exactly."""
    threshold = min(round(rate * 256), 255)  # something is always kept: all dropped would divide by zero
    if not training or threshold <= 0:
        return x
    if x.device.type != "cpu":
        return nn.functional.dropout(x, threshold / 256)
    # One 64-bit draw gives eight bytes; drawing a float an element would take an eighth of a training step.
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
