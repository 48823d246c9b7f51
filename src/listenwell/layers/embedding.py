"""Word embeddings shared with the output layer, of any width, optionally initialised from pretrained vectors."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.layers.cpu import with_spare_rows
from listenwell.layers.transformer import sinusoids

PLACES = 60
"""How many positions the output layer ignores at the start: replies are hardly longer."""

QUIET = 0.15
"""Initial scale of the output projection if it cannot ignore its input: about 1 % of perplexity above unigrams."""


class Output(Protocol):
    """What a decoder provides, so that the output layer can start at unigram frequencies."""

    @property
    def output_weight(self) -> Tensor:
        """The last weight that all of its output passes through, one row for each dimension."""

    def start_silent(self) -> None:
        """Make its layers add next to nothing to their input of words and positions."""


class WordEmbedding(nn.Module):
    """One table for the word embedding and the output layer (Press and Wolf, 2017).

    A table narrower than the model has an input projection and an output projection: so pretrained
    vectors of any width can be used as they are, and the output layer, the most expensive product of
    these models, gets cheaper by the same factor.

    If untied, the output layer has its own table.
    """

    def __init__(self, vocabulary: int, width: int, table_width: int = 0, tied: bool = True) -> None:
        super().__init__()
        self.width = width
        table_width = table_width or width
        self.table = nn.Parameter(torch.randn(vocabulary, table_width) * table_width**-0.5)
        self.choice = None if tied else nn.Parameter(torch.randn(vocabulary, table_width) * table_width**-0.5)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        narrow = table_width != width
        self.widen = nn.Linear(table_width, width, bias=False) if narrow else nn.Identity()
        self.narrow = nn.Linear(width, table_width, bias=False) if narrow else nn.Identity()
        if isinstance(self.widen, nn.Linear) and isinstance(self.narrow, nn.Linear):
            nn.init.orthogonal_(self.widen.weight)
            nn.init.orthogonal_(self.narrow.weight)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, time) ids to (batch, time, width)."""
        return self.widen(nn.functional.embedding(tokens, self.table)) * math.sqrt(self.table.shape[1])

    def mix(self, weights: Tensor) -> Tensor:
        """The mean embedding under weights over all words: (…, vocabulary) to (…, width)."""
        return self.widen(weights @ self.table) * math.sqrt(self.table.shape[1])

    @property
    def choices(self) -> Tensor:
        """The output layer's table: (vocabulary, table width)."""
        return self.table if self.choice is None else self.choice

    def query(self, hidden: Tensor) -> Tensor:
        """Project hidden states to the output table's width: (…, width) to (…, table width)."""
        if hidden.dim() != 2 or not hidden.requires_grad or not torch.is_autocast_enabled(hidden.device.type):
            return self.narrow(hidden)
        return self.narrow(with_spare_rows(hidden))[: len(hidden)]

    def logits(self, hidden: Tensor) -> Tensor:
        query = self.query(hidden)
        # In full precision even if the layers are not, as in the loss.
        with torch.autocast(query.device.type, enabled=False):
            return nn.functional.linear(query.to(self.choices.dtype), self.choices, self.bias)

    @torch.no_grad()
    def start_from(self, vectors: Tensor, known: Tensor) -> None:
        """Use pretrained `vectors` (vocabulary, any width) for the rows that are `known`.

        Vectors whose width differs from the table's are mapped to it by a random orthogonal projection,
        which keeps their angles (as far as a narrower table can).
        """
        source, target = vectors.shape[1], self.table.shape[1]
        if source != target:
            turn = nn.init.orthogonal_(torch.empty(max(source, target), min(source, target)))
            vectors = vectors @ (turn.T if source < target else turn)
        # Normalised to the mean norm of the rows without a vector.
        vectors = vectors / vectors[known].norm(dim=1).mean()
        for table in (self.table, self.choices):
            table[known] = vectors[known].to(table.dtype)

    @torch.no_grad()
    def start_at_unigrams(self, counts: Tensor, decoder: Output) -> None:
        """Start each word's probability at about its frequency among the targets, whatever the input.

        The bias is the log frequency, and nothing is added to it. Most of a decoder's output is the word just read,
        which a tied table would predict again, so input and output initially use different dimensions. Whatever is
        not zero keeps its full scale; otherwise it would grow in few directions and learn slowly for a long time.
        """
        smoothed = counts.float() + 0.5
        self.bias.copy_((smoothed / smoothed.sum()).log())
        if self.choice is not None:
            self.choice.zero_()
        elif isinstance(self.narrow, nn.Linear) and isinstance(self.widen, nn.Linear):
            if _look_aside(self.narrow.weight, self.widen.weight):
                decoder.start_silent()
            else:
                self.narrow.weight.mul_(QUIET)
        else:
            half = self.width // 2
            self.table[:, half:] = 0
            decoder.output_weight[:half] = 0


def _look_aside(narrow: Tensor, widen: Tensor) -> bool:
    """Make `narrow` orthogonal to what `widen` and the positions put into the output, if the width leaves room."""
    table_width, width = narrow.shape
    _, energies, places = torch.linalg.svd(sinusoids(PLACES, width))
    rank = int((energies.square().cumsum(0) < 0.999 * energies.square().sum()).sum()) + 1  # a few distinguish most
    mean = widen.new_ones(width, 1)  # which the final norm removes
    taken = torch.linalg.qr(torch.cat([widen, places[:rank].T.to(widen), mean], dim=1)).Q
    if taken.shape[1] + table_width > width:
        return False
    free = torch.randn(width, table_width).to(widen)
    free -= taken @ (taken.T @ free)
    narrow.copy_(torch.linalg.qr(free).Q.T)
    return True


class WordReader(nn.Module):
    """A word table for input only, with the same form and size as a `WordEmbedding`."""

    def __init__(self, vocabulary: int, width: int, table_width: int = 0) -> None:
        super().__init__()
        table_width = table_width or width
        self.table = nn.Parameter(torch.randn(vocabulary, table_width) * table_width**-0.5)
        narrow = table_width != width
        self.widen = nn.Linear(table_width, width, bias=False) if narrow else nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        return self.widen(F.embedding(tokens, self.table)) * math.sqrt(self.table.shape[1])
