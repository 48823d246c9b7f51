"""Compares evaluated systems in one table: scores, paired tests against a baseline, and published numbers below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from listenwell.evaluation.published import DATASETS, NOTES, Row, rows_at
from listenwell.evaluation.store import ABOUT, StoredEvaluation, check_same_items, item_number
from listenwell.labels.taxonomy import unknown_name
from listenwell.metrics import Comparison as Paired
from listenwell.metrics import Score, paired_bootstrap, paired_t_test
from listenwell.metrics.bootstrap import RESAMPLES
from listenwell.metrics.score import Better

ALPHA = 0.05

ABSENT = "–"
"""Shown if a system lacks a score, which is not the same as zero."""

INCIDENTAL = frozenset({"bs", "rs", "ci", "v", "version", "unk", "unseen", "precision"})
"""Signature fields that may differ within a column: how the interval was computed, versions, and properties of the
system: its unknown words, which are charged for, and its numeric precision, which is shown next to its decoding."""

UNJUDGED = frozenset({"length"})
"""Scores for which higher is neither better nor worse, so no value is marked as best."""

SMALL = frozenset({"ses", "positivity"})
"""Metrics with values between -1 and 1, where the third digit matters."""

TESTED = ("score", "system", "difference", "95 % interval", "p, bootstrap", "Holm", "p, t-test", "Holm")
HOW_TESTED = (
    "The difference is the system's value minus the baseline's. The bootstrap tests the corpus number; the t-test the "
    "items' own numbers, which for BLEU and F1 is another question. Distinct-n and unique replies have no items, so no "
    "test."
)

Verdict = Literal["better", "worse"]
MARKS: dict[Verdict, str] = {"better": "▲", "worse": "▼"}
Progress = Callable[[str, int], Callable[[int], None]]


@dataclass(frozen=True, slots=True)
class Column:
    """One score of all systems."""

    name: str
    unit: str
    better: Better
    digits: int
    alike: bool
    """Whether all systems' values were computed in the same way."""

    @property
    def judged(self) -> bool:
        """Whether values can be ranked."""
        return self.alike and self.name not in UNJUDGED

    @property
    def arrow(self) -> str:
        """An arrow in the direction of better values."""
        return {"higher": "↑", "lower": "↓"}[self.better] if self.name not in UNJUDGED else ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.name, self.unit, self.arrow) if part)


