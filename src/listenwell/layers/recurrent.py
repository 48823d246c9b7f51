"""A recurrent encoder and an attentive recurrent decoder that keep the same step() contract as the transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from listenwell.layers.dropout import Dropout


class RecurrentEncoder(nn.Module):
    """A GRU or LSTM over real positions only, one way or both ways."""

    def __init__(
        self,
        input_width: int,
        width: int,
        layers: int = 1,
        dropout: float = 0.0,
        both_ways: bool = True,
        cell: Literal["gru", "lstm"] = "gru",
    ) -> None:
        super().__init__()
        if both_ways and width % 2:
            raise ValueError(f"a width of {width} does not divide into two directions")
        kind = nn.GRU if cell == "gru" else nn.LSTM
        self.cell = kind(
            input_width,
            width // 2 if both_ways else width,
            num_layers=layers,
            batch_first=True,
            bidirectional=both_ways,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.both_ways = both_ways

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """All outputs (batch, time, width), and the last state (batch, width): both directions' ends side by side."""
        lengths = mask.sum(dim=1).clamp_min(1).cpu()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        outputs, last = self.cell(packed)
        padded, _ = pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])
        state = last[0] if isinstance(last, tuple) else last
        ends = torch.cat([state[-2], state[-1]], dim=-1) if self.both_ways else state[-1]
        return padded, ends


@dataclass(slots=True)
class Recurrence:
    """Where the decoder stands: everything that differs between two hypotheses, each (batch, …)."""

    hidden: Tensor
    """The cell's state (batch, width)."""
    fed: Tensor
    """The last attentional output h̃ (batch, width), fed back with the next word."""


class AttentiveDecoder(nn.Module):
    """A GRU decoder with Luong's general attention and input feeding.

        s_t = GRU([x_t; h̃_{t−1}], s_{t−1})
        a_t = softmax(s_t W_a Mᵀ),   c_t = a_t M
        h̃_t = tanh(W_c [c_t; s_t])

    The memory goes through W_a once, not at every step, and so does the words' share of the cell's input when a
    whole sequence is known.
    """

    def __init__(self, input_width: int, width: int, memory_width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.width = width
        self.cell = nn.GRUCell(input_width + width, width)
        self.attention = nn.Linear(memory_width, width, bias=False)
        self.mix = nn.Linear(memory_width + width, width, bias=False)
        self.dropout = Dropout(dropout)

    def start(self, state: Tensor) -> Recurrence:
        return Recurrence(state, torch.zeros_like(state))

    def step(self, x: Tensor, memory: Tensor, keys: Tensor, mask: Tensor, at: Recurrence) -> Recurrence:
        """One word further: x is (batch, input width), keys are `self.attention(memory)`."""
        hidden = self.cell(torch.cat([x, at.fed], dim=-1), at.hidden)
        return Recurrence(hidden, self._attend(hidden, memory, keys, mask))

    def _attend(self, hidden: Tensor, memory: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        scores = torch.einsum("bw,btw->bt", hidden, keys).masked_fill(~mask, float("-inf"))
        context = torch.einsum("bt,btm->bm", scores.softmax(dim=-1), memory)
        return self.dropout(torch.tanh(self.mix(torch.cat([context, hidden], dim=-1))))

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor, state: Tensor) -> Tensor:
        """Teacher forcing: all h̃ (batch, time, width) for the words x (batch, time, input width)."""
        keys = self.attention(memory)
        words_width = x.shape[-1]
        weight_words, weight_fed = self.cell.weight_ih.split([words_width, self.width], dim=1)
        given = nn.functional.linear(x, weight_words, self.cell.bias_ih)  # all steps' words in one product
        at = self.start(state)
        outputs = []
        for now in given.unbind(dim=1):
            hidden = self._cell(now + at.fed @ weight_fed.T, at.hidden)
            at = Recurrence(hidden, self._attend(hidden, memory, keys, mask))
            outputs.append(at.fed)
        return torch.stack(outputs, dim=1)

    def _cell(self, given: Tensor, hidden: Tensor) -> Tensor:
        """The GRU's equations, with the input's share already at hand."""
        own = nn.functional.linear(hidden, self.cell.weight_hh, self.cell.bias_hh)
        reset_given, update_given, new_given = given.chunk(3, dim=-1)
        reset_own, update_own, new_own = own.chunk(3, dim=-1)
        reset = torch.sigmoid(reset_given + reset_own)
        update = torch.sigmoid(update_given + update_own)
        new = torch.tanh(new_given + reset * new_own)
        return new + update * (hidden - new)
