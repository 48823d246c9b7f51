"""The crisis classifier for many messages at once: in batches, and in 8 bits where that does not change a decision.

The decisions are those of `CrisisClassifier` in float32. On 3,738 texts from written cases and corpora, 8-bit products
are off by 0.07 in log-odds on average and by at most 0.62. A message that they put more than MARGIN (1.5) below the
threshold in question is below it in float32 too; every other message is read again in float32.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.backbones.bert import BertLayer
from listenwell.layers.packing import Places
from listenwell.models.classifier import Classifier
from listenwell.systems.safety.classifier import CrisisClassifier, Read, padded

AT_ONCE = 256
"""Tokens per batch. Larger batches gain nothing, because the activations no longer fit in the CPU cache."""

Parts = set[tuple[int, ...]]


def has_vnni() -> bool:
    """Whether the CPU multiplies 8-bit integers several times as fast as float32."""
    supported = getattr(torch.cpu, "_is_vnni_supported", lambda: False)
    return bool(supported()) and hasattr(torch, "_int_mm")


class EightBitProduct:
    """One or more linear layers fused into one, with weights and inputs in 8 bits.

    Each output channel of the weights and each row of the input has its own scale, so rows of a batch do not affect
    each other.
    """

    def __init__(self, *layers: nn.Linear) -> None:
        weight = torch.cat([layer.weight.detach() for layer in layers])
        self.bias = torch.cat([layer.bias.detach() for layer in layers])
        self.scale = _scale(weight)[:, 0]
        self.weight = _in_eight_bits(weight, self.scale[:, None]).t()

    def __call__(self, x: Tensor) -> Tensor:
        """(rows, in) to (rows, out), in float32."""
        scale = _scale(x)
        product = torch._int_mm(_in_eight_bits(x, scale), self.weight)
        return product.float().mul_(self.scale).mul_(scale).add_(self.bias)


def _scale(rows: Tensor) -> Tensor:
    return rows.abs().amax(1, keepdim=True).clamp_min_(1e-8).div_(127)


def _in_eight_bits(rows: Tensor, scale: Tensor) -> Tensor:
    return (rows / scale).round_().to(torch.int8)


class EightBitEncoder:
    """A classifier whose layers use 8-bit products. Padding is skipped."""

    def __init__(self, model: Classifier) -> None:
        self.model, bert = model, model.backbone.model
        self.embeddings = bert.embeddings
        self.layers = [EightBitLayer(layer) for layer in bert.encoder.layer]

    def __call__(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """(batch, time) to (batch, classes): logits."""
        places = Places(mask)
        hidden = places.pack(self.embeddings(tokens))
        seen = mask[:, None, None, :] if places.padded else None
        for layer in self.layers:
            hidden = layer(hidden, places, seen)
        return self.model.out(self.model.pooled(places.spread(hidden), mask))


class EightBitLayer:
    """One encoder layer; query, key and value are computed in one product."""

    def __init__(self, layer: BertLayer) -> None:
        attention, after_attention = layer.attention.self, layer.attention.output
        self.split = attention.split
        self.attend = EightBitProduct(attention.query, attention.key, attention.value)
        self.out, self.expand = EightBitProduct(after_attention.dense), EightBitProduct(layer.intermediate.dense)
        self.contract, self.activation = EightBitProduct(layer.output.dense), layer.intermediate.activation
        self.attention_norm, self.output_norm = after_attention.LayerNorm, layer.output.LayerNorm

    def __call__(self, hidden: Tensor, places: Places, seen: Tensor | None) -> Tensor:
        attended = places.spread(self.attend(hidden))
        query, key, value = (self.split(part) for part in attended.chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(query, key, value, seen)
        packed = places.pack(mixed.transpose(1, 2).flatten(2))
        hidden = self.attention_norm(hidden + self.out(packed))
        return self.output_norm(hidden + self.contract(self.activation(self.expand(hidden))))


class LikeLengthReader:
    """Reads parts in batches of similar length, with any function from tokens and their mask to logits."""

    def __init__(self, logits: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.logits = logits

    @torch.inference_mode()
    def __call__(self, parts: Parts) -> dict[tuple[int, ...], Tensor]:
        log_probabilities: dict[tuple[int, ...], Tensor] = {}
        for some in of_like_length(parts):
            tokens, mask = padded(some)
            rows = self.logits(tokens, mask).log_softmax(-1)
            log_probabilities |= dict(zip(some, rows, strict=True))
        return log_probabilities


class EightBitReader(LikeLengthReader):
    """The approximate reader of a classifier."""

    def __init__(self, classifier: CrisisClassifier) -> None:
        super().__init__(EightBitEncoder(classifier.model))


def of_like_length(parts: Parts, most: int = AT_ONCE) -> Iterator[list[tuple[int, ...]]]:
    """Split parts into batches of at most `most` tokens, shortest parts first, so that there is little padding."""
    some: list[tuple[int, ...]] = []
    for part in sorted(parts, key=len):
        if some and len(part) * (len(some) + 1) > most:
            yield some
            some = []
        some.append(part)
    if some:
        yield some


@dataclass(eq=False, slots=True)
class _Question:
    parts: Parts
    taken: bool = False
    """Whether a thread is reading it or has read it."""
    read: bool = False
    answer: dict[tuple[int, ...], Tensor] | None = None


class ReadTogether:
    """A reader for many threads: while `at_once` batches are being read, further questions gather for the next."""

    def __init__(self, read: Read, at_once: int = 1) -> None:
        self.read = read
        self._waiting: list[_Question] = []
        self._free = at_once
        self._changed = threading.Condition()

    def __call__(self, parts: Parts) -> dict[tuple[int, ...], Tensor]:
        own = _Question(parts)
        with self._changed:
            self._waiting.append(own)
            # A question that another thread read as part of its batch need not wait for a free slot.
            self._changed.wait_for(lambda: own.read or (self._free and not own.taken))
            some = [] if own.read else self._take()
        if some:
            self._read(some)
        return self.read(parts) if own.answer is None else own.answer

    def _take(self) -> list[_Question]:
        """Take all waiting questions. Call with the lock held."""
        some, self._waiting = self._waiting, []
        self._free -= 1
        for one in some:
            one.taken = True
        return some

    def _read(self, some: list[_Question]) -> None:
        answers: dict[tuple[int, ...], Tensor] = {}
        try:
            # If the batch fails, each thread reads its own parts alone and gets its own error.
            with suppress(Exception):
                answers = self.read(set().union(*(one.parts for one in some)))
        finally:
            with self._changed:
                self._free += 1
                for one in some:
                    one.read = True
                    one.answer = {part: answers[part] for part in one.parts} if answers else None
                self._changed.notify_all()
