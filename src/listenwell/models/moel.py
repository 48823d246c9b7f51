"""MoEL (`moel`, `moel-top-k`): a mixture of empathetic listeners, Lin et al. (2019).

An encoder reads the context after a CTX token and compares its encoding with 32 learned keys, which gives the speaker's
emotion distribution p. One listener per emotion and a shared one, all one-layer decoders, process the reply in
parallel; a meta listener, also a decoder, reads

    shared(y) + Σᵢ pᵢ · listenerᵢ(y)

and predicts the words. The loss is that of the reply plus that of the emotion. All listeners are computed at once on
stacked parameters; docs/papers/moel.md reports the cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.contract import ABSENT, Batch, Controls, Moment, State, Term, Vocabulary
from listenwell.layers.attention import KeyValues, attend
from listenwell.layers.dropout import Dropout
from listenwell.layers.latent import anneal
from listenwell.layers.transformer import Decoder, Memory
from listenwell.models.terms import classification_terms, reply_term
from listenwell.models.trs import Trs, TrsConfig

SHARED = 0
"""Index of the shared listener; the emotions' listeners follow in the order of their ids."""


@dataclass
class MoelConfig(TrsConfig):
    """Sizes of the encoder and the meta listener (`decoder_layers`), and of the listeners."""

    emotion: Literal[True] = True
    """Always on: the emotion weights the listeners."""
    listener_width: int = 40
    """Inner width of a listener's attention."""
    listener_heads: int = 2
    """Attention heads of a listener."""
    listener_feed_forward: int = 150
    """Inner width of a listener's feed-forward layer."""
    top_k: int = 0
    """Use only the listeners of this many most likely emotions; 0 for all."""


class Listeners(nn.Module):
    """One-layer decoders in parallel: all have the same input, and their outputs are mixed.

    Every projection between the model's width and an inner one is a stack (listeners, inner, width), in either
    direction: flattened, it is one matrix for all listeners. The norms have no scale, since the projection after them
    would absorb it.
    """

    def __init__(self, count: int, width: int, heads: int, inner: int, feed_forward: int, dropout: float) -> None:
        super().__init__()
        if inner % heads:
            raise ValueError(f"listener_width {inner} does not divide into {heads} listener_heads")
        self.width, self.heads = width, heads
        self.self_in = stack(count, 3 * inner, width)
        self.self_out = stack(count, inner, width, inwards=False)
        self.cross_in = stack(count, inner, width)
        self.cross_memory = stack(count, 2 * inner, width)
        self.cross_out = stack(count, inner, width, inwards=False)
        self.up = stack(count, feed_forward, width)
        self.up_bias = nn.Parameter(torch.zeros(count, feed_forward))
        self.down = stack(count, feed_forward, width, inwards=False)
        self.down_bias = nn.Parameter(torch.zeros(count, width))
        self.dropout = Dropout(dropout)

    def remember(self, memory: Tensor, who: Tensor | None) -> KeyValues:
        """Project the context for each listener; the listeners' heads are concatenated in order."""
        keys, values = self._split(memory, only(self.cross_memory, who), 2)
        return KeyValues(keys, values)

    def forward(
        self,
        x: Tensor,
        memory: KeyValues,
        mask: Tensor | None,
        shares: Tensor,
        past: KeyValues | None,
        who: Tensor | None,
    ) -> tuple[Tensor, KeyValues]:
        """Σ share · listener(x), (batch, time, width), and the self-attention cache. shares: (batch, who)."""
        own = {name: only(parameter, who) for name, parameter in self.named_parameters()}
        queries, keys, values = self._split(self._norm(x), own["self_in"], 3)
        now = KeyValues(keys, values)
        seen = now if past is None else past.extended(now)
        causal = past is None and x.shape[1] > 1
        attended = attend(queries, seen.keys, seen.values, causal=causal)
        each = x.flatten(0, 1).expand(shares.shape[1], -1, -1)  # (listeners, positions, width) from here on
        each = torch.baddbmm(each, self.dropout(self._join(attended)), own["self_out"])

        queries = torch.bmm(self._norm(each), own["cross_in"].transpose(1, 2))
        queries = queries.view(len(each), *x.shape[:2], self.heads, -1).permute(1, 0, 3, 2, 4).flatten(1, 2)
        allowed = None if mask is None else mask[:, None, None, :]
        attended = attend(queries, memory.keys, memory.values, allowed)
        each = torch.baddbmm(each, self.dropout(self._join(attended)), own["cross_out"])

        inner = torch.baddbmm(own["up_bias"][:, None], self._norm(each), own["up"].transpose(1, 2))
        inner = self.dropout(F.relu(inner))
        # One product projects back and mixes: no listener's final output is ever materialised by itself.
        loud = shares.T[:, :, None].expand(-1, -1, x.shape[1]).flatten(1)[..., None]  # (listeners, positions, 1)
        said = (inner * loud).transpose(0, 1).flatten(1) @ own["down"].flatten(0, 1)
        mixed = (each * loud).sum(dim=0) + said
        return mixed.view_as(x) + (shares @ own["down_bias"])[:, None], seen

    def _norm(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, (self.width,))

    def _split(self, x: Tensor, weights: Tensor, parts: int) -> tuple[Tensor, ...]:
        """Project one sequence for all listeners: `parts` tensors (batch, listeners · heads, time, head)."""
        projected = F.linear(x, weights.flatten(0, 1)).unflatten(-1, (len(weights), parts, self.heads, -1))
        return projected.permute(3, 0, 2, 4, 1, 5).flatten(2, 3).unbind(0)

    def _join(self, attended: Tensor) -> Tensor:
        """(batch, listeners · heads, time, head) to (listeners, batch · time, inner)."""
        return attended.unflatten(1, (-1, self.heads)).permute(1, 0, 3, 2, 4).flatten(3).flatten(1, 2)


