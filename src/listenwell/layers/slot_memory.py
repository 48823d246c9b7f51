"""Key-value memories, one for each emotion: read by similarity, written by clustering (strategy memory, § 3.4.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.layers.clustering import centres
from listenwell.layers.latent import Gaussian, bounded, straight_through

EXAMPLES, WORDS = 3, 8
"""How many training queries (the nearest) and distinctive words describe a slot."""


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """Sizes, and how a memory is read and written; see `StrategyMemoryConfig`."""

    width: int
    slots: int
    queries_per_slot: int = 20
    read: int = 1
    similarity: Literal["dot", "cosine"] = "dot"
    value_start: Literal["spread", "centres"] = "spread"


@dataclass(slots=True)
class Reading:
    """What each row read from the memory."""

    weights: Tensor
    """π over all slots (batch, slots), 0 for those not read."""
    mean: Tensor
    """Σ π v (batch, width)."""
    deviation: Tensor
    """Σ π λ (batch, 1)."""

    @property
    def gaussian(self) -> Gaussian:
        """Eq 3: z = Σ π v + (Σ π λ) ε."""
        return Gaussian(self.mean, log_variance(self.deviation).expand_as(self.mean))

    @property
    def entropy(self) -> Tensor:
        """Entropy of π, (batch,)."""
        return -(self.weights * self.weights.clamp_min(1e-12).log()).sum(dim=-1)


def log_variance(deviation: Tensor) -> Tensor:
    return bounded(2 * deviation.clamp_min(1e-8).log())


class StrategyMemory(nn.Module):
    """§ 3.4.1: one key-value memory per emotion. Keys come from clustering; values and deviations λ are learned."""

    keys: Tensor
    filled: Tensor
    """(memories,) slots in use."""
    home: Tensor
    """(emotions,) the memory of each emotion: its own, or the fullest one if no training query has that emotion."""
    reads: Tensor
    """(memories, slots) how many training queries read each slot, weighted by π, when it was written."""
    nearest: Tensor
    """(memories, slots, EXAMPLES) indices of each slot's nearest training queries, -1 for none."""
    words: Tensor
    """(memories, slots, WORDS) tokens more frequent in each slot's queries than in others, 0 for none."""

    def __init__(self, options: MemoryOptions, emotions: int, memories: int) -> None:
        """`memories` is 1 for one memory shared by all emotions; otherwise the number of emotions."""
        super().__init__()
        self.options = options
        many, slots, width = memories, options.slots, options.width
        self.register_buffer("keys", torch.zeros(many, slots, width))
        self.register_buffer("filled", torch.zeros(many, dtype=torch.long))
        self.register_buffer("home", torch.arange(emotions).clamp_max(many - 1))
        self.register_buffer("reads", torch.zeros(many, slots))
        self.register_buffer("nearest", torch.full((many, slots, EXAMPLES), -1))
        self.register_buffer("words", torch.zeros(many, slots, WORDS, dtype=torch.long))
        self.values = nn.Parameter(torch.zeros(many, slots, width))
        self.deviations = nn.Parameter(torch.zeros(many, slots))

    @property
    def written(self) -> bool:
        return bool(self.filled.any())

    def scores(self, query: Tensor, home: Tensor) -> Tensor:
        """k · e for each slot, (batch, slots); −∞ for empty slots."""
        if self.options.similarity == "cosine":
            query = F.normalize(query, dim=-1) * math.sqrt(query.shape[-1])

        def of(memory: int, rows: Tensor) -> Tensor:
            scores = query[rows] @ self.keys[memory].T
            empty = torch.arange(scores.shape[1], device=scores.device) >= self.filled[memory]
            return scores.masked_fill(empty, -torch.inf)

        return by_memory(home, of)

    def weigh(self, scores: Tensor, count: int) -> Tensor:
        """π, (batch, slots): the softmax over the `count` best slots; 0 for all."""
        best = scores.topk(min(count or scores.shape[1], scores.shape[1]), dim=-1)
        return torch.zeros_like(scores).scatter(1, best.indices, best.values.softmax(dim=-1))

    def read(self, query: Tensor, home: Tensor) -> Reading:
        weights = self.weigh(self.scores(query, home), self.options.read)
        mean = by_memory(home, lambda memory, rows: weights[rows] @ self.values[memory])
        spread = by_memory(home, lambda memory, rows: weights[rows] @ F.softplus(self.deviations[memory])[:, None])
        return Reading(weights, mean, spread)

    def draw_mixture(self, reading: Reading, home: Tensor, prior: Gaussian) -> tuple[Tensor, Tensor]:
        """A sample from Eq 2's mixture, and the bound KL(Σ π_i N_i ‖ P) ≤ Σ π_i KL(N_i ‖ P)."""
        count = min(self.options.read or reading.weights.shape[1], reading.weights.shape[1])
        best = reading.weights.topk(count, dim=-1)
        means = self.values[home[:, None], best.indices]  # (batch, c, width)
        spread = F.softplus(self.deviations[home[:, None], best.indices])[..., None]
        components = Gaussian(means, log_variance(spread).expand_as(means))
        chosen = straight_through(best.values.clamp_min(1e-12).log())
        drawn = (chosen[..., None] * components.sample()).sum(dim=1)
        each = components.kl(Gaussian(prior.mean[:, None], prior.log_variance[:, None]))
        return drawn, (best.values * each).sum(dim=-1)

    @torch.no_grad()
    def write(self, queries: Tensor, emotions: Tensor, tokens: list[np.ndarray], rows: Tensor, seed: int) -> None:
        """Cluster the queries (items, width) of each emotion; the centres become the keys. Values are reinitialised."""
        counts = torch.bincount(emotions, minlength=len(self.home))
        if len(self.filled) > 1:
            own = torch.arange(len(counts), device=counts.device)
            self.home.copy_(torch.where(counts > 0, own, counts.argmax()))
        for buffer, blank in ((self.keys, 0), (self.filled, 0), (self.reads, 0), (self.nearest, -1), (self.words, 0)):
            buffer.fill_(blank)
        homes = self.home[emotions]
        noise = torch.Generator().manual_seed(seed)
        for memory in homes.unique().tolist():
            items = (homes == memory).nonzero()[:, 0]
            self._write_one(memory, queries[items], seed, noise)
            self._describe(memory, queries[items], [tokens[item] for item in items.tolist()], rows[items])

    def _write_one(self, memory: int, queries: Tensor, seed: int, noise: torch.Generator) -> None:
        cosine = self.options.similarity == "cosine"
        count = min(self.options.slots, max(1, len(queries) // self.options.queries_per_slot))
        keys = centres(F.normalize(queries, dim=-1) if cosine else queries, count, seed)
        self.filled[memory] = len(keys)
        self.keys[memory, : len(keys)] = F.normalize(keys, dim=-1) if cosine else keys
        spread = queries.std(dim=0, correction=0)
        drawn = torch.randn(self.values[memory].shape, generator=noise).to(queries)
        starts = queries.mean(dim=0) + spread * drawn
        if self.options.value_start == "centres" and not cosine:
            starts[: len(keys)] = keys
        self.values[memory] = starts
        self.deviations[memory] = inverse_softplus(0.5 * spread.mean().clamp_min(1e-3))

    def _describe(self, memory: int, queries: Tensor, tokens: list[np.ndarray], rows: Tensor) -> None:
        """Record how often each slot is read, by which queries, and which words set these apart within the emotion."""
        scores, slots = [], []
        for part in queries.split(4096):  # all at once would take gigabytes
            slot_scores = self.scores(part, torch.full((len(part),), memory, device=part.device))
            self.reads[memory] += self.weigh(slot_scores, self.options.read).sum(dim=0)
            best = slot_scores.max(dim=-1)
            scores.append(best.values)
            slots.append(best.indices)
        score, slot_of = torch.cat(scores), torch.cat(slots)
        everywhere = word_counts(tokens)
        for slot in slot_of.unique().tolist():
            members = (slot_of == slot).nonzero()[:, 0]
            members = members[score[members].argsort(descending=True)]
            self.nearest[memory, slot, : min(EXAMPLES, len(members))] = rows[members[:EXAMPLES]]
            distinctive = distinctive_words([tokens[item] for item in members.tolist()], everywhere, len(tokens))
            self.words[memory, slot, : len(distinctive)] = torch.tensor(distinctive, dtype=torch.long)


def by_memory(home: Tensor, function: Callable[[int, Tensor], Tensor]) -> Tensor:
    """Apply `function(memory, rows)` to the rows of each memory; results are in the order of the rows."""
    order = home.argsort(stable=True)
    memories, counts = home[order].unique_consecutive(return_counts=True)
    parts = zip(memories.tolist(), order.split(counts.tolist()), strict=True)
    return torch.cat([function(memory, rows) for memory, rows in parts])[order.argsort()]


def word_counts(texts: Iterable[np.ndarray]) -> np.ndarray:
    """Document frequency of each token in the texts, (highest token + 1,)."""
    return np.bincount(np.concatenate([np.unique(text) for text in texts] or [np.zeros(0, np.int64)]))


def distinctive_words(texts: list[np.ndarray], everywhere: np.ndarray, total: int) -> list[int]:
    """The most distinctive tokens of a slot's queries: frequent there, and more so than in all queries."""
    here = word_counts(texts)
    usual = everywhere[: len(here)] / total
    gain = np.where(here > 0, here * np.log(np.maximum(here, 1) / len(texts) / np.maximum(usual, 1e-9)), 0.0)
    best = np.argsort(-gain, kind="stable")[:WORDS]
    return [int(token) for token in best if gain[token] > 1e-6]


def inverse_softplus(value: Tensor) -> Tensor:
    return value + torch.log(-torch.expm1(-value))
