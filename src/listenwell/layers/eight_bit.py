"""8-bit weights, as in shipped checkpoints."""

from __future__ import annotations

import torch
from torch import Tensor

SCALE = ".8bit-scale"
"""Name suffix of the tensor with the scales of a matrix's rows."""


def to_eight_bit(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Quantize matrices, and stacks of them, to int8 with one scale per row; vectors are left as they are."""
    small: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim >= 2 and weight.is_floating_point():
            scale = weight.abs().amax(dim=-1, keepdim=True).clamp_min(1e-12) / 127
            small[name] = (weight / scale).round().to(torch.int8)
            small[name + SCALE] = scale.to(torch.float32)
        else:
            small[name] = weight
    return small


def from_eight_bit(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Dequantize the weights of an 8-bit file; other weights pass unchanged."""
    return {
        name: weight.float() * weights[name + SCALE] if name + SCALE in weights else weight
        for name, weight in weights.items()
        if not name.endswith(SCALE)
    }