@dataclass(frozen=True, slots=True)
class BaselineTest:
    """Tests a system against the baseline on one score. Holm's correction is over the systems of the column."""

    bootstrap: Paired
    """Test of the corpus-level score, on which the table's marks are based."""
    bootstrap_holm: float
    t: Paired
    """Test of the per-item scores, whose mean is not the corpus-level score for BLEU and F1."""
    t_holm: float

    def verdict(self, alpha: float = ALPHA) -> Verdict | None:
        """Whether the system is significantly better or worse than the baseline, by the corrected bootstrap."""
        if self.bootstrap_holm >= alpha or self.bootstrap.difference == 0:
            return None
        return "better" if (self.bootstrap.difference > 0) == (self.bootstrap.better == "higher") else "worse"


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell of the table, independent of the output format."""

    value: str
    interval: str = ""
    best: bool = False
    verdict: Verdict | None = None
    note: int | None = None
    """The number of its footnote, from 1."""


@dataclass(frozen=True)
class Comparison:
    """A table with systems as rows and scores as columns, made by `compare`; `markdown` and `page` render it."""

    systems: list[StoredEvaluation]
    columns: list[Column]
    baseline: str | None
    """The system that the others are tested against; None if no test is possible."""
    tests: dict[tuple[str, str], BaselineTest] = field(default_factory=dict)
    """Tests by system and column."""
    published: list[Row] = field(default_factory=list)
    footnotes: list[str] = field(default_factory=list)
    """Keys of published.NOTES, in the order of their numbers."""
    remarks: list[str] = field(default_factory=list)
    """Further notes for the reader."""

    @property
    def title(self) -> str:
        about = next((one.about for one in self.systems if not one.from_card), self.systems[0].about)
        number = next((n for one in self.systems if (n := item_number(one))), 0)
        known = (about.get("data"), f"{about['split']} split" if about.get("split") else None, f"{number:,} items")
        return ", ".join(part for part in known if part)

    @property
    def legend(self) -> str:
        """How to read the table."""
        parts = ["Bold is the best measured value; brackets hold the 95 % interval; – is a score that a system lacks."]
        if self.tests:
            bootstrap = next(iter(self.tests.values())).bootstrap
            parts.append(
                f"▲ better and ▼ worse than {self.baseline}: p < {ALPHA} by the paired bootstrap "
                f"({bootstrap.items:,} items, {int(bootstrap.signature['bs']):,} resamples), after Holm's correction "
                "for the systems of a column."
            )
        return " ".join(parts)

    def cell(self, system: StoredEvaluation, column: Column) -> TableCell | None:
        """The cell of a system in a column; None if the system has no such score."""
        score = system.scores.get(column.name)
        if score is None:
            return None
        spec = f".{column.digits}f"
        interval = "" if score.low is None else f"[{score.low:{spec}}, {score.high:{spec}}]"
        test = self.tests.get((system.name, column.name))
        verdict = test.verdict() if test and column.judged else None
        return TableCell(f"{score.value:{spec}}", interval, self.is_best(score, column), verdict)

    def published_cell(self, row: Row, column: Column) -> TableCell | None:
        cell = row.cells().get(column.name)
        return None if cell is None else TableCell(str(cell), note=self.footnotes.index(cell.note) + 1)

    def is_best(self, score: Score, column: Column) -> bool:
        """Whether a score is the best measured value of its column; no value is if all are equal."""
        values = [one.scores[column.name].value for one in self.systems if column.name in one.scores]
        if not column.judged or min(values) == max(values):
            return False
        return score.value == (max(values) if column.better == "higher" else min(values))

    def facts(self) -> tuple[list[str], list[list[str]]]:
        """Facts about the systems besides their scores: a header, and one row per system."""
        formats = {
            "decoding": lambda value: str(value),
            "precision": lambda value: str(value),
            "parameters": lambda value: f"{value:,}",
            "examples": lambda value: f"{value:,}",
            "seconds": lambda value: f"{value / 60:.1f} min",
            "seed": lambda value: str(value),
            "commit": lambda value: str(value)[:12],
        }
        heads = {"examples": "examples seen", "seconds": "training"}
        known = [key for key in formats if any(one.about.get(key) is not None for one in self.systems)]
        rows = []
        for one in self.systems:
            values = ((key, one.about.get(key)) for key in known)
            rows.append([one.name, *(ABSENT if v is None else formats[key](v) for key, v in values), _near(one.place)])
        return ["system", *(heads.get(key, key) for key in known), "place"], rows

    def tested(self) -> Iterator[tuple[str, Column, BaselineTest]]:
        """Every test, column by column."""
        for column in self.columns:
            for system in self.systems:
                if test := self.tests.get((system.name, column.name)):
                    yield system.name, column, test

    def tested_rows(self) -> list[list[str]]:
        """The tests as rows of text, with the columns TESTED."""
        rows = []
        for system, column, test in self.tested():
            boot = test.bootstrap
            spec = f"+z.{max(2, column.digits)}f"
            change = [f"{boot.difference:{spec}}", f"[{boot.low:{spec}}, {boot.high:{spec}}]"]
            chances = (boot.p, test.bootstrap_holm, test.t.p, test.t_holm)
            rows.append([column.name, system, *change, *("< 0.001" if p < 0.001 else f"{p:.3f}" for p in chances)])
        return rows

    def signatures(self) -> list[tuple[str, list[tuple[str, list[str]]]]]:
        """For each column the distinct signatures of its values, each with its systems."""
        rows = []
        for column in self.columns:
            by: dict[str, list[str]] = {}
            for one in self.systems:
                if column.name in one.scores:
                    by.setdefault(str(one.scores[column.name].signature), []).append(one.name)
            rows.append((column.name, list(by.items())))
        return rows

    def to_json(self) -> dict[str, Any]:
        columns = [{"name": c.name, "unit": c.unit, "better": c.better, "judged": c.judged} for c in self.columns]
        return {
            "command": "compare",
            "title": self.title,
            "baseline": self.baseline,
            "columns": columns,
            "systems": [self._system_json(one) for one in self.systems],
            "published": [_published_json(row) for row in self.published],
            "notes": [NOTES[key] for key in self.footnotes],
            "remarks": self.remarks,
        }

    def _system_json(self, one: StoredEvaluation) -> dict[str, Any]:
        scores: dict[str, Any] = {}
        for column in self.columns:
            if (score := one.scores.get(column.name)) is None:
                continue
            scores[column.name] = {**score.to_json(), "best": self.is_best(score, column)}
            if test := self.tests.get((one.name, column.name)):
                scores[column.name]["against baseline"] = {
                    "bootstrap": _paired_json(test.bootstrap, test.bootstrap_holm),
                    "t-test": _paired_json(test.t, test.t_holm),
                    "verdict": test.verdict() if column.judged else None,
                }
        about = {key: one.about[key] for key in ABOUT if one.about.get(key) is not None}
        return {"name": one.name, "place": _near(one.place), "card": one.from_card, "about": about, "scores": scores}


def compare(
    systems: Sequence[StoredEvaluation],
    *,
    papers: Sequence[str] = (),
    baseline: str | None = None,
    scores: Sequence[str] = (),
    resamples: int = RESAMPLES,
    progress: Progress | None = None,
) -> Comparison:
    """Compare systems that were scored on the same items.

    `papers` names published tables ("mime/2"); `baseline` is the name of a system, by default the first one with
    per-item values; `scores` selects columns and their order.
    """
    systems = list(systems)
    check_same_items(systems)
    columns, remarks = _columns(systems, scores)
    base = _baseline(systems, baseline)
    tests = {} if base is None else _tests(systems, base, columns, resamples, progress)
    if cards := [one.name for one in systems if one.from_card]:
        remarks.append(
            f"The scores of {', '.join(cards)} are those on the card of the shipped weights, without per-item values: "
            "no paired test, no sample replies."
        )
    rows, more = _published_rows(systems, papers, columns)
    beside = [row.cells() for row in rows]
    notes = dict.fromkeys(cells[c.name].note for c in columns for cells in beside if c.name in cells)
    tested = base.name if base and tests else None
    return Comparison(systems, columns, tested, tests, rows, list(notes), [*more, *remarks])


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down correction of p-values, which controls the family-wise error rate."""
    corrected, largest = [0.0] * len(p), 0.0
    for rank, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        largest = max(largest, min(1.0, (len(p) - rank) * p[index]))
        corrected[index] = largest
    return corrected


