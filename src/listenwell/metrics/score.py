"""Score: a value, its interval, its items, and a signature that says exactly how it was computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from listenwell import __version__
from listenwell.metrics.sums import Array, Statistics, plain

Better = Literal["higher", "lower"]
Unit = Literal["%", ""]


@dataclass(frozen=True, slots=True)
class Signature:
    """How a number was computed: ordered keys and values, in the format of sacrebleu.

        >>> str(Signature.of("bleu", n=4, case="lc", tok="word"))
        'bleu|n:4|case:lc|tok:word|v:0.1.0'

    Two numbers are comparable in one column of a table only if the relevant parts of their signatures agree.
    """

    metric: str
    fields: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for key, value in (("metric", self.metric), *self.fields):
            if not key or ":" in key or "|" in key + value:
                raise ValueError(f"a signature's key has no ':' and nothing in it has '|', found {key!r}: {value!r}")

    @classmethod
    def of(cls, metric: str, **fields: object) -> Signature:
        """Returns a signature that ends with this version of listenwell."""
        return cls(metric, (*((key, str(value)) for key, value in fields.items()), ("v", __version__)))

    def plus(self, **fields: object) -> Signature:
        """Returns a signature with more fields before the version; an existing key gets the new value."""
        known = dict(self.fields)
        version = known.pop("v", None)
        known |= {key: str(value) for key, value in fields.items()}
        if version is not None:
            known.setdefault("v", version)
        return Signature(self.metric, tuple(known.items()))

    def __str__(self) -> str:
        return "|".join([self.metric, *(f"{key}:{value}" for key, value in self.fields)])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.fields)

    def __contains__(self, key: object) -> bool:
        return any(key == name for name, _ in self.fields)

    def __getitem__(self, key: str) -> str:
        for name, value in self.fields:
            if name == key:
                return value
        raise KeyError(f"signature {self} has no {key!r}")

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Parses a signature that `str` wrote."""
        metric, *rest = text.split("|")
        pairs = [part.partition(":") for part in rest]
        if not metric or not all(colon for _, colon, _ in pairs):
            raise ValueError(f"a signature reads 'metric|key:value|…', found {text!r}")
        return cls(metric, tuple((key, value) for key, _, value in pairs))


@dataclass(frozen=True, slots=True)
class Score:
    """One number of one system. Items and statistics are ignored when scores are compared."""

    name: str
    value: float
    low: float | None = None
    """Lower end of the 95 % interval; None if resampling items is meaningless (see `ci:none` in the signature)."""
    high: float | None = None
    items: Array | None = field(default=None, compare=False, repr=False)
    """(items,) the score of each item as a corpus of its own; their mean is the value only for plain means."""
    signature: Signature = field(kw_only=True)
    better: Better = "higher"
    unit: Unit = ""
    statistics: Statistics | None = field(default=None, compare=False, repr=False)
    """The statistics that the value combines. Paired tests resample these, so that they test the corpus value."""

    def __post_init__(self) -> None:
        if self.better not in get_args(Better):
            raise ValueError(f"score {self.name}: better is 'higher' or 'lower', found {self.better!r}")
        if self.unit not in get_args(Unit):
            raise ValueError(f"score {self.name}: the unit is '%' or '', found {self.unit!r}")
        if (self.low is None) != (self.high is None):
            raise ValueError(f"score {self.name}: an interval has two ends, found {self.low} and {self.high}")

    def __format__(self, spec: str) -> str:
        """Formats the value and its interval with `spec`; by default, the number of digits depends on the value.

        The unit is not included; it belongs in the head of the table.
        """
        if not spec:
            count = self.unit == "" and self.low is None and float(self.value).is_integer()
            spec = ".0f" if count else ".1f" if abs(self.value) >= 10 else ".2f"
        if self.low is None or self.high is None:
            return format(self.value, spec)
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __str__(self) -> str:
        return format(self)

    def to_json(self, *, items: bool = False) -> dict[str, Any]:
        """Returns everything but the items; with `items`, also those and the statistics behind them."""
        record: dict[str, Any] = {"name": self.name, "value": self.value}
        if self.low is not None:
            record |= {"low": self.low, "high": self.high}
        record |= {"better": self.better, "unit": self.unit, "signature": str(self.signature)}
        if items and self.items is not None:
            record["items"] = plain(self.items)
        if items and self.statistics is not None:
            record["statistics"] = self.statistics.to_json()
        return record

    @classmethod
    def from_json(cls, record: Any) -> Score:
        """Reads a score that `to_json` wrote."""
        if missing := [key for key in ("name", "value", "signature") if key not in record]:
            raise ValueError(f"a score has name, value and signature, missing: {', '.join(missing)}")
        items, statistics = record.get("items"), record.get("statistics")
        return cls(
            name=record["name"],
            value=float(record["value"]),
            low=record.get("low"),
            high=record.get("high"),
            items=None if items is None else np.asarray(items, dtype=np.float64),
            signature=Signature.parse(record["signature"]),
            better=record.get("better", "higher"),
            unit=record.get("unit", ""),
            statistics=None if statistics is None else Statistics.from_json(statistics),
        )