def only(parameter: Tensor, who: Tensor | None) -> Tensor:
    """The slice of a stack for the listeners `who`; None for all."""
    return parameter if who is None else parameter.index_select(0, who)


def stack(count: int, inner: int, width: int, inwards: bool = True) -> nn.Parameter:
    """Projections of `count` listeners, initialised like a torch linear layer."""
    bound = (width if inwards else inner) ** -0.5
    return nn.Parameter(torch.empty(count, inner, width).uniform_(-bound, bound))


@dataclass(slots=True)
class PanelMemory:
    """The context, projected for the listeners and the meta listener."""

    shares: Tensor
    """(batch, emotions) the weight of each emotion's listener; they sum to 1."""
    who: Tensor | None
    """(batch, some) the listeners that any row uses, the same in every row; None for all."""
    listeners: KeyValues
    meta: Memory


class Panel(nn.Module):
    """The listeners followed by the meta listener, with the interface of a decoder."""

    def __init__(self, config: MoelConfig, emotions: int) -> None:
        super().__init__()
        if not 0 <= config.top_k <= emotions:
            raise ValueError(f"top_k {config.top_k} is not between 0 and {emotions}")
        self.top_k = config.top_k
        sizes = (config.listener_heads, config.listener_width, config.listener_feed_forward, config.dropout)
        self.listeners = Listeners(1 + emotions, config.width, *sizes)
        self.meta = Decoder(config.decoder_layers, **config.layer_sizes)

    @property
    def output_weight(self) -> Tensor:
        """The last weight that all of its output passes through."""
        return self.meta.output_weight

    @torch.no_grad()
    def start_silent(self) -> None:
        """Zero the last projections, so that the listeners and meta listener initially add nothing to their input."""
        self.meta.start_silent()
        for last in (self.listeners.self_out, self.listeners.cross_out, self.listeners.down, self.listeners.down_bias):
            last.zero_()

    def remember(self, memory: Tensor, mask: Tensor, shares: Tensor) -> PanelMemory:
        """Select the listeners with a share in any row, and project the context for them."""
        if self.top_k:
            shares = likeliest(shares, self.top_k)
        speaking = (shares > 0).any(dim=0)
        who = None if bool(speaking.all()) else F.pad(1 + speaking.nonzero()[:, 0], (1, 0), value=SHARED)
        listeners = self.listeners.remember(memory, who)
        everywhere = None if who is None else who.expand(len(shares), -1)
        return PanelMemory(shares, everywhere, listeners, self.meta.remember(memory, mask))

    def forward(
        self, x: Tensor, memory: PanelMemory, past: tuple[KeyValues, list[KeyValues]] | None = None
    ) -> tuple[Tensor, tuple[KeyValues, list[KeyValues]]]:
        """Run a whole reply (past is None), or one more position after the cached `past`."""
        said, written = past or (None, None)
        mask = None if bool(memory.meta.mask.all()) else memory.meta.mask
        who = None if memory.who is None else memory.who[0]
        shares = F.pad(memory.shares, (1, 0), value=1.0)  # the shared listener always has weight 1
        shares = shares if who is None else shares.index_select(1, who)
        mixed, said = self.listeners(x, memory.listeners, mask, shares, said, who)
        hidden, written = self.meta(mixed, memory.meta, written)
        return hidden, (said, written)


