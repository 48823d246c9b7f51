"""Multi-head attention on `scaled_dot_product_attention`, with a key-value cache."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PLAIN_MOST = 256
"""Up to this many positions, half-precision training on a CPU is faster with plain products. The fused kernel's
backward pass takes two to five times as long there; the gain shrinks with the length, and the score matrix grows."""


def attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Attention output (batch, heads, time, width). Equal-sized groups of query heads may share keys and values.

    `mask` is (batch, 1 or key heads, 1 or time, memory time), True at positions to attend to.
    """
    groups = query.shape[1] // keys.shape[1]
    learns_half = query.dtype.itemsize == 2 and query.device.type == "cpu" and torch.is_grad_enabled()
    if not learns_half or keys.shape[2] > PLAIN_MOST:
        return F.scaled_dot_product_attention(
            query, keys, values, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=groups > 1
        )
    scaled = query * (query.shape[-1] ** -0.5 if scale is None else scale)
    together = scaled.unflatten(1, (-1, groups)).flatten(2, 3)
    scores = (together @ keys.transpose(-1, -2)).unflatten(2, (groups, -1))
    nothing = torch.finfo(scores.dtype).min  # finite, so that a fully masked row gives some mean; it is not used
    if mask is not None:
        scores = scores.masked_fill(~mask[:, :, None], nothing)
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, nothing)
    mixed = scores.softmax(dim=-1).to(values.dtype).flatten(2, 3) @ values
    return mixed.unflatten(2, (groups, -1)).flatten(1, 2)


@dataclass(slots=True)
class KeyValues:
    """Projected keys and values, each (batch, heads, time, width / heads)."""

    keys: Tensor
    values: Tensor

    def extended(self, more: KeyValues) -> KeyValues:
        return KeyValues(torch.cat([self.keys, more.keys], dim=2), torch.cat([self.values, more.values], dim=2))

    def repeated(self, times: int) -> KeyValues:
        """The whole batch, repeated."""
        return self if times == 1 else KeyValues(*(part.repeat(times, 1, 1, 1) for part in (self.keys, self.values)))


class Attention(nn.Module):
    """Queries from one sequence, keys and values from the same or another one.

    Keys and values are projected separately from the queries, so that a decoder projects its memory once
    and caches earlier projections. `inner` is the total width of all heads, if it is not the model's.
    """

    def __init__(self, width: int, heads: int, memory_width: int | None = None, inner: int = 0) -> None:
        super().__init__()
        inner = inner or width
        if inner % heads:
            name = "width" if inner == width else "attention_width"
            raise ValueError(f"{name} {inner} does not divide into {heads} heads")
        self.heads = heads
        self.query = nn.Linear(width, inner)
        self.key_value = nn.Linear(memory_width or width, 2 * inner)
        self.out = nn.Linear(inner, width)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def project(self, memory: Tensor) -> KeyValues:
        """(batch, time, memory width) to keys and values."""
        keys, values = self.key_value(memory).chunk(2, dim=-1)
        return KeyValues(self._split(keys), self._split(values))

    def forward(self, x: Tensor, memory: KeyValues, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Returns (batch, time, width). `mask` is (batch, memory time), True at positions to attend to."""
        seen = None if mask is None else mask[:, None, None, :]
        attended = attend(self._split(self.query(x)), memory.keys, memory.values, seen, causal)
        return self.out(attended.transpose(1, 2).flatten(2))
