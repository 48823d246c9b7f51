"""Plans what has to be trained and scored for a paper's tables, and what is already done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from listenwell.decoding.options import changed
from listenwell.evaluation.reproduce.spec import DatasetSpec, PaperSpec, SystemSpec
from listenwell.weights import shipped

Budget = Literal["small", "cpu", "paper"]

SMALL = 320
"""Examples per stage in the small budget: just enough to check that everything runs."""


@dataclass(frozen=True, slots=True)
class Training:
    """A training run of a recipe."""

    recipe: str
    seed: int
    folder: Path

    @property
    def mark(self) -> Path:
        """A file that exists until the run is finished."""
        return self.folder.with_name(f"{self.folder.name}.unfinished")

    @property
    def done(self) -> bool:
        return (self.folder / "best" / "config.json").is_file() and not self.mark.exists()


@dataclass(frozen=True, slots=True)
class Scoring:
    """An evaluation of a run, or of shipped weights, on a dataset. Rows of several tables may share it."""

    row: str
    """The first row that needs it."""
    system: str
    """A name or a folder, as in `listenwell evaluate`."""
    dataset: DatasetSpec
    folder: Path
    decoding: tuple[str, ...] = ()
    """The paper's decoding options; empty for the system's own decoding."""
    gold_emotion: bool = False
    """Whether it has the quirk that `gold_emotion.py` measures."""

    @property
    def done(self) -> bool:
        return (self.folder / "scores.json").is_file()


@dataclass(frozen=True, slots=True)
class Plan:
    """All steps, in the order in which they run."""

    trainings: tuple[Training, ...]
    scorings: tuple[Scoring, ...]
    of_row: Mapping[tuple[str, DatasetSpec], tuple[Scoring, ...]]
    """The evaluations of a row on a dataset, one per seed."""
    beside: Mapping[tuple[str, DatasetSpec], tuple[Scoring, ...]] = field(default_factory=dict)
    """The same with the systems' own decoding, if the paper's is different."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Rows that the budget has no recipe for, and what to do instead."""

    def missing(self) -> list[Training | Scoring]:
        steps: list[Training | Scoring] = [*self.trainings, *self.scorings]
        return [step for step in steps if not step.done]


def plan(
    paper: PaperSpec, root: Path, budget: Budget = "cpu", seeds: int = 1, tables: Sequence[str] | None = None
) -> Plan:
    """Plan a paper. With budget "cpu" and one seed, shipped weights are used if there are any; all else is trained.

    With budget "paper", rows without a recipe of the paper's size are left out; raises ValueError if no row is left.
    """
    trainings: dict[Path, Training] = {}
    scorings: dict[Path, Scoring] = {}
    of_row: dict[tuple[str, DatasetSpec], tuple[Scoring, ...]] = {}
    beside: dict[tuple[str, DatasetSpec], tuple[Scoring, ...]] = {}
    left_out: dict[str, str] = {}
    for row, spec, dataset in _needed(paper, tables):
        if budget == "paper" and spec.paper_recipe is None:
            left_out[row] = f"there is no recipe of the paper's size for {spec.recipe or spec.system}; use --budget cpu"
            continue
        if spec.system is not None and budget == "cpu" and seeds == 1 and spec.system in shipped():
            places = {root / "shipped" / spec.system / _folder(dataset): spec.system}
        else:
            runs = [_runs(spec, root, budget, seed) for seed in range(1, seeds + 1)]
            trainings |= {run.folder: run for of_seed in runs for run in of_seed}
            last = [of_seed[-1].folder for of_seed in runs]
            places = {folder / "evaluation" / f"reproduce-{_folder(dataset)}": str(folder) for folder in last}
        ways = [(tuple(paper.decoding), "", of_row)]
        if paper.decoding and _differs(spec, paper.decoding):
            ways.append(((), "-own", beside))
        for decoding, suffix, kept in ways:
            several = [
                Scoring(row, system, dataset, place.with_name(place.name + suffix), decoding, spec.gold_emotion)
                for place, system in places.items()
            ]
            kept[row, dataset] = tuple(scorings.setdefault(one.folder, one) for one in several)
    if left_out and not scorings:
        raise ValueError(next(iter(left_out.values())))
    return Plan(tuple(trainings.values()), tuple(scorings.values()), of_row, beside, left_out)


def options(decoding: Iterable[str]) -> dict[str, Any]:
    """Parses options such as method=greedy into a dict."""
    return {name: _value(text) for name, text in (change.split("=", 1) for change in decoding)}


def _value(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text


def _differs(spec: SystemSpec, decoding: Sequence[str]) -> bool:
    """Whether the paper's decoding differs from the system's own."""
    from listenwell.training import load_recipe  # imports torch, which most plans do not need

    own = load_recipe(spec.recipe or spec.system or "").decoding
    return changed(own, options(decoding)) != own


def _runs(spec: SystemSpec, root: Path, budget: Budget, seed: int) -> list[Training]:
    """The training runs for a row: those it depends on, then its own."""
    folder = root / f"{budget}-{seed}"
    return [Training(name, seed, folder / name) for name in _recipes(spec, budget)]


def _needed(paper: PaperSpec, tables: Sequence[str] | None) -> Iterator[tuple[str, SystemSpec, DatasetSpec]]:
    """Each row with a system, on each dataset, if at least one of its numbers can be measured."""
    for table in tables or paper.tables:
        for name in paper.tables[table].by_polarity:
            if paper.systems[name].reason is None:
                yield from ((name, paper.systems[name], dataset) for dataset in paper.datasets.values())
        for row in paper.rows(table):
            spec = paper.system_of(row)
            spec = paper.systems[spec.scored_with] if spec.scored_with else spec
            can_be_measured = any(paper.why_not(table, metric) is None for metric in row.values)
            if can_be_measured and spec.reason is None:
                yield row.system, spec, paper.datasets[row.dataset]


def _recipes(spec: SystemSpec, budget: Budget) -> Iterable[str]:
    before, last = (spec.paper_after, spec.paper_recipe) if budget == "paper" else (spec.after, spec.recipe)
    assert last is not None, "a row without a recipe is left out, or has a reason"
    return [*before, last]


def _folder(dataset: DatasetSpec) -> str:
    some = f"-{dataset.drawn}" if dataset.drawn else ""
    return f"{dataset.data}-{dataset.split}{some}"
