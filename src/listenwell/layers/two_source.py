"""A decoder that attends to two sources: the encoded text, and a conditioning vector (Dual-Emp)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from listenwell.layers.attention import Attention, KeyValues
from listenwell.layers.dropout import Dropout
from listenwell.layers.transformer import DecoderStack, FeedForward


@dataclass(slots=True)
class TwoSourceMemory:
    """What a decoder attends to, projected once, one entry per layer: the source H, and E[z]."""

    source: list[KeyValues]
    mask: Tensor
    consensus: list[Tensor]
    """C_Z, (batch, 1, width): the result of attending to E[z], whatever the query."""
    embedding: Tensor
    """E[z], (batch, width): the decoder's first input."""


class OneKeyAttention(nn.Module):
    """Attention to a single position (Eq 7): every query returns its value, so there are no queries and keys."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.value(x))


class TwoSourceLayer(nn.Module):
    """A decoder layer that attends to the source and to E[z] separately, and joins both (Eqs 6–8).

    E[z] is a single position, so that the softmax of Eq 7 is always 1: C_Z is the same at every step.
    """

    def __init__(self, width: int, heads: int, inner: int, dropout: float, attention_width: int = 0) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = Attention(width, heads, inner=attention_width)
        self.cross_norm = nn.LayerNorm(width)
        self.source_attention = Attention(width, heads, inner=attention_width)
        self.consensus_attention = OneKeyAttention(width)
        self.join_norm = nn.LayerNorm(2 * width)
        self.join = FeedForward(2 * width, inner, dropout)
        self.join.down = nn.Linear(inner, width)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Tensor, source: KeyValues, mask: Tensor | None, consensus: Tensor, past: KeyValues | None
    ) -> tuple[Tensor, KeyValues]:
        normed = self.self_norm(x)
        now = self.self_attention.project(normed)
        seen = now if past is None else past.extended(now)
        x = x + self.dropout(self.self_attention(normed, seen, causal=past is None and x.shape[1] > 1))
        x = x + self.dropout(self.source_attention(self.cross_norm(x), source, mask))  # C_H, (6)
        joined = torch.cat([x, consensus.expand(-1, x.shape[1], -1)], dim=-1)
        return x + self.dropout(self.join(self.join_norm(joined))), seen  # (8)

    def outputs(self) -> tuple[nn.Linear, ...]:
        return self.self_attention.out, self.source_attention.out, self.join.down


class TwoSourceDecoder(DecoderStack):
    """A stack of `TwoSourceLayer` with a final norm."""

    def __init__(
        self, layers: int, width: int, heads: int, inner: int, dropout: float, attention_width: int = 0
    ) -> None:
        sizes = (width, heads, inner, dropout, attention_width)
        super().__init__((TwoSourceLayer(*sizes) for _ in range(layers)), width)

    def remember(self, hidden: Tensor, mask: Tensor, embedding: Tensor) -> TwoSourceMemory:
        """`embedding` may have a multiple of the rows of `hidden`: each source is decoded under several z."""
        times = len(embedding) // len(hidden)
        source = [layer.source_attention.project(hidden).repeated(times) for layer in self.layers]  # type: ignore[union-attr, operator]
        consensus = [layer.consensus_attention(embedding)[:, None] for layer in self.layers]  # type: ignore[operator]
        return TwoSourceMemory(source, mask.repeat(times, 1), consensus, embedding)

    def forward(
        self, x: Tensor, memory: TwoSourceMemory, past: list[KeyValues] | None = None
    ) -> tuple[Tensor, list[KeyValues]]:
        """A whole sequence (past is None), or one more position after what `past` holds."""
        mask = None if bool(memory.mask.all()) else memory.mask
        caches = []
        for index, layer in enumerate(self.layers):
            before = None if past is None else past[index]
            x, cache = layer(x, memory.source[index], mask, memory.consensus[index], before)
            caches.append(cache)
        return self.norm(x), caches
