"""The papers' own human evaluation numbers, to show next to a study of the same kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from listenwell.evaluation import published
from listenwell.studies.spec import StudySpec
from listenwell.studies.tables import Cell, Row

PERCENT = {"human_good", "human_okay", "human_bad"}
"""Metrics published as fractions and shown as percentages."""


def rows_of(
    spec: StudySpec, metrics: Mapping[str, str], columns: Sequence[str], places: Sequence[str] | None = None
) -> list[Row]:
    """Rows of the study's published tables with any of `metrics`, which maps columns to the papers' metrics."""
    found = []
    ours = {name: system for system, name in spec.published_names.items()}
    for place in spec.published if places is None else places:
        for row in published.rows_at(place):
            cells = tuple(_cell(row, metrics.get(column, "")) for column in columns)
            if any(cell.value is not None for cell in cells):
                several = len({one.dataset for one in published.rows_at(place)}) > 1
                name = f"{row.system}, {row.dataset}" if several else row.system
                name += f", here {ours[row.system]}" if row.system in ours else ""
                found.append(Row(f"{row.paper}: {name}", cells, "published"))
    return found


def _cell(row: published.Row, metric: str) -> Cell:
    value = row.values.get(metric)
    if value is None:
        return Cell(None)
    shown = value.scaleb(2) if metric in PERCENT else value
    return Cell(float(shown), digits=max(0, -int(shown.as_tuple().exponent)))


def kappa_notes(places: Sequence[str]) -> list[str]:
    """Notes on the published agreement among raters."""
    notes = []
    for place in places:
        for row in published.rows_at(place):
            for metric, value in row.values.items():
                if metric.startswith("kappa"):
                    about = metric.removeprefix("kappa").strip("_").replace("_", " ")
                    of = ", ".join(part for part in (row.system, about) if part)
                    notes.append(f"{row.paper} reports a kappa of {value} ({of})")
    return notes
