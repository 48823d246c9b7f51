"""The cells of a paper's tables: published, measured, verdict, reason. Every number has a verdict; if it was not
measured, also a reason.

The measured number follows the paper's own definition; if listenwell defines it or decodes differently, its own number
is shown next to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from listenwell.evaluation import published
from listenwell.evaluation.reproduce.plan import Plan, Scoring
from listenwell.evaluation.reproduce.quirks import Quirk, quirks_of
from listenwell.evaluation.reproduce.spec import PaperSpec
from listenwell.evaluation.reproduce.verdict import Measured, Verdict, judge
from listenwell.evaluation.store import StoredEvaluation, check_same_items, read_folder

NOT_COMPARED = ("bs", "rs", "ci", "v", "by", "weights", "chosen", "label")
"""Signature fields that may differ within a column: the interval, the version, and what a system is given or chooses.
(The papers have systems with and without labels, and a random choice, in one column.)"""

Ratings = Mapping[tuple[str, str, str, str], Measured]
"""Human ratings from a study, by table, dataset, row and metric."""


@dataclass(frozen=True, slots=True)
class Result:
    """One published number and its measured counterpart."""

    paper: str
    table: str
    dataset: str
    row: str
    metric: str
    published: Decimal
    """The published value, in the unit of the measured one."""
    measured: Measured | None
    verdict: Verdict
    why: str
    """If nothing was measured, the reason; otherwise, how the definition differs."""
    signature: str = ""
    ours: Measured | None = None
    """The number with our own definition or decoding, if the paper's is different."""
    ours_how: str = ""
    quirks: tuple[Quirk, ...] = ()
    """The measured number with known quirks of public code."""

    @property
    def why_different(self) -> str:
        return "; ".join(map(str, self.quirks))

    def to_json(self) -> dict[str, Any]:
        record = {
            name: getattr(self, name) for name in ("paper", "table", "dataset", "row", "metric", "verdict", "why")
        }
        record |= {"published": str(self.published), "signature": self.signature, "why_different": self.why_different}
        if self.measured is not None:
            own = self.measured
            record |= {"measured": own.value, "low": own.low, "high": own.high, "seeds": own.seeds}
        if self.ours is not None:
            record |= {"ours": self.ours.value, "ours_how": self.ours_how}
        record["quirks"] = [one.to_json() for one in self.quirks]
        return record


class Evaluations:
    """The finished evaluations of a plan, read once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._read: dict[Path, StoredEvaluation] = {
            one.folder: replace(read_folder(one.folder, "listenwell reproduce"), name=one.row)
            for one in plan.scorings
            if one.done
        }

    def of(self, key: Any) -> list[StoredEvaluation]:
        """The evaluations of a row on a dataset, one per seed; empty if any is missing."""
        return self._complete(self._plan.of_row.get(key, ()))

    def beside(self, key: Any) -> list[StoredEvaluation]:
        """The same with the system's own decoding, if the paper's is different."""
        return self._complete(self._plan.beside.get(key, ()))

    def _complete(self, scorings: Sequence[Scoring]) -> list[StoredEvaluation]:
        ready = [self._read[one.folder] for one in scorings if one.folder in self._read]
        return ready if len(ready) == len(scorings) else []


def results(
    paper: PaperSpec, plan: Plan, tables: Sequence[str] | None = None, ratings: Ratings | None = None
) -> list[Result]:
    """Every number of the tables, in the paper's order. Numbers that are still to be measured are marked as such."""
    evaluations = Evaluations(plan)
    numbers = []
    for table in tables or paper.tables:
        rows = paper.rows(table)
        check_items(paper, table, evaluations)
        for row in rows:
            key = (row.system, paper.datasets[row.dataset])
            numbers += [
                _rated(paper, row, metric, ratings or {})
                or _result(paper, row, metric, plan, evaluations.of(key), evaluations.beside(key))
                for metric in row.values
            ]
    check_signatures(numbers)
    return numbers


