"""What of a paper can be reproduced, and by what: one YAML file per paper in `recipes/papers/`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml

from listenwell.configuration import instantiate
from listenwell.evaluation import published
from listenwell.labels.taxonomy import unknown_name

RATERS = ("human_", "ab_", "kappa", "empathy_", "relevance_", "fluency_")
"""How the names of numbers begin that only people can give."""


@dataclass(frozen=True)
class DatasetSpec:
    """What a paper's dataset is among our sources."""

    data: str
    drawn: int = 0
    """How many items are drawn; 0 for all."""
    split: str = "test"


@dataclass(frozen=True)
class SystemSpec:
    """Where a row of a paper comes from: shipped weights, a recipe, or nowhere, and why."""

    system: str | None = None
    """The name of shipped weights."""
    recipe: str | None = None
    after: list[str] = field(default_factory=list)
    """Recipes that are trained before it, in this order: what it starts from, and its parts."""
    paper_recipe: str | None = None
    """The recipe at the paper's own size."""
    reason: str | None = None
    """Why it is not possible here."""


@dataclass(frozen=True)
class TableSpec:
    title: str
    study: str | None = None
    """The rating study that gives its human numbers."""


@dataclass(frozen=True)
class FigureSpec:
    title: str
    kind: Literal["embeddings", "by-emotion"]
    """embeddings: of the emotions, in a plane; by-emotion: the accuracy for each emotion."""
    systems: list[str]


@dataclass(frozen=True)
class PaperSpec:
    """All of one paper."""

    title: str
    datasets: dict[str, DatasetSpec]
    systems: dict[str, SystemSpec]
    tables: dict[str, TableSpec]
    figures: dict[str, FigureSpec] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """Why a number of this name is not measured."""
    decoding: list[str] = field(default_factory=list)
    """Options of decoding by which the paper writes, such as method=greedy; else the systems' own."""
    name: str = ""

    def rows(self, table: str) -> list[published.Row]:
        return published.rows(self.name, table)

    def system_of(self, row: published.Row) -> SystemSpec:
        """Of "A vs B" it is A's; of a row about all systems there is none."""
        name = row.system.split(" vs ")[0]
        if name in self.systems:
            return self.systems[name]
        return SystemSpec(reason="it is about all systems together")

    def why_not(self, table: str, metric: str) -> str | None:
        """Why a metric is not a measured score; None where it is."""
        if metric in self.reasons:
            return self.reasons[metric]
        if metric.startswith(RATERS):
            return f"needs raters: {study_command(self.tables[table].study)}"
        if published.meaning(self.name, metric) is None:
            return f"{metric} is not among the scores of listenwell evaluate"
        return None


def study_command(study: str | None) -> str:
    return "no study is made for it" if study is None else f"listenwell study create {study} --recipe {study}"


@cache
def papers() -> dict[str, PaperSpec]:
    """By the name that `published.csv` has for it."""
    folder = resources.files("listenwell.recipes").joinpath("papers")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name)
    return {file.name.removesuffix(".yaml"): _read(file.name, file.read_text(encoding="utf-8")) for file in files}


def paper(name: str) -> PaperSpec:
    if name not in papers():
        raise ValueError(unknown_name("paper", name, papers()))
    return papers()[name]


def _read(file: str, text: str) -> PaperSpec:
    data: dict[str, Any] = yaml.safe_load(text)
    kinds = {"datasets": DatasetSpec, "systems": SystemSpec, "tables": TableSpec, "figures": FigureSpec}
    for key, cls in kinds.items():
        entries = data.get(key, {})
        data[key] = {str(name): instantiate(cls, entry, f"{file}: {key}: {name}") for name, entry in entries.items()}
    return PaperSpec(**data, name=file.removesuffix(".yaml"))
