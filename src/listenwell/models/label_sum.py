"""A reply's likelihood marginalised over likely labels: log Σ_l p(l | context) p(reply | context, l)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def check_summed(score_mass: float, score_most: int) -> None:
    """Raise ValueError if these do not specify which labels to sum over."""
    if not 0 < score_mass <= 1:
        raise ValueError(f"score_mass is {score_mass}, expected a share above 0 and at most 1")
    if score_most < 0:
        raise ValueError(f"score_most is {score_most}, expected at least 1 label, or 0 for all")


@dataclass(frozen=True, slots=True)
class LikelyLabels:
    """The most likely labels of each row of a batch: row, rank in the row, id and log-probability of each."""

    size: int
    """Rows of the batch."""
    columns: int
    """Columns of the table to sum over: one per rank, and possibly one for a reply without a label."""
    rows: Tensor
    ranks: Tensor
    labels: Tensor
    log_p: Tensor

    @classmethod
    def of(cls, expected: Tensor, mass: float, most: int, unlabelled: bool = False) -> LikelyLabels:
        """The most likely labels of each row that together reach `mass`, from (batch, labels) log-probabilities.

        At most `most` of them, if that is not 0, and at least one; the last one taken is the one that reaches the mass.
        """
        most = min(most or expected.shape[1], expected.shape[1])
        return cls(len(expected), most + unlabelled, *likeliest(expected, mass, most))

    def table(self, values: Tensor) -> Tensor:
        """The labels' values as (batch, columns), −∞ where there is none."""
        table = values.new_full((self.size, self.columns), -torch.inf)
        table[self.rows, self.ranks] = values
        return table

    def log_sum(self, nll: Tensor) -> Tensor:
        """log Σ p(l) p(reply | l), (batch,), from −log p(reply | l) of each label here."""
        return self.table(self.log_p - nll).logsumexp(dim=1)

    def log_sum_with_rest(self, nll: Tensor, unlabelled: Tensor) -> Tensor:
        """The same, with the rest of each row's probability on −log p(reply) without a label (batch,)."""
        rest = 1 - self.table(self.log_p).exp().sum(dim=1)
        table = self.table(self.log_p - nll)
        table[:, -1] = rest.clamp_min(0).log() - unlabelled
        return table.logsumexp(dim=1)


def likeliest(expected: Tensor, mass: float, most: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Row, rank, id and log-probability of each of the likely labels; see `LikelyLabels.of`."""
    logs, ids = expected.topk(most, dim=-1)
    chances = logs.exp()
    before = chances.cumsum(dim=-1) - chances
    rows, ranks = ((before < mass) | (torch.arange(most, device=logs.device) == 0)).nonzero(as_tuple=True)
    return rows, ranks, ids[rows, ranks], logs[rows, ranks]