def likeliest(shares: Tensor, k: int) -> Tensor:
    """Keep the k largest of each row, renormalised to sum to 1."""
    values, indices = shares.topk(k, dim=-1)
    return torch.zeros_like(shares).scatter(-1, indices, values / values.sum(dim=-1, keepdim=True))


def with_gold(shares: Tensor, gold: Tensor, share: float) -> Tensor:
    """Mix in the gold emotion with weight `share`, in rows that have one."""
    known = (gold != ABSENT)[:, None]
    certain = F.one_hot(gold.clamp_min(0), shares.shape[-1]).to(shares.dtype)
    return torch.where(known, (1 - share) * shares + share * certain, shares)


class Moel(Trs):
    """p(emotion | context), and p(reply | context) by the listeners that it weights."""

    Config: ClassVar[type[TrsConfig]] = MoelConfig
    emotion: nn.Linear
    decoder: Panel  # type: ignore[assignment]  # has the interface of the decoder it replaces

    def __init__(self, config: MoelConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        self.emotion = nn.Linear(config.width, len(self.emotions), bias=False)  # the listeners' keys
        self.decoder = Panel(config, len(self.emotions))

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        hidden, mask = self.encode(batch)
        believed = self.believe(self.summary(hidden, mask))
        return State({"emotion": believed}, self.decoder.remember(hidden, mask, believed.exp()))

    def likelihood(
        self,
        batch: Batch,
        moment: Moment,
        smoothing: float = 0.0,
        emotion_smoothing: float = 0.0,
        gold: float = 0.0,
        gold_until: float | None = 1.0,
    ) -> dict[str, Term]:
        """The negative log-likelihood of the reply and of the emotion, each with label smoothing.

        In training, the gold emotion is mixed into the listeners' weights: with weight `gold` at the start of the
        stage, falling to 0 at the fraction `gold_until` of it, or constant if that is None. The emotion's own loss
        always uses p.
        """
        assert batch.emotion is not None
        hidden, mask = self.encode(batch)
        believed = self.believe(self.summary(hidden, mask))
        shares = believed.exp()
        gold_share = gold if gold_until is None else gold * (1 - anneal(moment.progress, gold_until))
        if self.training and gold_share > 0:
            shares = with_gold(shares, batch.emotion, gold_share)
        outputs, targets = self.teach(batch, State(fixed=self.decoder.remember(hidden, mask, shares)))
        return {
            "reply": reply_term(outputs, targets, self.words, smoothing),
            **classification_terms("emotion", believed, batch.emotion, emotion_smoothing),
        }

    def reasons(self, state: State, row: int) -> dict[str, Any]:
        """The listeners with the largest weights."""
        shares, indices = state.fixed.shares[row].topk(min(3, len(self.emotions)))
        loudest = zip(indices.tolist(), shares.tolist(), strict=True)
        return {"listeners": {self.emotions.labels[index]: round(share, 4) for index, share in loudest if share > 0}}
