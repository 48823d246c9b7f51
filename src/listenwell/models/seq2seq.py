"""The recurrent sequence-to-sequence model (`seq2seq`), the baseline S2S of strategy memory (after Shang et al. 2015).

A stack of GRUs encodes the query, another decodes the reply, and at each step the decoder's state attends to all
encoder outputs (Luong's general attention):

    a_t = softmax(s_t W_a Mᵀ),   c_t = a_t M,   h̃_t = tanh(W_c [c_t; s_t])

There is no input feeding, so teacher forcing takes a single pass of the GRU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from listenwell.contract import Vocabulary
from listenwell.layers.dropout import Dropout, dropout
from listenwell.models.trs import Trs


@dataclass
class Seq2SeqConfig:
    """The sizes of strategy memory's appendix B."""

    width: int = 512
    """Width of every GRU."""
    layers: int = 2
    """Stacked GRUs, in the encoder and in the decoder."""
    dropout: float = 0.1
    """Dropout rate between the GRUs, on the word embeddings and on the output."""
    word_width: int = 300
    """Width of the word table; 0 means the model's."""
    tied: bool = True
    """Share one table between word embedding and output layer."""

    emotion: ClassVar[bool] = False
    emotions: ClassVar[str] = "emotion"


class GruEncoder(nn.Module):
    """A GRU over real positions only."""

    def __init__(self, width: int, layers: int, rate: float) -> None:
        super().__init__()
        self.cell = nn.GRU(width, width, layers, batch_first=True, dropout=rate if layers > 1 else 0.0)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(batch, time, width) to the same shape."""
        lengths = mask.sum(dim=1).clamp_min(1).cpu()
        with torch.autocast(x.device.type, enabled=False):  # not every CPU has a half-precision GRU
            packed = pack_padded_sequence(x.float(), lengths, batch_first=True, enforce_sorted=False)
            outputs, _ = self.cell(packed)
        return pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0]


@dataclass(slots=True)
class GruMemory:
    """What the decoder attends to, and its initial state."""

    hidden: Tensor
    """(batch, time, width)"""
    keys: Tensor
    """(batch, time, width) the same after W_a."""
    mask: Tensor
    start: Tensor
    """(batch, layers, width)"""


class GruDecoder(nn.Module):
    """A GRU that attends to a memory, with the interface of the transformer's decoder."""

    def __init__(self, width: int, layers: int, rate: float) -> None:
        super().__init__()
        self.layers = layers
        self.cell = nn.GRU(width, width, layers, batch_first=True, dropout=rate if layers > 1 else 0.0)
        self.bridge = nn.Linear(width, layers * width)
        self.attention = nn.Linear(width, width, bias=False)
        self.mix = nn.Linear(2 * width, width, bias=False)
        self.dropout = Dropout(rate)

    @property
    def output_weight(self) -> Tensor:
        """The last weight that all of its output passes through, one row for each dimension."""
        return self.mix.weight

    def start_silent(self) -> None:
        """It already is: its input passes through several layers, each of which makes it smaller."""

    def remember(self, hidden: Tensor, mask: Tensor) -> GruMemory:
        last = hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(dim=1).clamp_min(1) - 1]
        start = torch.tanh(self.bridge(last)).view(len(hidden), self.layers, -1)
        return GruMemory(hidden, self.attention(hidden), mask, start)

    def forward(self, x: Tensor, memory: GruMemory, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run a whole sequence (past is None), or one more position after the states `past` (batch, layers, width)."""
        begin = memory.start if past is None else past
        with torch.autocast(x.device.type, enabled=False):
            states, last = self.cell(x.float(), begin.float().transpose(0, 1).contiguous())
        scores = states.to(memory.keys.dtype) @ memory.keys.transpose(1, 2)
        shares = scores.masked_fill(~memory.mask[:, None], -torch.inf).softmax(dim=-1)
        context = shares.to(memory.hidden.dtype) @ memory.hidden
        spoken = torch.tanh(self.mix(torch.cat([context, states.to(context.dtype)], dim=-1)))
        return self.dropout(spoken), last.transpose(0, 1)


class Seq2Seq(Trs):
    """p(reply | context)."""

    Config: ClassVar[type] = Seq2SeqConfig  # type: ignore[assignment]

    def __init__(self, config: Seq2SeqConfig, vocabulary: Vocabulary) -> None:
        super().__init__(cast(Any, config), vocabulary)
        del self.speakers  # and no position embeddings: a GRU reads in order anyway

    def _layers(self, config: Any) -> tuple[nn.Module, Any]:
        sizes = (config.width, config.layers, config.dropout)
        return GruEncoder(*sizes), GruDecoder(*sizes)

    def embed(self, tokens: Tensor, roles: Tensor, first: int = 0) -> Tensor:
        """Word embeddings only."""
        return dropout(self.words(tokens), self.config.dropout, self.training)
