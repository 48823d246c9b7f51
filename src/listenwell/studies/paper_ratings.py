"""A study's human ratings as the numbers of the published table that it reproduces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from listenwell.evaluation.published import DATASETS
from listenwell.evaluation.reproduce.verdict import Measured
from listenwell.studies.kinds import AREAS
from listenwell.studies.report import Report
from listenwell.studies.spec import StudySpec
from listenwell.studies.tables import Cell, Table

Numbers = dict[tuple[str | None, str, str], Measured]
"""By dataset (None for any), the paper's row, and metric."""

AB = {"win, %": "ab_win", "loss, %": "ab_loss", "tie, %": "ab_tie"}


def paper_numbers(report: Report) -> Numbers:
    """The numbers over the raters that the filters keep, as the papers count; empty if nobody has rated yet."""
    spec = report.study.spec
    (filtered,) = [section for section in report.sections if section.title == "After the filters"]
    numbers: Numbers = {}
    for table in filtered.tables:
        for dataset, column, metric, factor in _columns(spec, table):
            for row in (one for one in table.rows if one.kind == "measured"):
                measured = _measured(row.cells[column], factor)
                if measured is not None:
                    numbers[dataset, _published_name(spec, row.name), metric] = measured
    return numbers


def _columns(spec: StudySpec, table: Table) -> Iterator[tuple[str | None, int, str, float]]:
    """The dataset, the column, the paper's metric, and the factor that converts a value to the paper's unit."""
    scales = [scale.key for scale in spec.kind_of_study().scales]
    if table.key == "means" and spec.kind == "emotion":
        yield None, 0, "human_emotion_acc", 1.0
    elif table.key == "means":
        yield from ((None, column, f"human_{key}", 1.0) for column, key in enumerate(scales))
    elif table.key == "polarity":
        names = [f"{key}_{side}" for key in scales for side in ("pos", "neg")]
        yield from ((None, column, name, 1.0) for column, name in enumerate(names))
    elif table.key == "ab":
        yield from ((None, table.columns.index(column), metric, 1.0) for column, metric in AB.items())
    elif table.key == "drag" or table.key.startswith("drag-"):
        source = table.key.removeprefix("drag").lstrip("-")
        if not source or source in DATASETS:
            dataset = DATASETS.get(source or spec.data)
            yield from ((dataset, column, f"human_{area}", 0.01) for column, area in enumerate(AREAS))


def _published_name(spec: StudySpec, name: str) -> str:
    """The name of the paper's row, or of its pair of rows."""
    return " vs ".join(spec.published_names.get(part, part) for part in name.split(" vs "))


def _measured(cell: Cell, factor: float) -> Measured | None:
    if not isinstance(cell.value, float | int):
        return None
    low, high = (None if end is None else factor * end for end in (cell.low, cell.high))
    return Measured(factor * cell.value, low, high, "higher")


def oriented(metric: str, measured: Measured) -> Measured:
    """Mark losses and bad replies as lower-is-better."""
    return replace(measured, better="lower") if metric in ("ab_loss", "human_bad") else measured


def for_rows(numbers: Numbers, places: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], Measured]:
    """The numbers for the given cells (dataset, row, metric) of a paper's table."""
    found = {}
    for dataset, row, metric in places:
        measured = numbers.get((dataset, row, metric)) or numbers.get((None, row, metric))
        if measured is not None:
            found[dataset, row, metric] = oriented(metric, measured)
    return found
