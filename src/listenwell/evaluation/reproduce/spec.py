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
    paper_after: list[str] = field(default_factory=list)
    """What is trained before that one."""
    reason: str | None = None
    """Why it is not possible here."""
    scored_with: str | None = None
    """The row whose evaluation has its scores, where it is no system of its own."""
    score_names: dict[str, str] = field(default_factory=dict)
    """Which parts of the names of scores it replaces there, such as likeliest- by random-."""
    gold_emotion: bool = False
    """Whether public code gives it the gold emotion when it computes perplexity: a quirk to be measured."""

    def score_name(self, name: str) -> str:
        for part, replacement in self.score_names.items():
            name = name.replace(part, replacement)
        return name


@dataclass(frozen=True)
class TableSpec:
    title: str
    study: str | None = None
    """The rating study that gives its human numbers."""
    other_studies: dict[str, str] = field(default_factory=dict)
    """By metric, another study that gives it."""
    by_polarity: list[str] = field(default_factory=list)
    """Rows whose automatic scores are shown for positive and for negative emotions, beside what people said."""

    def study_of(self, metric: str) -> str | None:
        return self.other_studies.get(metric, self.study)

    def studies(self) -> list[str]:
        return [name for name in dict.fromkeys([self.study, *self.other_studies.values()]) if name]


@dataclass(frozen=True)
class DefinitionSpec:
    """How a paper defines a number that listenwell defines otherwise: the paper's comes first, ours stands beside."""

    score: str
    """By the paper's definition."""
    how: str
    ours: str
    """What ours is, in a few words."""
    beside: str | None = None
    """Our score, where it is not the one that the number usually stands for."""
    datasets: list[str] = field(default_factory=list)
    """Only on these; none for all."""


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
    definitions: dict[str, list[DefinitionSpec]] = field(default_factory=dict)
    """By the paper's name of a number; the first one for a dataset holds."""
    name: str = ""

    def definition(self, metric: str, dataset: str) -> DefinitionSpec | None:
        several = self.definitions.get(metric, [])
        return next((one for one in several if not one.datasets or dataset in one.datasets), None)

    def scores_needed(self) -> list[str]:
        """The names of all scores that its tables may show."""
        metrics = (metric for table in self.tables for row in self.rows(table) for metric in row.values)
        meanings = (published.meaning(self.name, metric) for metric in metrics)
        names: list[str | None] = [means.score for means in meanings if means is not None]
        names += [name for several in self.definitions.values() for one in several for name in (one.score, one.beside)]
        names += [spec.score_name(name) for spec in self.systems.values() for name in names if name]
        return list(dict.fromkeys(name for name in names if name))

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
            return f"needs raters: {study_command(self.tables[table].study_of(metric))}"
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
    data["definitions"] = {
        metric: [instantiate(DefinitionSpec, entry, f"{file}: definitions: {metric}") for entry in several]
        for metric, several in data.get("definitions", {}).items()
    }
    return PaperSpec(**data, name=file.removesuffix(".yaml"))
