"""Pre-norm encoder and decoder blocks, which need no learning rate warm-up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.layers.attention import Attention, KeyValues
from listenwell.layers.dropout import Dropout

Activation = Callable[[Tensor], Tensor]
"""Between the two linear layers of a feed-forward layer."""


def sinusoids(length: int, width: int, device: torch.device | None = None) -> Tensor:
    """Vaswani's sinusoidal position embeddings (length, width): any length, no parameters."""
    rates = torch.exp(torch.arange(0, width, 2, device=device) * (-math.log(10_000.0) / width))
    angles = torch.arange(length, device=device)[:, None] * rates
    table = torch.empty(length, width, device=device)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : width // 2]
    return table


def mean_over(x: Tensor, mask: Tensor) -> Tensor:
    """The mean of the real positions: (batch, time, width) to (batch, width)."""
    weights = mask.to(x.dtype)[..., None]
    return (x * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1.0)


class FeedForward(nn.Module):
    def __init__(self, width: int, inner: int, dropout: float, activation: Activation = F.relu) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.dropout = Dropout(dropout)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.dropout(self.activation(self.up(x))))


class EncoderLayer(nn.Module):
    def __init__(
        self,
        width: int,
        heads: int,
        inner: int,
        dropout: float,
        activation: Activation = F.relu,
        attention_width: int = 0,
    ) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads, inner=attention_width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = FeedForward(width, inner, dropout, activation)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        normed = self.attention_norm(x)
        x = x + self.dropout(self.attention(normed, self.attention.project(normed), mask))
        return x + self.dropout(self.feed(self.feed_norm(x)))


class Encoder(nn.Module):
    """(batch, time, width) to the same shape; every position attends to every real position."""

    def __init__(
        self,
        layers: int,
        width: int,
        heads: int,
        inner: int,
        dropout: float,
        activation: Activation = F.relu,
        attention_width: int = 0,
    ) -> None:
        super().__init__()
        sizes = (width, heads, inner, dropout, activation, attention_width)
        self.layers = nn.ModuleList(EncoderLayer(*sizes) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        # Without padding no mask is needed, and the kernel is faster without one.
        needed = None if bool(mask.all()) else mask
        for layer in self.layers:
            x = layer(x, needed)
        return self.norm(x)


class DecoderLayer(nn.Module):
    def __init__(
        self,
        width: int,
        heads: int,
        inner: int,
        dropout: float,
        activation: Activation = F.relu,
        attention_width: int = 0,
    ) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = Attention(width, heads, inner=attention_width)
        self.cross_norm = nn.LayerNorm(width)
        self.cross_attention = Attention(width, heads, inner=attention_width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = FeedForward(width, inner, dropout, activation)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Tensor, memory: KeyValues, mask: Tensor | None, past: KeyValues | None
    ) -> tuple[Tensor, KeyValues]:
        normed = self.self_norm(x)
        now = self.self_attention.project(normed)
        seen = now if past is None else past.extended(now)
        # A single new position attends to the whole cache, so only a whole sequence needs the causal mask.
        x = x + self.dropout(self.self_attention(normed, seen, causal=past is None and x.shape[1] > 1))
        x = x + self.dropout(self.cross_attention(self.cross_norm(x), memory, mask))
        return x + self.dropout(self.feed(self.feed_norm(x))), seen

    def outputs(self) -> tuple[nn.Linear, ...]:
        return self.self_attention.out, self.cross_attention.out, self.feed.down


@dataclass(slots=True)
class Memory:
    """What a decoder attends to, projected once: one KeyValues per layer, and the mask."""

    layers: list[KeyValues]
    mask: Tensor


class DecoderStack(nn.Module):
    """Decoder layers with a final norm. A layer's `outputs()` are the projections that add to the residual stream."""

    def __init__(self, layers: Iterable[nn.Module], width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(width)

    @property
    def output_weight(self) -> Tensor:
        """The last weight that all of its output passes through."""
        return self.norm.weight

    @torch.no_grad()
    def start_silent(self) -> None:
        """Zero the output projections, so that the layers initially add nothing to their input."""
        for layer in self.layers:
            for last in layer.outputs():  # type: ignore[operator]
                for parameter in last.parameters():
                    parameter.zero_()


class Decoder(DecoderStack):
    """Causal self-attention and cross-attention to a memory."""

    def __init__(
        self,
        layers: int,
        width: int,
        heads: int,
        inner: int,
        dropout: float,
        activation: Activation = F.relu,
        attention_width: int = 0,
    ) -> None:
        sizes = (width, heads, inner, dropout, activation, attention_width)
        super().__init__((DecoderLayer(*sizes) for _ in range(layers)), width)

    def remember(self, memory: Tensor, mask: Tensor) -> Memory:
        """Project the memory for every layer, once for all steps."""
        return Memory([layer.cross_attention.project(memory) for layer in self.layers], mask)  # type: ignore[union-attr, operator]

    def forward(self, x: Tensor, memory: Memory, past: list[KeyValues] | None = None) -> tuple[Tensor, list[KeyValues]]:
        """Run a whole sequence (past is None), or one more position after the cached `past`."""
        mask = None if bool(memory.mask.all()) else memory.mask
        caches = []
        for index, layer in enumerate(self.layers):
            x, cache = layer(x, memory.layers[index], mask, None if past is None else past[index])
            caches.append(cache)
        return self.norm(x), caches
