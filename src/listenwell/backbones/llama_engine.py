"""Fast inference for a Llama-like language model, as a plain function over its weights, for interactive replies.

The same numbers as transformers, in less time: query, key and value are one product, as are the two projections of the
gated MLP; rotary embeddings take one multiplication; keys and values of many candidates grow in one block of memory.
It is built from a state dict, so adapters must be merged beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell.layers.cpu import with_spare_rows
from listenwell.layers.packing import Places

ROOM = 64
"""How many more tokens a cache has room for before it must be copied to a bigger one."""

CHOSEN = 512
"""How many positions' logits to compute at once: a hundred megabytes for a vocabulary of 49,152."""

KNOWN = re.compile(
    r"(lm_head|model\.(embed_tokens|norm|layers\.\d+\.(\w+layernorm|(self_attn|mlp)\.\w+_proj)))\.weight"
)
"""The supported weights: no biases, no adapters, no norms of queries."""

Product = Callable[[Tensor], Tensor]
"""Product with a weight matrix: (…, in) to (…, out)."""


def fp32(weight: Tensor) -> Product:
    """In float32, as exact as transformers."""
    return lambda hidden: F.linear(hidden, weight)


def fp16(weight: Tensor) -> Product:
    """Weights in float16, everything else in float32: a token's time is mostly reading the weights, which this halves.

    Falls back to float32 if torch has no such product for the processor.
    """
    if not has_fp16():
        return fp32(weight)
    packed = torch.ops.quantized.linear_prepack_fp16(weight, None)
    return lambda hidden: torch.ops.quantized.linear_dynamic_fp16(hidden, packed)


def bf16(weight: Tensor) -> Product:
    """Weights and activations in bfloat16, for processors that multiply it faster: batches of many texts are bound by
    the products.

    The output layer stays in float32.
    """
    rounded = weight.to(torch.bfloat16)

    def product(hidden: Tensor) -> Tensor:
        rows = hidden.to(torch.bfloat16).flatten(0, -2)
        output = F.linear(with_spare_rows(rows), rounded)
        return output[: len(rows)].float().unflatten(0, hidden.shape[:-1])

    return product


def as_fp16_if_exact(weight: Tensor) -> Tensor:
    """Convert to float16 if that is lossless, as for weights stored that way; otherwise unchanged."""
    rounded = weight.half()
    # Some rows at a time: comparing all at once would take another copy of the table.
    same = (torch.equal(few.float(), rows) for few, rows in zip(rounded.split(4096), weight.split(4096), strict=True))
    return rounded if all(same) else weight


