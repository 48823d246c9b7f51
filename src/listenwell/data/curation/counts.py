"""Counts of what went in, what came out and what was dropped, by reason. The totals of a curation must balance."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

UNITS = ("files", "cues", "turns", "dialogues")
SAMPLES = 10
"""Number of samples to keep for each reason to drop."""
EXCERPT = 240


@dataclass
class Count:
    """The counts of one unit."""

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def balances(self) -> bool:
        return self.read == self.kept + self.dropped.total()

    def to_json(self) -> dict[str, Any]:
        by_number = sorted(self.dropped.items(), key=lambda item: (-item[1], item[0]))
        return {"in": self.read, "out": self.kept, "dropped": dict(by_number)}


@dataclass
class Counts:
    """Counts of files, cues, turns and dialogues, with samples of what was dropped. Counts of chunks can be merged."""

    units: dict[str, Count] = field(default_factory=lambda: {unit: Count() for unit in UNITS})
    changed: Counter[str] = field(default_factory=Counter)
    """The number of turns that each text step changed."""
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def read(self, unit: str, number: int = 1) -> None:
        self.units[unit].read += number

    def keep(self, unit: str, number: int = 1) -> None:
        self.units[unit].kept += number

    def drop(self, unit: str, reason: str, number: int = 1) -> None:
        if number:
            self.units[unit].dropped[reason] += number

    def drop_kept(self, unit: str, reason: str, number: int = 1) -> None:
        """Count something as dropped that an earlier step counted as kept."""
        self.units[unit].kept -= number
        self.drop(unit, reason, number)

    def sample(self, reason: str, place: str, text: str, **about: Any) -> None:
        """Add a dropped piece to the samples. Which ones are kept depends only on their places, not on the order."""
        key = hashlib.blake2b(f"{reason}/{place}".encode("utf-8", "replace"), digest_size=8).hexdigest()
        known = self.samples.setdefault(reason, [])
        if len(known) == SAMPLES and known[-1]["key"] <= key:
            return
        excerpt = text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"
        self._add_samples(reason, [{"key": key, "reason": reason, "place": place, "text": excerpt, **about}])

    def merge(self, other: Counts) -> Counts:
        for unit, count in other.units.items():
            self.units[unit].read += count.read
            self.units[unit].kept += count.kept
            self.units[unit].dropped.update(count.dropped)
        self.changed.update(other.changed)
        for reason, samples in other.samples.items():
            self._add_samples(reason, samples)
        return self

    def check(self) -> None:
        """Raise RuntimeError if the input is not equal to the output plus what was dropped."""
        for unit, count in self.units.items():
            if not count.balances:
                raise RuntimeError(
                    f"the counts of {unit} do not balance: {count.read} in, {count.kept} out, "
                    f"{count.dropped.total()} dropped; this is a bug"
                )

    def all_samples(self) -> list[dict[str, Any]]:
        """The samples ordered by reason, without the keys used to select them."""
        return [
            {name: value for name, value in sample.items() if name != "key"}
            for reason in sorted(self.samples)
            for sample in self.samples[reason]
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "units": {unit: count.to_json() for unit, count in self.units.items()},
            "changed": dict(self.changed),
            "samples": self.samples,
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Counts:
        units = {
            unit: Count(count["in"], count["out"], Counter(count["dropped"])) for unit, count in record["units"].items()
        }
        return cls(units, Counter(record["changed"]), record["samples"])

    def _add_samples(self, reason: str, samples: Iterable[dict[str, Any]]) -> None:
        by_key = {sample["key"]: sample for sample in (*self.samples.get(reason, ()), *samples)}
        self.samples[reason] = [by_key[key] for key in sorted(by_key)][:SAMPLES]
