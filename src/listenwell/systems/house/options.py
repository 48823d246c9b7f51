"""How the house system writes: options of its decoding, how far its plans lean, how it chooses a candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace

from listenwell.decoding.options import Decoding, is_number, short

MOST_PLANS = 16
"""Candidates of more plans, or more pairs of them, would be the same ones again."""


@dataclass(frozen=True)
class Rerank:
    """How much each term counts in choosing among candidates; with all at 0 the decoder's own order stays.

    What the terms are: listenwell.systems.house.reranking.
    """

    likelihood: float = 0.0
    """Of the reply, by the model that wrote it."""
    plan: float = 0.0
    """Does the reply do what was planned?"""
    consensus: float = 0.0
    """Would the reply call forth what was said?"""
    positivity: float = 0.0
    """Does it lift the mood?"""
    fresh: float = 0.0
    """Against stock phrases."""
    new: float = 0.0
    """Against repeating what was said."""
    fits: float = 0.0
    """Is it what a person would have said here? Where there is no chooser, nothing counts for it."""

    def __post_init__(self) -> None:
        for name, weight in asdict(self).items():
            if not is_number(weight):
                raise ValueError(f"Rerank.{name} is {weight!r}, expected a finite number")

    def __bool__(self) -> bool:
        return any(asdict(self).values())

    def total(self, terms: Mapping[str, float]) -> float:
        """The score of a candidate; a term that its writer cannot compute, such as the likelihood, is left out."""
        return sum(weight * terms[name] for name, weight in asdict(self).items() if weight and name in terms)

    def signature(self) -> str:
        return ",".join(f"{name}{short(weight)}" for name, weight in asdict(self).items() if weight)


@dataclass(frozen=True)
class Lean:
    """How far plans lean towards what lifts the mood; without it, the system does as people do.

    What is leaned to, and when: listenwell.systems.house.planner.
    """

    positivity: float = 0.0
    """From 0, what people do, to 1, where nothing else is asked for."""
    strength: float = 2.0
    """How far a positivity of 1 goes: what lifts fully gains a factor of exp(strength) on what does nothing."""

    def __post_init__(self) -> None:
        check_positivity(self.positivity)
        if not is_number(self.strength) or self.strength < 0:
            raise ValueError(f"the strength of a lean is a number from 0 on, found {self.strength}")

    def __bool__(self) -> bool:
        return self.positivity > 0

    def signature(self) -> str:
        return f"lean{short(self.positivity)}x{short(self.strength)}"


def check_positivity(value: float) -> float:
    """The value itself, if it is between 0 and 1."""
    if not is_number(value) or not 0 <= value <= 1:
        raise ValueError(f"positivity is a number from 0 to 1, found {value!r}")
    return value


@dataclass(frozen=True)
class HouseDecoding(Decoding):
    """How the house system writes several replies and chooses one."""

    rerank: Rerank = field(default_factory=Rerank)
    """How the house system chooses among its candidates."""
    lean: Lean = field(default_factory=Lean)
    """How far the house system's plans lean."""
    plans: int = 1
    """For how many plans candidates are written, as many for each: the planner's choice, and the likeliest others."""
    pairs: int = 0
    """How many candidates are made of two others, a statement and then a question."""

    turns: int = 0
    """How many of the last turns the writer reads, all if 0: it learned from short dialogues, and drifts in long ones.
    Listening, planning and the vetoes see them all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("plans", 1), ("pairs", 0), ("turns", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST_PLANS:
                raise ValueError(f"Decoding.{name} is {value!r}, expected a whole number from {least} to {MOST_PLANS}")

    @classmethod
    def extend(cls, decoding: Decoding, rerank: Rerank | None = None, lean: Lean | None = None) -> HouseDecoding:
        """Any decoding as the house system's; options of its own stay unless given."""
        own = {"rerank": rerank, "lean": lean}
        given = {name: value for name, value in own.items() if value is not None}
        if isinstance(decoding, cls):
            return replace(decoding, **given)  # type: ignore[arg-type]
        return cls(**{f.name: getattr(decoding, f.name) for f in fields(decoding)}, **given)  # type: ignore[arg-type]

    def signature(self) -> str:
        parts = [super().signature()]
        parts += [f"plans{self.plans}"] if self.plans > 1 else []
        parts += [f"pairs{self.pairs}"] if self.pairs else []
        parts += [f"turns{self.turns}"] if self.turns else []
        parts += [f"rerank({self.rerank.signature()})"] if self.rerank else []
        parts += [self.lean.signature()] if self.lean else []
        return "+".join(parts)

    def streamed(self) -> HouseDecoding:
        """One reply that is shown as it grows: there is nothing to choose from."""
        return replace(self.extend(super().streamed(), rerank=Rerank()), plans=1, pairs=0)
