"""What can be reproduced of a paper, and how: one YAML file per paper in `recipes/papers/`."""

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
"""Name prefixes of numbers that need human raters."""


@dataclass(frozen=True)
class DatasetSpec:
    """The source of ours that corresponds to a paper's dataset."""

    data: str
    drawn: int = 0
    """The number of items to draw; 0 for all."""
    split: str = "test"


@dataclass(frozen=True)
class SystemSpec:
    """How to obtain a row of a paper: shipped weights, a recipe, or the reason why it is not possible."""

    system: str | None = None
    """The name of shipped weights."""
    recipe: str | None = None
    after: list[str] = field(default_factory=list)
    """Recipes to train first, in this order: the one it starts from, and its parts."""
    paper_recipe: str | None = None
    """The recipe at the paper's own size."""
    paper_after: list[str] = field(default_factory=list)
    """Recipes to train before `paper_recipe`."""
    reason: str | None = None
    """Why it is not possible here."""
    scored_with: str | None = None
    """The row whose evaluation contains its scores, if it is not a separate system."""
    score_names: dict[str, str] = field(default_factory=dict)
    """Substitutions in the names of those scores, such as likeliest- by random-."""
    gold_emotion: bool = False
    """Whether the public code uses the gold emotion when it computes perplexity: a quirk to be measured."""

    def score_name(self, name: str) -> str:
        for part, replacement in self.score_names.items():
            name = name.replace(part, replacement)
        return name


@dataclass(frozen=True)
class TableSpec:
    title: str
    study: str | None = None
    """The rating study for its human numbers."""
    other_studies: dict[str, str] = field(default_factory=dict)
    """Metrics that are from another study, with its name."""
    by_polarity: list[str] = field(default_factory=list)
    """Rows whose automatic scores are shown for positive and for negative emotions, next to the human ratings."""

    def study_of(self, metric: str) -> str | None:
        return self.other_studies.get(metric, self.study)

    def studies(self) -> list[str]:
        return [name for name in dict.fromkeys([self.study, *self.other_studies.values()]) if name]


@dataclass(frozen=True)
class DefinitionSpec:
    """A paper's definition of a number that listenwell defines differently; both are shown, the paper's first."""

    score: str
    """The score by the paper's definition."""
    how: str
    ours: str
    """A short description of our definition."""
    beside: str | None = None
    """Our score, if it is not the one that usually corresponds to the number."""
    datasets: list[str] = field(default_factory=list)
    """The datasets it applies to; empty for all."""


@dataclass(frozen=True)
class FigureSpec:
    title: str
    kind: Literal["embeddings", "by-emotion"]
    """embeddings: the emotion embeddings in a plane; by-emotion: the accuracy for each emotion."""
    systems: list[str]


@dataclass(frozen=True)
class PaperSpec:
    """The specification of a paper."""

    title: str
    datasets: dict[str, DatasetSpec]
    systems: dict[str, SystemSpec]
    tables: dict[str, TableSpec]
    figures: dict[str, FigureSpec] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """By metric, why it is not measured."""
    decoding: list[str] = field(default_factory=list)
    """The paper's decoding options, such as method=greedy; empty for the systems' own."""
    definitions: dict[str, list[DefinitionSpec]] = field(default_factory=dict)
    """Definitions by the paper's name of a number; the first one that fits the dataset applies."""
    name: str = ""

    def definition(self, metric: str, dataset: str) -> DefinitionSpec | None:
        several = self.definitions.get(metric, [])
        return next((one for one in several if not one.datasets or dataset in one.datasets), None)

    def scores_needed(self) -> list[str]:
        """The names of all scores that the paper's tables may show."""
        metrics = (metric for table in self.tables for row in self.rows(table) for metric in row.values)
        meanings = (published.meaning(self.name, metric) for metric in metrics)
        names: list[str | None] = [means.score for means in meanings if means is not None]
        names += [name for several in self.definitions.values() for one in several for name in (one.score, one.beside)]
        names += [spec.score_name(name) for spec in self.systems.values() for name in names if name]
        return list(dict.fromkeys(name for name in names if name))

    def rows(self, table: str) -> list[published.Row]:
        return published.rows(self.name, table)

    def system_of(self, row: published.Row) -> SystemSpec:
        """The system of a row: for "A vs B" that of A; a row about all systems has none, only a reason."""
        name = row.system.split(" vs ")[0]
        if name in self.systems:
            return self.systems[name]
        return SystemSpec(reason="it is about all systems together")

    def why_not(self, table: str, metric: str) -> str | None:
        """Why a metric cannot be measured; None if it can."""
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
    """The papers by their name in `published.csv`."""
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
