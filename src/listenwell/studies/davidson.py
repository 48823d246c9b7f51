"""Davidson's model of paired comparisons with ties (1970), by maximum likelihood.

With strengths π and a tie parameter ν, for two systems i and j: p(i better) ∝ π_i, p(j better) ∝ π_j and
p(tie) ∝ ν √(π_i π_j). On the log scale this is a multinomial logit, so the likelihood has a single maximum, which
Newton's method finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Counts = Mapping[tuple[str, str], tuple[float, float, float]]
"""By pair of systems: how often the first was better, the second was better, or neither."""

STEPS = 200
FARTHEST = 12.0
"""Log strengths beyond this are taken to diverge."""
NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Davidson:
    """Fitted log strengths, with a mean of zero."""

    strengths: Mapping[str, float]
    deviations: Mapping[str, float]
    """Standard errors."""
    log_tie: float
    log_likelihood: float

    def interval(self, system: str) -> tuple[float, float]:
        margin = NORMAL_95 * self.deviations[system]
        return self.strengths[system] - margin, self.strengths[system] + margin

    def probabilities(self, first: str, second: str) -> tuple[float, float, float]:
        """The probabilities that the first is better, that the second is better, and of a tie."""
        one, other = self.strengths[first], self.strengths[second]
        logits = np.array([one, other, self.log_tie + (one + other) / 2])
        shares = np.exp(logits - logits.max())
        return tuple(float(share) for share in shares / shares.sum())  # type: ignore[return-value]


def fit(counts: Counts) -> Davidson | None:
    """The maximum-likelihood estimate. None if there is none, because a system always or never wins, or because some
    systems were never compared, even through others. Without any ties this is the Bradley-Terry model."""
    counts = {pair: outcome for pair, outcome in counts.items() if sum(outcome)}
    systems = list(dict.fromkeys(system for pair in counts for system in pair))
    if not systems or not _is_connected(counts, systems):
        return None
    rows, observed = _features(counts, systems)
    if not observed[:, 2].sum():
        rows, observed = rows[:, :2], observed[:, :2]
    weights = _maximum(rows, observed)
    if weights is None:
        return None
    _, hessian, likelihood = _derivatives(rows, observed, weights)
    deviations = np.sqrt(np.maximum(np.diag(np.linalg.pinv(hessian, hermitian=True)), 0))
    return Davidson(
        dict(zip(systems, map(float, weights[:-1]), strict=True)),
        dict(zip(systems, map(float, deviations[:-1]), strict=True)),
        float(weights[-1]) if rows.shape[1] == 3 else -np.inf,
        likelihood,
    )


def _maximum(rows: np.ndarray, observed: np.ndarray) -> np.ndarray | None:
    """Maximize the likelihood by Newton's method; None if the parameters diverge."""
    weights = np.zeros(rows.shape[2])
    for _ in range(STEPS):
        gradient, hessian, _ = _derivatives(rows, observed, weights)
        # Strengths are determined only up to a constant; the smallest step keeps their mean at zero.
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
        weights = weights + step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        weights[:-1] -= weights[:-1].mean()
        if np.abs(weights).max() > FARTHEST:
            return None
        if np.abs(step).max() < 1e-13:
            break
    return weights


def _features(counts: Counts, systems: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Shapes (pairs, 3 outcomes, parameters) and (pairs, 3): the features of each outcome's logit, and its count."""
    place = {system: number for number, system in enumerate(systems)}
    rows = np.zeros((len(counts), 3, len(systems) + 1))
    for number, (first, second) in enumerate(counts):
        rows[number, 0, place[first]] = 1
        rows[number, 1, place[second]] = 1
        rows[number, 2, [place[first], place[second]]] = 0.5
        rows[number, 2, -1] = 1
    return rows, np.array(list(counts.values()), dtype=float)


def _derivatives(rows: np.ndarray, observed: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The gradient and the negative Hessian of the log-likelihood, and its value."""
    logits = rows @ weights
    logits = logits - logits.max(axis=1, keepdims=True)
    shares = np.exp(logits)
    shares /= shares.sum(axis=1, keepdims=True)
    totals = observed.sum(axis=1, keepdims=True)
    gradient = np.einsum("nok,no->k", rows, observed - totals * shares)
    mean = np.einsum("nok,no->nk", rows, shares)
    hessian = np.einsum("nok,no,nol->kl", rows, totals * shares, rows) - np.einsum(
        "nk,n,nl->kl", mean, totals[:, 0], mean
    )
    return gradient, hessian, float((observed * np.log(shares)).sum())


def _is_connected(counts: Counts, systems: Sequence[str]) -> bool:
    """Whether Ford's condition holds: no set of systems always beats the rest. A tie counts in both directions."""
    beats: dict[str, set[str]] = {system: set() for system in systems}
    for (first, second), (won, lost, tie) in counts.items():
        if won or tie:
            beats[first].add(second)
        if lost or tie:
            beats[second].add(first)
    return all(_reached(beats, system) == set(systems) for system in systems)


def _reached(beats: Mapping[str, set[str]], start: str) -> set[str]:
    seen, waiting = {start}, [start]
    while waiting:
        for other in beats[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return seen
