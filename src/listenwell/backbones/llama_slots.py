"""The key-value cache of a Llama-like model for continuous batching: texts start and end at different times.

Each text has its own slot. A new text takes the next free slot, and when one ends, the last text moves to its slot: no
other text's cache is copied, and a step only covers the texts that are there.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell.backbones.llama_engine import Cache, CacheRow, LlamaEngine

COLUMNS = 64
"""How many tokens to add room for whenever more are needed."""

PLACES = 8
"""How many texts to add room for."""


class Slots:
    """Texts by numbers that stay the same when texts move between slots."""

    def __init__(self, engine: LlamaEngine) -> None:
        self.engine = engine
        self.numbers: list[int] = []
        """The number of the text in each slot."""
        self._next = 0
        self._clear()

    def __len__(self) -> int:
        return len(self.numbers)

    def _clear(self) -> None:
        engine = self.engine
        # (2, places, heads, columns, width) of each layer: keys and values
        self._memory = [torch.zeros(2, 0, engine.memories, 0, engine.head_width) for _ in range(engine.layers)]
        self._lengths = torch.zeros(0, dtype=torch.long)

    @torch.inference_mode()
    def add(self, cache: Cache) -> list[int]:
        """Add the rows of a cache, to be continued here; returns their numbers."""
        first = len(self)
        count = len(cache.positions)
        self._make_room(first + count, int(cache.positions.max()) + 1)
        for row, place in enumerate(range(first, first + count)):
            real = cache.mask[row, : cache.length].nonzero()[:, 0]
            for memory, read in zip(self._memory, cache.memory, strict=True):
                memory[:, place, :, : len(real)] = read[:, row].index_select(2, real)
            self._lengths[place] = len(real)
        added = list(range(self._next, self._next + count))
        self._next += count
        self.numbers += added
        return added

    @torch.inference_mode()
    def remove(self, number: int) -> None:
        place, last = self.numbers.index(number), len(self) - 1
        self.numbers[place] = self.numbers[last]
        self.numbers.pop()
        if not self.numbers:
            self._clear()
        elif place != last:
            length = int(self._lengths[last])
            for memory in self._memory:
                memory[:, place, :, :length] = memory[:, last, :, :length]
            self._lengths[place] = length

    @torch.inference_mode()
    def reading(self, number: int, length: int) -> CacheRow:
        """A copy of the first tokens of a text, as if they had just been read."""
        place = self.numbers.index(number)
        memory = torch.stack([memory[:, place : place + 1, :, :length] for memory in self._memory])
        here = torch.ones(1, length, dtype=torch.bool)
        return Cache(memory, here, length, torch.tensor([length]), False, torch.empty(1, 0)), 0

    @torch.inference_mode()
    def step(self, tokens: Tensor, numbers: Sequence[int]) -> Tensor:
        """Read a token of each of these texts (batch,); returns the next logits. Other texts stay as they are."""
        places = torch.tensor([self.numbers.index(number) for number in numbers])
        count = len(self)
        end = int(self._lengths[:count].max()) + 1
        if int(self._lengths[places].max()) >= self.engine.longest:
            raise ValueError(f"the text is longer than the {self.engine.longest} tokens this model can read")
        self._make_room(count, end)
        lengths = self._lengths[:count]
        # Other texts also read a token, but it is discarded: their length stays, and the next token overwrites it.
        read = tokens.new_zeros(count).index_copy_(0, places, tokens)
        every = torch.arange(count)
        unseen = torch.arange(end) > lengths[:, None]
        seen = torch.zeros(count, end).masked_fill_(unseen, -torch.inf)[:, None, None] if bool(unseen.any()) else None

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            memory = self._memory[layer]
            memory[0][every, :, lengths] = keys
            memory[1][every, :, lengths] = values
            return self.engine.attend(queries[:, None], memory[:, :count, :, :end], seen)[:, 0]

        hidden = self.engine.run(read, lengths.clamp_max(self.engine.longest - 1), attend)
        lengths[places] += 1
        return self.engine.choose(hidden[places])

    def _make_room(self, places: int, columns: int) -> None:
        """Never shrinks. New memory is zeroed: it is masked, but NaNs in it would spread."""
        _, now_places, _, now_columns, _ = self._memory[0].shape
        if places <= now_places and columns <= now_columns:
            return
        more_places = 0 if places <= now_places else places - now_places + PLACES
        more_columns = 0 if columns <= now_columns else columns - now_columns + COLUMNS
        for layer, memory in enumerate(self._memory):  # one at a time, to limit the memory needed for copies
            self._memory[layer] = F.pad(memory, (0, 0, 0, more_columns, 0, 0, 0, more_places))
        self._lengths = F.pad(self._lengths, (0, more_places))