def _rated(paper: PaperSpec, row: published.Row, metric: str, ratings: Ratings) -> Result | None:
    """A number from the raters of a study; None if there is none."""
    measured = ratings.get((row.table, row.dataset, row.system, metric))
    if measured is None:
        return None
    why = f"by the raters of the study {paper.tables[row.table].study_of(metric)}"
    place = (paper.name, row.table, row.dataset, row.system, metric, row.values[metric])
    return Result(*place, measured, judge(row.values[metric], measured), why)


def _result(
    paper: PaperSpec,
    row: published.Row,
    metric: str,
    plan: Plan,
    ready: Sequence[StoredEvaluation],
    beside: Sequence[StoredEvaluation],
) -> Result:
    means = published.meaning(paper.name, metric)
    stated = row.values[metric] if means is None else row.values[metric].scaleb(means.places)
    place = (paper.name, row.table, row.dataset, row.system, metric, stated)
    reason = paper.why_not(row.table, metric) or paper.system_of(row).reason or plan.left_out.get(row.system)
    if reason is not None or means is None:
        return Result(*place, None, "not possible here", reason or "")
    if not ready:
        return Result(*place, None, "not yet measured", f"listenwell reproduce {paper.name} --table {row.table}")
    definition, system = paper.definition(metric, row.dataset), paper.system_of(row)
    name, note = means.score, published.NOTES[means.note]
    if definition is not None and _have(ready, system.score_name(definition.score)):
        name, note = system.score_name(definition.score), f"{definition.how}. {note}"
    if not _have(ready, name):
        return Result(*place, None, "not possible here", f"{row.system} has no score {name}")
    measured = _measured(ready, name)
    ours, how = None, ""
    if definition is not None and name == definition.score and _have(ready, definition.beside or means.score):
        ours, how = _measured(ready, definition.beside or means.score), definition.ours
    elif _have(beside, name):
        ours, how = _measured(beside, name), f"own decoding, {beside[0].about.get('decoding')}"
    signature = _comparable(ready[0].scores[name].signature)
    return Result(*place, measured, judge(stated, measured), note, signature, ours, how, quirks_of(name, ready))


def _have(evaluations: Sequence[StoredEvaluation], score: str) -> bool:
    return bool(evaluations) and all(score in one.scores for one in evaluations)


def _measured(evaluations: Sequence[StoredEvaluation], score: str) -> Measured:
    return Measured.of([one.scores[score] for one in evaluations])


def _comparable(signature: Any) -> str:
    """The part of a signature that must agree within a column, without the fields in NOT_COMPARED."""
    facts = [f"{key}:{value}" for key, value in signature if key not in NOT_COMPARED]
    return "|".join([signature.metric, *facts])


def check_items(paper: PaperSpec, table: str, evaluations: Evaluations) -> None:
    """Raises ValueError if the rows of a table were not scored on the same items."""
    for name, dataset in paper.datasets.items():
        systems = dict.fromkeys(row.system for row in paper.rows(table) if row.dataset == name)
        several = [one for system in systems for one in evaluations.of((system, dataset))]
        try:
            check_same_items(several)
        except ValueError as problem:
            raise ValueError(
                f"{paper.name}, table {table}, {name}: {problem}; they cannot stand in one table"
            ) from None


def check_signatures(numbers: Sequence[Result]) -> None:
    """Raises ValueError if items, tokenizer or definition differ within a column."""
    columns: dict[tuple[str, str, str], Result] = {}
    for one in numbers:
        if one.measured is None or not one.signature:
            continue
        first = columns.setdefault((one.table, one.dataset, one.metric), one)
        if first.signature != one.signature:
            raise ValueError(
                f"{one.paper}, table {one.table}: {one.metric} of {first.row} and of {one.row} were not computed alike "
                f"({first.signature} and {one.signature}); they cannot stand in one column"
            )
