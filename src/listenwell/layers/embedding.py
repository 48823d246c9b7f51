"""Word embeddings that the output layer shares, of any width, and started from pretrained vectors if wanted."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.layers.cpu import with_spare_rows
from listenwell.layers.transformer import sinusoids

PLACES = 60
"""Positions that the choice of words starts blind for: a reply is hardly longer."""

QUIET = 0.15
"""How loud the choice of words starts where it sees all: about 1 % of perplexity above that of unigrams."""


class Output(Protocol):
    """What a decoder offers, so that the choice of words can start at unigrams."""

    @property
    def output_weight(self) -> Tensor:
        """What all of its output goes through last, one row for each dimension."""

    def start_silent(self) -> None:
        """Lets its layers add next to nothing to the words and positions that they read."""


class WordEmbedding(nn.Module):
    """One table for reading words and for choosing them (Press and Wolf, 2017).

    A table narrower than the model goes through a projection on the way in and another on the way out:
    that is how pretrained vectors of any width are used as they are, and it makes the choice among all
    words, the dearest product of these models, cheaper by the same factor.

    Untied, words are chosen by a table of their own.
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
        """The mean embedding under weights of all words: (…, vocabulary) to (…, width)."""
        return self.widen(weights @ self.table) * math.sqrt(self.table.shape[1])

    @property
    def choices(self) -> Tensor:
        """The table that words are chosen by: (vocabulary, table width)."""
        return self.table if self.choice is None else self.choice

    def query(self, hidden: Tensor) -> Tensor:
        """What is compared with the table: (…, width) to (…, table width)."""
        if hidden.dim() != 2 or not hidden.requires_grad or not torch.is_autocast_enabled(hidden.device.type):
            return self.narrow(hidden)
        return self.narrow(with_spare_rows(hidden))[: len(hidden)]

    def logits(self, hidden: Tensor) -> Tensor:
        query = self.query(hidden)
        # In full precision also where the layers are not, as in the loss.
        with torch.autocast(query.device.type, enabled=False):
            return nn.functional.linear(query.to(self.choices.dtype), self.choices, self.bias)

    @torch.no_grad()
    def start_from(self, vectors: Tensor, known: Tensor) -> None:
        """Takes pretrained `vectors` (vocabulary, any width) for the rows that are `known`.

        Vectors of another width than the table's are turned into it by a random orthogonal map, which
        keeps their angles (as far as a narrower table can).
        """
        source, target = vectors.shape[1], self.table.shape[1]
        if source != target:
            turn = nn.init.orthogonal_(torch.empty(max(source, target), min(source, target)))
            vectors = vectors @ (turn.T if source < target else turn)
        # The same mean length as the rows that have no vector.
        vectors = vectors / vectors[known].norm(dim=1).mean()
        for table in (self.table, self.choices):
            table[known] = vectors[known].to(table.dtype)

    @torch.no_grad()
    def start_at_unigrams(self, counts: Tensor, decoder: Output) -> None:
        """Every word starts about as likely as it is frequent among the targets, whatever stands before it.

        The bias is the log frequency, and nothing is added to it. Most of a decoder's output is the word just read,
        which a tied table would choose again: so words are read and chosen in different dimensions at first. All
        that is not zero has its full size, or it would grow in few directions and learn more slowly for long.
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
    """Lets `narrow` see nothing of what `widen` and the positions put into the output, if there is room beside them."""
    table_width, width = narrow.shape
    _, energies, places = torch.linalg.svd(sinusoids(PLACES, width))
    rank = int((energies.square().cumsum(0) < 0.999 * energies.square().sum()).sum()) + 1  # a few tell most apart
    mean = widen.new_ones(width, 1)  # which the last norm takes away
    taken = torch.linalg.qr(torch.cat([widen, places[:rank].T.to(widen), mean], dim=1)).Q
    if taken.shape[1] + table_width > width:
        return False
    free = torch.randn(width, table_width).to(widen)
    free -= taken @ (taken.T @ free)
    narrow.copy_(torch.linalg.qr(free).Q.T)
    return True


class WordReader(nn.Module):
    """A word table for reading alone, of the same form and size as one that words are also chosen by."""

    def __init__(self, vocabulary: int, width: int, table_width: int = 0) -> None:
        super().__init__()
        table_width = table_width or width
        self.table = nn.Parameter(torch.randn(vocabulary, table_width) * table_width**-0.5)
        narrow = table_width != width
        self.widen = nn.Linear(table_width, width, bias=False) if narrow else nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        return self.widen(F.embedding(tokens, self.table)) * math.sqrt(self.table.shape[1])
