"""Latent variables: Gaussian and categorical, their KL terms, and annealing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LOGS = 10.0
"""Bound on the absolute value of a log-variance."""


@dataclass(slots=True)
class Gaussian:
    """A diagonal Gaussian per row: mean and log-variance, each (batch, width)."""

    mean: Tensor
    log_variance: Tensor

    def at(self, noise: Tensor) -> Tensor:
        """The sample for the given standard normal noise: mean + noise · deviation."""
        return self.mean + noise * (0.5 * self.log_variance).exp()

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """A reparameterised sample: gradients reach the parameters."""
        noise = torch.randn(self.mean.shape, generator=generator, dtype=self.mean.dtype, device=self.mean.device)
        return self.at(noise)

    def kl(self, other: Gaussian) -> Tensor:
        """KL(self ‖ other) of each row (batch,), in closed form."""
        ratio = (self.log_variance - other.log_variance).exp()
        distance = (self.mean - other.mean).square() / other.log_variance.exp()
        return 0.5 * (ratio + distance - 1 - self.log_variance + other.log_variance).sum(dim=-1)


def bounded(log_variance: Tensor) -> Tensor:
    """Clamp to ±LOGS: a variance that keeps shrinking makes the KL overflow."""
    return log_variance.clamp(-LOGS, LOGS)


class GaussianLayer(nn.Module):
    """A Gaussian from a representation: one hidden layer, then mean and log-variance."""

    def __init__(self, width: int, latent: int, inner: int | None = None) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, inner or width)
        self.mean = nn.Linear(inner or width, latent)
        self.log_variance = nn.Linear(inner or width, latent)

    def forward(self, x: Tensor) -> Gaussian:
        hidden = F.relu(self.hidden(x))
        return Gaussian(self.mean(hidden), bounded(self.log_variance(hidden)))


def row_noise(
    rows: Sequence[int], shape: Sequence[int], generator: torch.Generator | None, device: torch.device | None = None
) -> Tensor:
    """Standard normal noise (rows, *shape) for these items of a data set.

    With a generator, an item's noise depends only on the generator's seed and the item, not on how the data is batched
    or what was sampled before. Without one, it comes from torch's global state.
    """
    if generator is None:
        return torch.randn(len(rows), *shape, device=device)
    numbers, own = torch.empty(len(rows), *shape), torch.Generator()
    for item, row in zip(rows, numbers, strict=True):
        # A hash, since sums such as seed + item would give neighbouring seeds the same noise.
        name = f"{generator.initial_seed()} {item}"
        own.manual_seed(int.from_bytes(blake2b(name.encode(), digest_size=4).digest()))
        row.normal_(generator=own)
    return numbers.to(device)


def entropy(log_q: Tensor) -> Tensor:
    """H(q) of each row (batch,), in nats, from log-probabilities (batch, values)."""
    return -(log_q.exp() * log_q).sum(dim=-1)


def categorical_kl(log_q: Tensor, log_p: Tensor | None = None) -> Tensor:
    """KL(q ‖ p) of each row (batch,) from log-probabilities (batch, k); p is uniform if not given."""
    if log_p is None:
        log_p = torch.full_like(log_q, 1 / log_q.shape[-1]).log()
    return (log_q.exp() * (log_q - log_p)).sum(dim=-1)


def straight_through(log_q: Tensor, temperature: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """A one-hot Gumbel-softmax sample (batch, k); gradients flow as if it were the soft one."""
    uniform = torch.rand(log_q.shape, generator=generator, dtype=log_q.dtype, device=log_q.device)
    gumbel = -(-uniform.clamp_min(1e-10).log()).log()
    soft = ((log_q + gumbel) / temperature).softmax(dim=-1)
    hard = F.one_hot(soft.argmax(dim=-1), log_q.shape[-1]).to(soft.dtype)
    return hard + soft - soft.detach()


def anneal(progress: float, until: float) -> float:
    """The weight of a KL term: rises from 0 to 1 over the first `until` of a stage; 0 means 1 from the start."""
    return 1.0 if until <= 0 else min(1.0, progress / until)
