"""Averages losses over updates, for the log and for validation."""

from __future__ import annotations

from dataclasses import dataclass, field

from listenwell.contract import Term


@dataclass
class RunningMeans:
    """Running sums of named loss terms since the last `take`."""

    sums: dict[str, list[float]] = field(default_factory=dict)

    def add(self, terms: dict[str, Term]) -> None:
        for name, term in terms.items():
            entry = self.sums.setdefault(name, [0.0, 0.0])
            entry[0] += float((term.total if term.plain is None else term.plain).detach())
            entry[1] += term.count

    def merge(self, others: list[dict[str, list[float]]]) -> None:
        """Replace the sums with the totals over all processes."""
        self.sums = {}
        for sums in others:
            for name, (total, count) in sums.items():
                entry = self.sums.setdefault(name, [0.0, 0.0])
                entry[0] += total
                entry[1] += count

    def take(self) -> dict[str, float]:
        means = {name: total / max(count, 1.0) for name, (total, count) in self.sums.items()}
        self.sums = {}
        return means
