"""Decoding options of the house system: how it writes, how far its plans lean, how it chooses a candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace

from listenwell.decoding.options import Decoding, is_number, short

MOST_PLANS = 16
"""Upper limit of the integer options. More plans or pairs would only give the same candidates again."""


@dataclass(frozen=True)
class Rerank:
    """Weights of the terms in choosing among candidates; if all are 0, the decoder's order is kept.

    See listenwell.systems.house.reranking for the terms.
    """

    likelihood: float = 0.0
    """How likely is the reply under the model that wrote it?"""
    plan: float = 0.0
    """Does the reply do what was planned?"""
    consensus: float = 0.0
    """How likely is the last turn, given the reply?"""
    positivity: float = 0.0
    """Does it lift the mood?"""
    fresh: float = 0.0
    """Penalizes stock phrases."""
    new: float = 0.0
    """Penalizes repeating what was said."""
    fits: float = 0.0
    """Is it what a person would have said here? Ignored without a chooser."""

    def __post_init__(self) -> None:
        for name, weight in asdict(self).items():
            if not is_number(weight):
                raise ValueError(f"Rerank.{name} is {weight!r}, expected a finite number")

    def __bool__(self) -> bool:
        return any(asdict(self).values())

    def total(self, terms: Mapping[str, float]) -> float:
        """Returns a candidate's score. Terms that its writer cannot compute, such as the likelihood, are left out."""
        return sum(weight * terms[name] for name, weight in asdict(self).items() if weight and name in terms)

    def signature(self) -> str:
        return ",".join(f"{name}{short(weight)}" for name, weight in asdict(self).items() if weight)


@dataclass(frozen=True)
class Lean:
    """How far plans lean towards lifting the mood; without a lean, the system does as people do.

    See listenwell.systems.house.planner for what it leans towards, and when.
    """

    positivity: float = 0.0
    """From 0 (what people do) to 1, unless a request asks for another value."""
    strength: float = 2.0
    """The effect of a positivity of 1: a label that lifts fully gains a factor of exp(strength) over one that does not
    lift."""

    def __post_init__(self) -> None:
        check_positivity(self.positivity)
        if not is_number(self.strength) or self.strength < 0:
            raise ValueError(f"the strength of a lean is a number from 0 on, found {self.strength}")

    def __bool__(self) -> bool:
        return self.positivity > 0

    def signature(self) -> str:
        return f"lean{short(self.positivity)}x{short(self.strength)}"


def check_positivity(value: float) -> float:
    """Returns the value if it is between 0 and 1, else raises ValueError."""
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
    """Number of plans to write candidates for, equally many for each: the planner's choice and the likeliest others."""
    pairs: int = 0
    """Number of candidates made by joining two others, a statement and then a question."""

    turns: int = 0
    """How many of the last turns the writer reads (0 for all): it was trained on short dialogues and drifts in long
    ones. Listening, planning and the vetoes see all turns."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("plans", 1), ("pairs", 0), ("turns", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST_PLANS:
                raise ValueError(f"Decoding.{name} is {value!r}, expected a whole number from {least} to {MOST_PLANS}")

    @classmethod
    def extend(cls, decoding: Decoding, rerank: Rerank | None = None, lean: Lean | None = None) -> HouseDecoding:
        """Converts any decoding to the house system's. Existing house options are kept unless given here."""
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
        """Returns the options for a streamed reply: a single candidate, with nothing to choose from."""
        return replace(self.extend(super().streamed(), rerank=Rerank()), plans=1, pairs=0)
