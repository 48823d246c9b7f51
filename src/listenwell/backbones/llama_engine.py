"""A Llama-like language model as a plain function over its weights, for replies that are written while someone waits.

The same numbers as transformers gives, in less time: query, key and value are one product, and so are the two halves
of the gate; positions turn by one multiplication; keys and values of many candidates grow in one block of memory.
It is made of a state dict, so adapters are merged before, not after.
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
"""For how many more tokens a cache has room before it must be copied into a bigger one."""

CHOSEN = 512
"""For so many positions at once all words are weighed: a hundred megabytes for a vocabulary of 49,152."""

KNOWN = re.compile(
    r"(lm_head|model\.(embed_tokens|norm|layers\.\d+\.(\w+layernorm|(self_attn|mlp)\.\w+_proj)))\.weight"
)
"""The weights that have a place here: no biases, no adapters, no norm of queries."""

Product = Callable[[Tensor], Tensor]
"""What a matrix makes of (…, in): (…, out)."""


def fp32(weight: Tensor) -> Product:
    """In float32: as exact as transformers."""
    return lambda hidden: F.linear(hidden, weight)


def fp16(weight: Tensor) -> Product:
    """Weights in float16, all else in float32: a token waits for the weights to be read, and this halves them.

    In float32 where torch has no such product for the processor.
    """
    if not has_fp16():
        return fp32(weight)
    packed = torch.ops.quantized.linear_prepack_fp16(weight, None)
    return lambda hidden: torch.ops.quantized.linear_dynamic_fp16(hidden, packed)


def bf16(weight: Tensor) -> Product:
    """Both in bfloat16, for processors that multiply it faster: many texts at once wait for the products.

    The choice of words stays in float32.
    """
    rounded = weight.to(torch.bfloat16)

    def product(hidden: Tensor) -> Tensor:
        rows = hidden.to(torch.bfloat16).flatten(0, -2)
        output = F.linear(with_spare_rows(rows), rounded)
        return output[: len(rows)].float().unflatten(0, hidden.shape[:-1])

    return product


def as_fp16_if_exact(weight: Tensor) -> Tensor:
    """In float16 where that loses nothing, as of weights that were stored so; else as it is."""
    rounded = weight.half()
    # Some rows at a time: to compare all would take another copy of the table.
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
"""For a layer, and queries, keys and values (positions, heads, width): what each position finds, (positions, out)."""


@dataclass
class Cache:
    """What a model remembers of the tokens it has read, one row per candidate."""

    memory: Tensor
    """(layers, 2, batch, heads, room, width): keys and values."""
    mask: Tensor
    """(batch, room): where a real token was read."""
    length: int
    """How many columns are filled."""
    positions: Tensor
    """(batch,): how many real tokens each row has read."""
    padded: bool
    """Some column of some row is empty, so that attention needs the mask."""
    logits: Tensor
    """(batch, vocabulary): of the token that comes next."""

    def select(self, rows: Tensor) -> Cache:
        """These rows, in this order, in memory of their own."""
        picked = {name: getattr(self, name)[rows] for name in ("mask", "positions", "logits")}
        return replace(self, memory=self.memory.index_select(2, rows), **picked)

    def repeat(self, times: int) -> Cache:
        """Every row so many times, one beside the other."""
        return self.select(torch.arange(len(self.positions)).repeat_interleave(times))


CacheRow = tuple[Cache, int]
"""One row of what was read."""


class LlamaEngine:
    """p(next token | tokens) of a Llama-like model, with its memory in the caller's hands."""

    def __init__(
        self,
        config: Mapping[str, Any],
        weights: Mapping[str, Tensor],
        product: Callable[[Tensor], Product] = fp32,
        words: int | None = None,
    ) -> None:
        """`words` is how many rows of the tables stand for a word, all if not given: others take no part.

        Every weight is asked for when its place is made, so that a mapping may read or compute it only then.
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
        # What words are chosen by is not rounded to eight bits: equals would stand where there are none.
        self.out = (fp32 if product is bf16 else product)(
            table if tied else weights["lm_head.weight"].detach()[:words].float()
        )
        # Where the product has the table in float16, none need be kept in float32.
        self.words = as_fp16_if_exact(table) if product is fp16 and has_fp16() else table
        self.last_norm = weights["model.norm.weight"].detach().float()
        self.blocks = [self._block(index, weights) for index in range(self.layers)]
        self.turns = self._turns(config)

    @classmethod
    def of(cls, model: Any, product: Callable[[Tensor], Product] = fp32) -> LlamaEngine:
        """Of a LlamaForCausalLM; its adapters, if it had any, are merged into it."""
        return cls(model.config.to_dict(), model.state_dict(), product)

    @torch.inference_mode()
    def prefill(self, tokens: Tensor, mask: Tensor, room: int = ROOM) -> tuple[Cache, Tensor]:
        """Reads (batch, time); mask is False at padding, which may be on either side. With it, what comes next."""
        cache, hidden = self.understand(tokens, mask, room)
        last = (mask * torch.arange(1, mask.shape[1] + 1)).argmax(dim=1)
        cache.logits = self.out(hidden[torch.arange(len(hidden)), last])
        return cache, cache.logits

    @torch.inference_mode()
    def understand(self, tokens: Tensor, mask: Tensor, room: int = ROOM) -> tuple[Cache, Tensor]:
        """The same without a choice of words: what is made of each token, (batch, time, width)."""
        batch, time = tokens.shape
        memory = torch.empty(self.layers, 2, batch, self.memories, time + room, self.head_width)
        remembered = torch.zeros(batch, time + room, dtype=torch.bool)
        nowhere = torch.zeros(batch, dtype=torch.long)
        cache = Cache(memory, remembered, 0, nowhere, False, torch.empty(batch, 0))
        return cache, self._settled(self._read(tokens, mask, cache))

    @torch.inference_mode()
    def go_on(self, tokens: Tensor, mask: Tensor, cache: Cache) -> None:
        """Reads more (batch, time) into a cache that has room for it."""
        self._read(tokens, mask, cache)

    @torch.inference_mode()
    def step(self, tokens: Tensor, cache: Cache) -> Tensor:
        """Reads one token per row (batch,) into the cache; the logits of what comes next."""
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
        """−log p of continuations (batch, time), padded on the right; the prefix is kept.

        `rows` says which row of the prefix each continues: the row beside it if not given, and the only one if there
        is but one. `counted` says which tokens the sum is over, all of them if not given; where no first one is, the
        prefix need not have chosen what comes next.
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
            # Only what is counted goes through the vocabulary, some at a time: it is the widest product of all.
            later = counted[:, 1:]
            reached = zip(hidden[later].split(CHOSEN), tokens[:, 1:][later].split(CHOSEN), strict=True)
            nll[:, 1:][later] = torch.cat([-_log_p(self.choose(some), targets) for some, targets in reached])
        return nll.sum(dim=1)

    def with_room(self, prefix: Cache, rows: Tensor | None, more: int) -> Cache:
        """Rows of a prefix, all if not given, with room for more, in a copy: what is read next stays out of it."""
        rows = torch.arange(len(prefix.positions)) if rows is None else rows
        layers, both, _, heads, _, width = prefix.memory.shape
        memory = torch.empty(layers, both, len(rows), heads, prefix.length + more, width)
        filled = prefix.memory[..., : prefix.length, :]
        for layer in range(layers):  # one at a time: what is between the copies stays small
            memory[layer, ..., : prefix.length, :] = filled[layer].index_select(1, rows)
        mask = F.pad(prefix.mask[rows, : prefix.length], (0, more))
        return replace(prefix, memory=memory, mask=mask, positions=prefix.positions[rows], logits=prefix.logits[rows])

    def joined(self, rows: Sequence[CacheRow], more: int) -> Cache:
        """Rows of several readings, padded on the right at the most, in one cache with room for more: a copy."""
        lengths = [int(cache.positions[row]) for cache, row in rows]
        length = max(lengths)
        memory = torch.empty(self.layers, 2, len(rows), self.memories, length + more, self.head_width)
        for place, ((cache, row), end) in enumerate(zip(rows, lengths, strict=True)):
            memory[:, :, place, :, :end] = cache.memory[:, :, row, :, :end]
            memory[:, :, place, :, end:length] = 0  # nobody looks there, but what is not a number would spread
        positions = torch.tensor(lengths)
        mask = torch.arange(length + more) < positions[:, None]
        return Cache(memory, mask, length, positions, min(lengths) < length, torch.empty(len(rows), 0))

    def _block(self, index: int, weights: Mapping[str, Tensor]) -> tuple[Product, Product, Product, Product]:
        """The four products of a layer; what scales the normed input is part of the matrix that reads it."""

        def weight(name: str) -> Tensor:
            return weights[f"model.layers.{index}.{name}.weight"].detach().float()

        turning = [self._neighbours(weight(f"self_attn.{which}_proj")) for which in "qk"]
        attended = torch.cat([*turning, weight("self_attn.v_proj")]) * weight("input_layernorm")
        gated = torch.cat([weight("mlp.gate_proj"), weight("mlp.up_proj")]) * weight("post_attention_layernorm")
        matrices = (attended, weight("self_attn.o_proj"), gated, weight("mlp.down_proj"))
        query, mix, gate, down = map(self.product, matrices)
        return query, mix, gate, down

    def _neighbours(self, weight: Tensor) -> Tensor:
        """Puts the two numbers that turn together side by side: queries and keys alike, so their products stay."""
        halves = weight.unflatten(0, (-1, 2, self.head_width // 2))
        return halves.transpose(1, 2).flatten(0, 2)

    def _turns(self, config: Mapping[str, Any]) -> Tensor:
        """(positions, 1, width / 2): how far each pair of numbers turns at each position."""
        rope_config = config.get("rope_parameters") or {}
        base = rope_config.get("rope_theta") or config.get("rope_theta") or 10_000.0
        speeds = base ** -(torch.arange(0, self.head_width, 2).float() / self.head_width)
        angles = torch.arange(self.longest).float()[:, None, None] * speeds
        return torch.polar(torch.ones_like(angles), angles)

    def _read(self, tokens: Tensor, mask: Tensor, cache: Cache) -> Tensor:
        """(batch, time, width) of new tokens, whose keys and values go into the cache.

        Only real positions go through the products; rows of a batch stand side by side for attention alone.
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
        """What all layers make of tokens (positions,) at their places in their texts: (positions, width)."""
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
        """Which columns each new token may look at; None where it is all of them."""
        time = end - begin
        if time == 1 and not cache.padded:
            return None
        seen = torch.ones(time, end, dtype=torch.bool).tril(begin)[None]
        if cache.padded:
            # A padded position sees itself, so that its softmax is not empty; nobody sees it.
            itself = torch.zeros(time, end, dtype=torch.bool)
            itself[torch.arange(time), torch.arange(begin, end)] = True
            seen = seen & cache.mask[:, None, :end] | itself
        # As what is added to the products, once and not at every layer.
        seen = torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf)
        # The heads that share a memory stand one after the other in the time dimension.
        return seen[:, None, None].expand(-1, -1, self.heads // self.memories, -1, -1).flatten(2, 3)

    def attend(self, query: Tensor, memory: Tensor, seen: Tensor | None) -> Tensor:
        """Heads that share keys and values are read as more queries of one head: nothing is copied for them."""
        batch, time = query.shape[:2]
        shared = query.unflatten(2, (self.memories, -1)).permute(0, 2, 3, 1, 4).flatten(2, 3)
        mixed = F.scaled_dot_product_attention(shared, memory[0], memory[1], attn_mask=seen)
        return mixed.unflatten(2, (-1, time)).permute(0, 3, 1, 2, 4).reshape(batch, time, -1)

    def _norm(self, hidden: Tensor) -> Tensor:
        return F.rms_norm(hidden, (self.width,), eps=self.smallest)

    def _settled(self, hidden: Tensor) -> Tensor:
        """As words are chosen by it, and transformers gives it out."""
        return self._norm(hidden) * self.last_norm

    def choose(self, hidden: Tensor) -> Tensor:
        """The logits of what comes behind each position."""
        return self.out(self._settled(hidden))


def _log_p(logits: Tensor, tokens: Tensor) -> Tensor:
    return logits.gather(-1, tokens[..., None])[..., 0] - logits.logsumexp(dim=-1)


def check_supported(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Raises where the model is of another kind: another family, biases, stretched positions, adapters."""
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