def has_fp16() -> bool:
    """Whether torch has a product with float16 weights for this processor."""
    try:
        torch.ops.quantized.linear_prepack_fp16(torch.zeros(1, 1), None)
    except (AttributeError, RuntimeError):
        return False
    return True


Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Attention of a layer, with queries, keys and values (positions, heads, width): the output (positions, out)."""


@dataclass
class Cache:
    """The key-value cache of the tokens read so far, one row per candidate."""

    memory: Tensor
    """(layers, 2, batch, heads, room, width): keys and values."""
    mask: Tensor
    """(batch, room): True where a real token was read."""
    length: int
    """How many columns are filled."""
    positions: Tensor
    """(batch,): how many real tokens each row has read."""
    padded: bool
    """Whether any row has an empty column, so that attention needs the mask."""
    logits: Tensor
    """(batch, vocabulary): logits of the next token."""

    def select(self, rows: Tensor) -> Cache:
        """A copy of these rows, in this order."""
        picked = {name: getattr(self, name)[rows] for name in ("mask", "positions", "logits")}
        return replace(self, memory=self.memory.index_select(2, rows), **picked)

    def repeat(self, times: int) -> Cache:
        """Repeat every row this many times, copies next to each other."""
        return self.select(torch.arange(len(self.positions)).repeat_interleave(times))


CacheRow = tuple[Cache, int]
"""One row of a cache."""


class LlamaEngine:
    """p(next token | tokens) of a Llama-like model; the caller holds the cache."""

    def __init__(
        self,
        config: Mapping[str, Any],
        weights: Mapping[str, Tensor],
        product: Callable[[Tensor], Product] = fp32,
        words: int | None = None,
    ) -> None:
        """`words` is how many rows of the tables are used for words, all if not given; the others are ignored.

        Each weight is accessed only when its part is built, so that a mapping can load or compute it lazily.
        """
        check_supported(config, weights)
        self.product = product
        self.width: int = config["hidden_size"]
        self.layers: int = config["num_hidden_layers"]
        self.heads: int = config["num_attention_heads"]
        self.memories: int = config.get("num_key_value_heads") or self.heads
        self.head_width: int = config.get("head_dim") or self.width // self.heads
        self.smallest: float = config["rms_norm_eps"]
        self.longest: int = config["max_position_embeddings"]
        table = weights["model.embed_tokens.weight"].detach()[:words].float()
        tied = config.get("tie_word_embeddings", False) or "lm_head.weight" not in weights
        # The output layer is not rounded to bf16's eight bits: that would create ties.
        self.out = (fp32 if product is bf16 else product)(
            table if tied else weights["lm_head.weight"].detach()[:words].float()
        )
        # If the product has the table in float16, no float32 copy is needed.
        self.words = as_fp16_if_exact(table) if product is fp16 and has_fp16() else table
        self.last_norm = weights["model.norm.weight"].detach().float()
        self.blocks = [self._block(index, weights) for index in range(self.layers)]
        self.turns = self._turns(config)

    @classmethod
    def of(cls, model: Any, product: Callable[[Tensor], Product] = fp32) -> LlamaEngine:
        """From a LlamaForCausalLM whose adapters, if any, have been merged."""
        return cls(model.config.to_dict(), model.state_dict(), product)

    @torch.inference_mode()
    def prefill(self, tokens: Tensor, mask: Tensor, room: int = ROOM) -> tuple[Cache, Tensor]:
        """Read (batch, time); mask is False at padding, on either side. Returns the cache and the next logits."""
        cache, hidden = self.understand(tokens, mask, room)
        last = (mask * torch.arange(1, mask.shape[1] + 1)).argmax(dim=1)
        cache.logits = self.out(hidden[torch.arange(len(hidden)), last])
        return cache, cache.logits

    @torch.inference_mode()
    def understand(self, tokens: Tensor, mask: Tensor, room: int = ROOM) -> tuple[Cache, Tensor]:
        """The same without the output layer: returns the hidden state of each token (batch, time, width)."""
        batch, time = tokens.shape
        memory = torch.empty(self.layers, 2, batch, self.memories, time + room, self.head_width)
        remembered = torch.zeros(batch, time + room, dtype=torch.bool)
        nowhere = torch.zeros(batch, dtype=torch.long)
        cache = Cache(memory, remembered, 0, nowhere, False, torch.empty(batch, 0))
        return cache, self._settled(self._read(tokens, mask, cache))

    @torch.inference_mode()
    def go_on(self, tokens: Tensor, mask: Tensor, cache: Cache) -> None:
        """Read more tokens (batch, time) into a cache that has room for them."""
        self._read(tokens, mask, cache)

    @torch.inference_mode()
    def step(self, tokens: Tensor, cache: Cache) -> Tensor:
        """Read one token per row (batch,) into the cache; returns the next logits."""
        if cache.length == cache.mask.shape[1]:
            cache.memory = F.pad(cache.memory, (0, 0, 0, cache.length))
            cache.mask = F.pad(cache.mask, (0, cache.length))
        here = torch.ones(len(tokens), 1, dtype=torch.bool)
        cache.logits = self.choose(self._read(tokens[:, None], here, cache)[:, 0])
        return cache.logits

    @torch.inference_mode()
    def score(
        self,
        prefix: Cache,
        tokens: Tensor,
        mask: Tensor,
        rows: Tensor | None = None,
        counted: Tensor | None = None,
    ) -> Tensor:
        """−log p of continuations (batch, time), padded on the right; the prefix is not modified.

        `rows` says which row of the prefix each continues; by default the corresponding one, or the only one if there
        is just one. `counted` says which tokens to sum over, by default all; if it excludes all first tokens, the
        prefix needs no logits.
        """
        batch, time = tokens.shape
        if rows is None and len(prefix.positions) == 1:
            rows = torch.zeros(batch, dtype=torch.long)
        counted = mask if counted is None else counted & mask
        nll = torch.zeros(batch, time)
        if bool((first := counted[:, 0]).any()):
            logits = prefix.logits if rows is None else prefix.logits[rows]
            nll[first, 0] = -_log_p(logits[first], tokens[first, 0])
        if time > 1:
            hidden = self._read(tokens[:, :-1], mask[:, :-1], self.with_room(prefix, rows, time - 1))
            # Only counted positions go through the output layer, some at a time: it is the widest product of all.
            later = counted[:, 1:]
            reached = zip(hidden[later].split(CHOSEN), tokens[:, 1:][later].split(CHOSEN), strict=True)
            nll[:, 1:][later] = torch.cat([-_log_p(self.choose(some), targets) for some, targets in reached])
        return nll.sum(dim=1)

    def with_room(self, prefix: Cache, rows: Tensor | None, more: int) -> Cache:
        """A copy of rows of a prefix, all if not given, with room for more, so that the prefix is not modified."""
        rows = torch.arange(len(prefix.positions)) if rows is None else rows
        layers, both, _, heads, _, width = prefix.memory.shape
        memory = torch.empty(layers, both, len(rows), heads, prefix.length + more, width)
        filled = prefix.memory[..., : prefix.length, :]
        for layer in range(layers):  # one at a time, to limit the memory needed for copies
            memory[layer, ..., : prefix.length, :] = filled[layer].index_select(1, rows)
        mask = F.pad(prefix.mask[rows, : prefix.length], (0, more))
        return replace(prefix, memory=memory, mask=mask, positions=prefix.positions[rows], logits=prefix.logits[rows])

    def joined(self, rows: Sequence[CacheRow], more: int) -> Cache:
        """A copy of rows of several caches, padded on the right at most, as one cache with room for more."""
        lengths = [int(cache.positions[row]) for cache, row in rows]
        length = max(lengths)
        memory = torch.empty(self.layers, 2, len(rows), self.memories, length + more, self.head_width)
        for place, ((cache, row), end) in enumerate(zip(rows, lengths, strict=True)):
            memory[:, :, place, :, :end] = cache.memory[:, :, row, :, :end]
            memory[:, :, place, :, end:length] = 0  # masked, but NaNs would spread
        positions = torch.tensor(lengths)
        mask = torch.arange(length + more) < positions[:, None]
        return Cache(memory, mask, length, positions, min(lengths) < length, torch.empty(len(rows), 0))

    def _block(self, index: int, weights: Mapping[str, Tensor]) -> tuple[Product, Product, Product, Product]:
        """The four products of a layer; the scales of norms are folded into the following matrix."""

        def weight(name: str) -> Tensor:
            return weights[f"model.layers.{index}.{name}.weight"].detach().float()

        turning = [self._neighbours(weight(f"self_attn.{which}_proj")) for which in "qk"]
        attended = torch.cat([*turning, weight("self_attn.v_proj")]) * weight("input_layernorm")
        gated = torch.cat([weight("mlp.gate_proj"), weight("mlp.up_proj")]) * weight("post_attention_layernorm")
        matrices = (attended, weight("self_attn.o_proj"), gated, weight("mlp.down_proj"))
        query, mix, gate, down = map(self.product, matrices)
        return query, mix, gate, down

    def _neighbours(self, weight: Tensor) -> Tensor:
        """Make the two dimensions of each rotary pair adjacent: in queries and keys alike, so their products stay."""
        halves = weight.unflatten(0, (-1, 2, self.head_width // 2))
        return halves.transpose(1, 2).flatten(0, 2)

    def _turns(self, config: Mapping[str, Any]) -> Tensor:
        """(positions, 1, width / 2): the rotation of each pair of dimensions at each position."""
        rope_config = config.get("rope_parameters") or {}
        base = rope_config.get("rope_theta") or config.get("rope_theta") or 10_000.0
        speeds = base ** -(torch.arange(0, self.head_width, 2).float() / self.head_width)
        angles = torch.arange(self.longest).float()[:, None, None] * speeds
        return torch.polar(torch.ones_like(angles), angles)

    def _read(self, tokens: Tensor, mask: Tensor, cache: Cache) -> Tensor:
        """Hidden states (batch, time, width) of new tokens, whose keys and values are added to the cache.

        Only real positions go through the products; the padded form is used only for attention.
        """
        begin, end = cache.length, cache.length + tokens.shape[1]
        places = cache.positions[:, None] + (mask.cumsum(dim=1) - 1).clamp_min(0)
        if int(places.max()) >= self.longest:
            raise ValueError(f"the text is longer than the {self.longest} tokens this model can read")
        cache.mask[:, begin:end] = mask
        real = Places(mask)
        cache.padded = cache.padded or real.padded
        seen = self._seen(cache, begin, end)

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            memory = cache.memory[layer]
            memory[0, :, :, begin:end] = real.spread(keys).transpose(1, 2)
            memory[1, :, :, begin:end] = real.spread(values).transpose(1, 2)
            return real.pack(self.attend(real.spread(queries), memory[:, :, :, :end], seen))

        hidden = self.run(real.pack(tokens), real.pack(places), attend)
        cache.length = end
        cache.positions = cache.positions + mask.sum(dim=1)
        return real.spread(hidden)

    def run(self, tokens: Tensor, places: Tensor, attend: Attend) -> Tensor:
        """Run all layers on tokens (positions,) at their places in their texts: returns (positions, width)."""
        turns, hidden = self.turns[places], F.embedding(tokens, self.words).float()
        for layer, (query, mix, gate, down) in enumerate(self.blocks):
            projected = query(self._norm(hidden)).unflatten(-1, (-1, self.head_width))
            query_keys, values = projected.split([self.heads + self.memories, self.memories], dim=-2)
            pairs = torch.view_as_complex(query_keys.unflatten(-1, (-1, 2)))
            rotated = torch.view_as_real(pairs * turns).flatten(-2)
            queries, keys = rotated.split([self.heads, self.memories], dim=-2)
            hidden += mix(attend(layer, queries, keys, values))
            gates, ups = gate(self._norm(hidden)).chunk(2, dim=-1)
            hidden += down(F.silu(gates, inplace=True) * ups)
        return hidden

    def _seen(self, cache: Cache, begin: int, end: int) -> Tensor | None:
        """The additive mask of the columns that each new token may attend to; None if it is all of them."""
        time = end - begin
        if time == 1 and not cache.padded:
            return None
        seen = torch.ones(time, end, dtype=torch.bool).tril(begin)[None]
        if cache.padded:
            # A padded position attends to itself, so that its softmax is not empty; nothing attends to it.
            itself = torch.zeros(time, end, dtype=torch.bool)
            itself[torch.arange(time), torch.arange(begin, end)] = True
            seen = seen & cache.mask[:, None, :end] | itself
        # As an additive mask, made once and not at every layer.
        seen = torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf)
        # Heads that share keys and values are concatenated in the time dimension.
        return seen[:, None, None].expand(-1, -1, self.heads // self.memories, -1, -1).flatten(2, 3)

    def attend(self, query: Tensor, memory: Tensor, seen: Tensor | None) -> Tensor:
        """Heads that share keys and values are treated as extra queries of one head, so nothing is copied for them."""
        batch, time = query.shape[:2]
        shared = query.unflatten(2, (self.memories, -1)).permute(0, 2, 3, 1, 4).flatten(2, 3)
        mixed = F.scaled_dot_product_attention(shared, memory[0], memory[1], attn_mask=seen)
        return mixed.unflatten(2, (-1, time)).permute(0, 3, 1, 2, 4).reshape(batch, time, -1)

    def _norm(self, hidden: Tensor) -> Tensor:
        return F.rms_norm(hidden, (self.width,), eps=self.smallest)

    def _settled(self, hidden: Tensor) -> Tensor:
        """Apply the final norm: the input of the output layer, and the output of transformers' base model."""
        return self._norm(hidden) * self.last_norm

    def choose(self, hidden: Tensor) -> Tensor:
        """The next token's logits at each position."""
        return self.out(self._settled(hidden))


def _log_p(logits: Tensor, tokens: Tensor) -> Tensor:
    return logits.gather(-1, tokens[..., None])[..., 0] - logits.logsumexp(dim=-1)


def check_supported(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Raise ValueError for unsupported models: another family, biases, scaled positions, adapters."""
    family = config.get("model_type")
    if family != "llama":
        raise ValueError(f"the Llama engine runs models of the llama family, not {family}")
    if (act := config.get("hidden_act", "silu")) != "silu":
        raise ValueError(f"the Llama engine computes silu, not {act}")
    rope_config = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if (rope := rope_config.get("rope_type", "default")) != "default":
        raise ValueError(f"the Llama engine turns positions the default way, not by {rope}")
    if others := [name for name in weights if not KNOWN.fullmatch(name)]:
        raise ValueError(f"the Llama engine has no place for {others[0]} (adapters must be merged first)")