def _columns(systems: Sequence[StoredEvaluation], wanted: Sequence[str]) -> tuple[list[Column], list[str]]:
    """The union of all scores, each placed after the score it follows in its own system's list."""
    order: list[str] = []
    for one in systems:
        place = 0
        for name in one.scores:
            if name not in order:
                order.insert(place, name)
            place = order.index(name) + 1
    for name in wanted:
        if name not in order:
            raise ValueError(unknown_name("score", name, order))
    columns, remarks = [], []
    for name in wanted or order:
        scores = {one.name: one.scores[name] for one in systems if name in one.scores}
        ways = _ways(scores)
        if len(ways) > 1:
            listed = "; ".join(f"{', '.join(names)}: {way}" for way, names in ways.items())
            remarks.append(f"{name} was computed in different ways, so its values cannot be compared ({listed}).")
        first = next(iter(scores.values()))
        columns.append(Column(name, first.unit, first.better, digits(list(scores.values())), len(ways) == 1))
    return columns, remarks


def _ways(scores: dict[str, Score]) -> dict[str, list[str]]:
    """The relevant part of each signature, with the systems that have it."""
    ways: dict[str, list[str]] = {}
    for system, score in scores.items():
        fields = (f"{key}:{value}" for key, value in score.signature if key not in INCIDENTAL)
        ways.setdefault("|".join([score.signature.metric, *fields]), []).append(system)
    return ways


