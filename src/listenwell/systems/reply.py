"""Reply: what a system says, and why. It is used by the terminal, the API, the web page and the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Candidate:
    """A reply that was considered. The score is the decoder's or the weighted sum of the terms; higher is better."""

    text: str
    score: float
    terms: Mapping[str, float] = field(default_factory=dict)
    """The terms that make up the score, if there are several."""
    vetoed: tuple[str, ...] = ()
    """Why it should not be used, whatever its score; see listenwell.systems.house.vetoes."""
    moves: tuple[str, ...] = ()
    """The labels it was written for, one for each of its parts; empty if nothing was planned."""

    def to_json(self) -> dict[str, Any]:
        terms = {"terms": {name: round(value, 4) for name, value in self.terms.items()}} if self.terms else {}
        vetoed = {"vetoed": list(self.vetoed)} if self.vetoed else {}
        moves = {"moves": list(self.moves)} if self.moves else {}
        return {"text": self.text, "score": round(self.score, 4), **terms, **vetoed, **moves}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Candidate:
        vetoed, moves = tuple(record.get("vetoed", ())), tuple(record.get("moves", ()))
        return cls(record["text"], record["score"], record.get("terms", {}), vetoed, moves)


@dataclass(frozen=True, slots=True)
class Reply:
    """A system's reply to the last turn of a dialogue."""

    text: str
    emotion: str | None = None
    """The emotion recognised, one of those the system knows (the 32, unless it was trained on others); None if it
    recognises none."""
    emotions: Mapping[str, float] = field(default_factory=dict)
    """The probability of each emotion, likeliest first."""
    label: str | None = None
    """The label it chose for the reply (one of the 41, unless it was trained on others); None if it does not choose."""
    reasons: Mapping[str, Any] = field(default_factory=dict)
    """Anything else that explains the reply, by name."""
    candidates: tuple[Candidate, ...] = ()
    """All replies considered, best first and vetoed ones last; the first is `text`."""
    system: str = ""
    """The name of the system that replied."""

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"text": self.text, "system": self.system}
        if self.emotion is not None:
            record["emotion"] = self.emotion
            record["emotions"] = {name: round(p, 4) for name, p in self.emotions.items()}
        if self.label is not None:
            record["label"] = self.label
        if self.reasons:
            record["reasons"] = dict(self.reasons)
        if self.candidates:
            record["candidates"] = [candidate.to_json() for candidate in self.candidates]
        return record
