"""The cells of a paper's tables: published, measured, verdict, reason. No number is without one of the last three."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from listenwell.evaluation import published
from listenwell.evaluation.reproduce.plan import Plan
from listenwell.evaluation.reproduce.spec import PaperSpec
from listenwell.evaluation.reproduce.verdict import Measured, Verdict, judge
from listenwell.evaluation.store import StoredEvaluation, read_folder


@dataclass(frozen=True, slots=True)
class Result:
    """One published number."""

    paper: str
    table: str
    dataset: str
    row: str
    metric: str
    published: Decimal
    """In the unit of the measured one."""
    measured: Measured | None
    verdict: Verdict
    why: str
    """The reason where nothing is measured; where something is, how its definition differs."""
    signature: str = ""

    def to_json(self) -> dict[str, Any]:
        record = {
            name: getattr(self, name) for name in ("paper", "table", "dataset", "row", "metric", "verdict", "why")
        }
        record |= {"published": str(self.published), "signature": self.signature}
        if self.measured is not None:
            own = self.measured
            record |= {"measured": own.value, "low": own.low, "high": own.high, "seeds": own.seeds}
        return record


def results(paper: PaperSpec, plan: Plan, tables: Sequence[str] | None = None) -> list[Result]:
    """Every number of the tables, in the paper's order. What can be measured and was not is said to be missing."""
    read: dict[Any, StoredEvaluation] = {
        one.folder: read_folder(one.folder, "listenwell reproduce") for one in plan.scorings if one.done
    }
    numbers = []
    for table in tables or paper.tables:
        for row in paper.rows(table):
            scorings = plan.of_row.get((row.system, paper.datasets[row.dataset]), ())
            evaluations = [read.get(one.folder) for one in scorings]
            ready = [one for one in evaluations if one is not None]
            complete = bool(evaluations) and len(ready) == len(evaluations)
            numbers += [_result(paper, row, metric, ready if complete else []) for metric in row.values]
    check_signatures(numbers)
    return numbers


def _result(paper: PaperSpec, row: published.Row, metric: str, ready: Sequence[StoredEvaluation]) -> Result:
    means = published.meaning(paper.name, metric)
    stated = row.values[metric] if means is None else row.values[metric].scaleb(means.places)
    place = (paper.name, row.table, row.dataset, row.system, metric, stated)
    reason = paper.why_not(row.table, metric) or paper.system_of(row).reason
    if reason is not None or means is None:
        return Result(*place, None, "not possible here", reason or "")
    if not ready:
        return Result(*place, None, "not yet measured", f"listenwell reproduce {paper.name} --table {row.table}")
    scores = [one.scores[means.score] for one in ready if means.score in one.scores]
    if len(scores) < len(ready):
        return Result(*place, None, "not possible here", f"{row.system} has no score {means.score}")
    measured = Measured.of(scores)
    note = published.NOTES[means.note]
    return Result(*place, measured, judge(stated, measured), note, _comparable(scores[0].signature))


def _comparable(signature: Any) -> str:
    """What must agree within a column: not the interval, not the version."""
    facts = [f"{key}:{value}" for key, value in signature if key not in ("bs", "rs", "ci", "v", "by", "weights")]
    return "|".join([signature.metric, *facts])


def check_signatures(numbers: Sequence[Result]) -> None:
    """Rows stand in one column only where items, tokenizer and definition agree."""
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