def digits(scores: Sequence[Score]) -> int:
    """The number of decimals in a column: 0 for counts, 3 for metrics in SMALL, 1 if a value reaches 100, else 2."""
    if all(score.unit == "" and score.low is None and score.value.is_integer() for score in scores):
        return 0
    if all(score.signature.metric in SMALL for score in scores):
        return 3
    return 1 if max(abs(score.value) for score in scores) >= 100 else 2


def _baseline(systems: Sequence[StoredEvaluation], name: str | None) -> StoredEvaluation | None:
    if name is None:
        return next((one for one in systems if not one.from_card), None)
    for one in systems:
        if name == one.name:
            if one.from_card:
                raise ValueError(f"the baseline {name} has no per-item values (they are not on its card): evaluate it")
            return one
    raise ValueError(unknown_name("baseline", name, [one.name for one in systems]))


def _tests(
    systems: Sequence[StoredEvaluation],
    base: StoredEvaluation,
    columns: Sequence[Column],
    resamples: int,
    progress: Progress | None,
) -> dict[tuple[str, str], BaselineTest]:
    """Tests every other system against the baseline, if both have per-item values and were scored in the same way."""
    pairs: dict[str, list[StoredEvaluation]] = {}
    for column in columns:
        ground = base.scores.get(column.name)
        if ground is None or not _has_items(ground) or not column.alike:
            continue
        having = (one for one in systems if one is not base and column.name in one.scores)
        pairs[column.name] = [one for one in having if _has_items(one.scores[column.name])]
    done = progress("paired tests", sum(map(len, pairs.values()))) if progress else lambda more: None
    results: dict[tuple[str, str], BaselineTest] = {}
    for name, others in pairs.items():
        boots, ts = [], []
        for one in others:
            boots.append(paired_bootstrap(one.scores[name], base.scores[name], resamples=resamples))
            ts.append(paired_t_test(one.scores[name], base.scores[name]))
            done(1)
        corrected = zip(boots, holm([b.p for b in boots]), ts, holm([t.p for t in ts]), strict=True)
        results |= {(one.name, name): BaselineTest(*parts) for one, parts in zip(others, corrected, strict=True)}
    return results


def _near(place: Path) -> str:
    """Relative to the working directory if inside it, so that a report does not reveal the home folder."""
    return str(place.relative_to(Path.cwd())) if place.is_relative_to(Path.cwd()) else str(place)


def _has_items(score: Score) -> bool:
    return score.items is not None and len(score.items) > 1


def _published_rows(
    systems: Sequence[StoredEvaluation], papers: Sequence[str], columns: Sequence[Column]
) -> tuple[list[Row], list[str]]:
    """The published rows with a number in one of the columns, and remarks on omitted numbers and on other datasets."""
    names = {column.name for column in columns}
    data = next((one.about["data"] for one in systems if one.about.get("data")), None)
    published: list[Row] = []
    left_out: list[str] = []
    for place in papers:
        rows = rows_at(place, data)
        fitting = [row for row in rows if names & row.cells().keys()]
        published += [row for row in fitting if row not in published]
        left = dict.fromkeys(metric for row in rows for metric in row.left_out())
        left |= dict.fromkeys(c.metric for row in rows for name, c in row.cells().items() if name not in names)
        if left:
            none = "" if fitting else ", so no row of it stands here"
            left_out.append(f"Published in {place}, but not measured here: {', '.join(left)}{none}.")
    others = dict.fromkeys(row.dataset for row in published if row.dataset != DATASETS.get(data or ""))
    if others and data is not None:
        return published, [
            f"Published on {', '.join(others)}, measured on {data}: these cannot be compared.",
            *left_out,
        ]
    return published, left_out


def _paired_json(result: Paired, corrected: float) -> dict[str, Any]:
    interval = {"difference": result.difference, "low": result.low, "high": result.high}
    return {**interval, "p": result.p, "p holm": corrected, "signature": str(result.signature)}


def _published_json(row: Row) -> dict[str, Any]:
    place = {"paper": row.paper, "table": row.table, "dataset": row.dataset, "system": row.system}
    values = {metric: float(value) for metric, value in row.values.items()}
    return {**place, "values": values, "scores": {name: float(cell.value) for name, cell in row.cells().items()}}
