"""Automatic scores by the polarity of the dialogue's emotion, for tables that report human ratings by polarity."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from listenwell.evaluation.reproduce.plan import Plan
from listenwell.evaluation.reproduce.spec import PaperSpec
from listenwell.evaluation.reproduce.verdict import Measured
from listenwell.metrics.score import Score

SHOWN = ("perplexity-word", "bleu-4", "accuracy@1", "ses", "sorry-to-hear", "length")
POLARITIES = ("positive", "negative")


@dataclass(frozen=True, slots=True)
class PolarityRow:
    """A system's scores on the dialogues of one polarity."""

    row: str
    polarity: str
    items: int
    scores: Mapping[str, Measured | None]


def polarity_tables(paper: PaperSpec, plan: Plan, tables: Sequence[str] | None = None) -> dict[str, list[PolarityRow]]:
    """The rows of scored systems, by table."""
    found = {table: _rows(paper, plan, table) for table in tables or paper.tables}
    return {table: rows for table, rows in found.items() if rows}


def _rows(paper: PaperSpec, plan: Plan, table: str) -> list[PolarityRow]:
    rows = []
    for name in paper.tables[table].by_polarity:
        for dataset in paper.datasets.values():
            folders = [one.folder for one in plan.of_row.get((name, dataset), ()) if one.done]
            rows += [_row(name, polarity, folders) for polarity in POLARITIES if folders]
    return rows


def _row(name: str, polarity: str, folders: Sequence[Path]) -> PolarityRow:
    parts = [_scores(folder, polarity) for folder in folders]
    scores = {
        score: Measured.of([part[score] for part in parts]) if all(score in part for part in parts) else None
        for score in SHOWN
    }
    items = max((int(score.signature["of_items"]) for score in parts[0].values()), default=0)
    return PolarityRow(name, polarity, items, scores)


def _scores(folder: Path, polarity: str) -> dict[str, Score]:
    """The stored scores of an evaluation on the items of one polarity; empty if the data has no emotions."""
    try:
        tables: dict[str, Any] = json.loads((folder / "tables.json").read_text(encoding="utf-8"))
    except OSError:
        return {}
    return {one["name"]: Score.from_json(one) for one in tables.get("polarity", {}).get(polarity, [])}
