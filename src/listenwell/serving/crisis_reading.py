"""The crisis classifier for many messages at once: in batches, and in half precision where that decides nothing.

The decisions are those of `CrisisClassifier` in float32. No threshold of it lies below BACKED, and half precision is
wrong by some hundredths of log-odds: what it finds more than MARGIN below that is below all thresholds in float32 too,
and everything else is read again.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell.layers.cpu import spare_rows
from listenwell.layers.packing import Places
from listenwell.systems.safety.classifier import HEADS, CrisisClassifier, Encoder, Layer, Read, log_odds, padded
from listenwell.systems.safety.detector import BACKED

MARGIN = 0.5
"""How far below every threshold, in log-odds, half precision is trusted."""

AT_ONCE = 64
"""Parts of messages that are read together."""

Parts = set[tuple[int, ...]]


def has_bf16() -> bool:
    """Whether the processor multiplies bfloat16 faster than float32."""
    return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)())


class HalfEncoder:
    """An Encoder in bfloat16. Only real positions go through the products, and few numbers of rows come up."""

    def __init__(self, encoder: Encoder) -> None:
        self.layers = [HalfLayer(layer) for layer in encoder.layers]  # type: ignore[arg-type]
        self.head = encoder.head

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        """(batch, time, width) to (batch, classes): logits, in float32."""
        places = Places(mask)
        hidden = places.pack(x)
        count = len(hidden)
        hidden = F.pad(hidden, (0, 0, 0, spare_rows(count))).bfloat16()
        seen = mask[:, None, None, :]
        for layer in self.layers:
            hidden = layer(hidden, places, count, seen)
        spread = places.spread(hidden[:count].float())
        real = mask[..., None]
        mean = (spread * real).sum(1) / real.sum(1)
        maximum = spread.masked_fill(~real, -torch.inf).amax(1)
        return self.head(torch.cat((3 * mean, maximum), dim=-1))


class HalfLayer:
    """One layer: query, key and value are one product."""

    def __init__(self, layer: Layer) -> None:
        def half(*names: str) -> tuple[Tensor, Tensor]:
            parts = [getattr(layer, name) for name in names]
            weight, bias = (torch.cat([getattr(part, kind).detach() for part in parts]) for kind in ("weight", "bias"))
            return weight.bfloat16(), bias.bfloat16()

        self.attend = half("query", "key", "value")
        self.out, self.expand, self.contract = half("out"), half("expand"), half("contract")
        self.attention_norm, self.output_norm = half("attention_norm"), half("output_norm")

    def __call__(self, hidden: Tensor, places: Places, count: int, seen: Tensor) -> Tensor:
        attended = places.spread(F.linear(hidden, *self.attend)[:count])
        query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in attended.chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(query, key, value, seen)
        packed = F.pad(places.pack(mixed.transpose(1, 2).flatten(2)), (0, 0, 0, len(hidden) - count))
        hidden = self._norm(hidden + F.linear(packed, *self.out), self.attention_norm)
        inner = F.linear(F.gelu(F.linear(hidden, *self.expand)), *self.contract)
        return self._norm(hidden + inner, self.output_norm)

    @staticmethod
    def _norm(hidden: Tensor, norm: tuple[Tensor, Tensor]) -> Tensor:
        return F.layer_norm(hidden, (hidden.shape[-1],), *norm, eps=1e-12)


class ReadTwice:
    """Reads in half precision, and again in full what may be a sign."""

    def __init__(self, classifier: CrisisClassifier) -> None:
        self.embed, self.precise = classifier.embed, classifier.read
        self.encoder = HalfEncoder(classifier.encoder)

    def __call__(self, parts: Parts) -> dict[tuple[int, ...], Tensor]:
        found: dict[tuple[int, ...], Tensor] = {}
        ordered = sorted(parts, key=len)
        for begin in range(0, len(ordered), AT_ONCE):
            some = ordered[begin : begin + AT_ONCE]
            tokens, mask = padded(some)
            rows = self.encoder(self.embed(tokens), mask).log_softmax(-1)
            found |= dict(zip(some, rows, strict=True))
        unsure = {part for part, row in found.items() if not log_odds(row) < BACKED - MARGIN}
        return found | self.precise(unsure) if unsure else found


@dataclass(eq=False, slots=True)
class _Question:
    parts: Parts
    answer: dict[tuple[int, ...], Tensor] | None = None


class ReadTogether:
    """A reader for many threads: while one batch is read, others gather for the next."""

    def __init__(self, read: Read) -> None:
        self.read = read
        self._waiting: list[_Question] = []
        self._adding, self._reading = threading.Lock(), threading.Lock()

    def __call__(self, parts: Parts) -> dict[tuple[int, ...], Tensor]:
        own = _Question(parts)
        with self._adding:
            self._waiting.append(own)
        with self._reading:
            if own.answer is None:  # else it was read with another's
                self._read_waiting()
        return self.read(parts) if own.answer is None else own.answer

    def _read_waiting(self) -> None:
        with self._adding:
            some, self._waiting = self._waiting, []
        answers = self.read(set().union(*(one.parts for one in some)))
        for one in some:
            one.answer = {part: answers[part] for part in one.parts}
