"""The papers' own human numbers, beside which a study of the same kind is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from listenwell.evaluation import published
from listenwell.studies.tables import Cell, Row

PERCENT = {"human_good", "human_okay", "human_bad"}
"""Published as shares, shown as percent."""

KAPPAS: dict[tuple[str, str], float] = {
    ("strategy-memory", "all"): 0.42,
    ("bert-joint", "fluency"): 0.53,
    ("bert-joint", "consistency"): 0.49,
    ("bert-joint", "emotion"): 0.65,
}
"""Fleiss' kappas that stand in the text of a paper, not in a table."""


def rows_of(places: Sequence[str], metrics: Mapping[str, str], columns: Sequence[str], dataset: str = "") -> list[Row]:
    """Published rows of the tables at `places` that have one of `metrics`, which maps a column to the paper's metric."""
    found = []
    for place in places:
        for row in published.rows_at(place):
            if dataset and row.dataset != dataset:
                continue
            cells = tuple(_cell(row, metrics.get(column, "")) for column in columns)
            if any(cell.value is not None for cell in cells):
                several = len({one.dataset for one in published.rows_at(place)}) > 1
                name = f"{row.system}, {row.dataset}" if several else row.system
                found.append(Row(f"{row.paper}: {name}", cells, "published"))
    return found


def _cell(row: published.Row, metric: str) -> Cell:
    value = row.values.get(metric)
    if value is None:
        return Cell(None)
    shown = value.scaleb(2) if metric in PERCENT else value
    return Cell(float(shown), digits=max(0, -int(shown.as_tuple().exponent)))


def kappa_notes(places: Sequence[str]) -> list[str]:
    """Published agreement, in words."""
    papers = dict.fromkeys(place.split("/")[0] for place in places)
    return [
        f"{paper} reports a Fleiss' kappa of {value:.2f}" + ("" if scale == "all" else f" for {scale}")
        for paper in papers
        for (named, scale), value in KAPPAS.items()
        if named == paper
    ]
