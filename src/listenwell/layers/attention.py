"""Multi-head attention on `scaled_dot_product_attention`, with a key-value cache."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(slots=True)
class KeyValues:
    """Projected keys and values, each (batch, heads, time, width / heads)."""

    keys: Tensor
    values: Tensor

    def extended(self, more: KeyValues) -> KeyValues:
        return KeyValues(torch.cat([self.keys, more.keys], dim=2), torch.cat([self.values, more.values], dim=2))


class Attention(nn.Module):
    """Queries from one sequence, keys and values from the same or another one.

    Keys and values are projected apart from the queries, so that a decoder projects its memory once
    and a cache holds what was projected before.
    """

    def __init__(self, width: int, heads: int, memory_width: int | None = None) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} does not divide into {heads} heads")
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(memory_width or width, 2 * width)
        self.out = nn.Linear(width, width)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def project(self, memory: Tensor) -> KeyValues:
        """(batch, time, memory width) to keys and values."""
        keys, values = self.key_value(memory).chunk(2, dim=-1)
        return KeyValues(self._split(keys), self._split(values))

    def forward(self, x: Tensor, memory: KeyValues, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """(batch, time, width). `mask` is (batch, memory time), True where there is something to attend to."""
        attended = F.scaled_dot_product_attention(
            self._split(self.query(x)),
            memory.keys,
            memory.values,
            attn_mask=None if mask is None else mask[:, None, None, :],
            is_causal=causal,
        )
        return self.out(attended.transpose(1, 2).flatten(2))
