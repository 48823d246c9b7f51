"""Reading a text in parts with a causal language model of the transformers library, with a key-value cache.

For backbones that the fast engine (`llama_engine`) does not support, and for training. A prefix that several texts
continue is read once and shared by all of them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

Memory = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, (batch, heads, time, width)."""


def read_on(backbone: Any, tokens: Tensor, known: Tensor, before: Memory, own: Memory) -> tuple[Tensor, Memory]:
    """The hidden states (batch, time, width) of `tokens` (batch, time), which follow the shared prefix `before` and
    their `own` earlier part; and the keys and values of their own part, including the new ones.

    `known` (batch, time) is True at the real positions of `before`.
    """
    if own:
        known = torch.cat([known, known.new_ones(len(known), own[0][0].shape[2])], dim=1)
    length = tokens.shape[1]
    reading = Reading(before, own)
    output = backbone.base_model(
        input_ids=tokens,
        attention_mask=_visible(known, length),
        position_ids=known.sum(dim=1, keepdim=True) + torch.arange(length, device=known.device),
        past_key_values=reading,
        use_cache=True,
    )
    return output.last_hidden_state, reading.own


def joined(before: Memory, after: Memory) -> Memory:
    """One memory of both parts, the second after the first."""
    return [
        (torch.cat([keys, new_keys], dim=2), torch.cat([values, new_values], dim=2))
        for (keys, values), (new_keys, new_values) in zip(before, after, strict=True)
    ]


def _visible(known: Tensor, length: int) -> Tensor | None:
    """What each of `length` new positions may attend to (batch, 1, length, all); None for the default mask."""
    if not known.shape[1] or (length == 1 and bool(known.all())):
        return None
    causal = known.new_ones(length, length).tril().expand(len(known), -1, -1)
    return torch.cat([known[:, None].expand(-1, length, -1), causal], dim=2)[:, None]


class Reading:
    """A cache for transformers, reduced to the methods that models call, with a prefix and the present text.

    The prefix is not modified, so that many replies can continue one context.
    """

    def __init__(self, before: Memory, own: Memory) -> None:
        self.before, self.own = list(before), list(own)

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new positions, and return those of all positions."""
        if layer < len(self.own):
            old = self.own[layer]
            self.own[layer] = torch.cat([old[0], keys], dim=2), torch.cat([old[1], values], dim=2)
        else:
            self.own.append((keys, values))
        if not self.before:
            return self.own[layer]
        (old_keys, old_values), (new_keys, new_values) = self.before[layer], self.own[layer]
        return torch.cat([old_keys, new_keys], dim=2), torch.cat([old_values, new_values], dim=2)

    def get_seq_length(self, layer: int = 0) -> int:
        return sum(memory[layer][0].shape[2] for memory in (self.before, self.own) if memory)
