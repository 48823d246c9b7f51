"""Tables of agreement among people, and between machines and people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from scipy import stats

from listenwell.studies.agreement import (
    Level,
    Units,
    Value,
    fleiss_kappa,
    krippendorff_alpha,
    mean_over_pairs,
    weighted_kappa,
)
from listenwell.studies.kinds import AREAS, Kind
from listenwell.studies.published_human import kappa_notes
from listenwell.studies.results import OUTCOMES, Judgement, Results
from listenwell.studies.tables import Cell, Row, Table


def units_by_scale(judged: Sequence[Judgement]) -> dict[str, dict[Hashable, dict[str, Value]]]:
    """Group judgements by scale and unit. A unit is a reply to an item, or a pair of replies."""
    units: dict[str, dict[Hashable, dict[str, Value]]] = defaultdict(lambda: defaultdict(dict))
    for one in judged:
        units[one.scale][one.item, one.system][one.rater] = one.value
    return units


def scale_of(kind: Kind, key: str) -> tuple[Level, list[Value]]:
    """The level of measurement of a scale, and its values from lowest to highest."""
    if kind.name == "drag":
        return "ordinal", list(reversed(AREAS))
    if kind.name == "ab":
        return "nominal", list(OUTCOMES)
    if kind.name == "emotion":
        return "nominal", [0.0, 1.0]
    scale = next(one for one in kind.scales if one.key == key)
    return "ordinal", list(range(scale.min, scale.max + 1))


def agreement_table(results: Results, judged: Sequence[Judgement]) -> Table:
    kind = results.spec.kind_of_study()
    rows = []
    for key, units in units_by_scale(judged).items():
        level, values = scale_of(kind, key)
        fleiss = fleiss_kappa(units)
        weighted = None
        if level == "ordinal":
            weighted = mean_over_pairs(units, partial(_quadratic, values))
        cells = (
            Cell(None if fleiss is None else fleiss[0], digits=3),
            Cell(krippendorff_alpha(units, level, values), digits=3),
            Cell(None if weighted is None else weighted[0], digits=3),
            Cell(float(len(units)), digits=0),
            Cell("–" if fleiss is None else f"{fleiss[1]} × {fleiss[2]}"),
        )
        rows.append(Row(f"{key} ({level})", cells))
    columns = ("Fleiss' κ", "Krippendorff's α", "weighted κ", "judged", "units × raters of κ")
    notes = (
        "Fleiss' κ takes values as names; α is of the scale's level; the weighted κ (quadratic) is the mean over pairs "
        "of raters, by how much both judged.",
        *kappa_notes(results.spec.published),
    )
    return Table("agreement", "Agreement among people", "scale", columns, tuple(rows), notes)


def _quadratic(values: list[Value], first: list[Value], second: list[Value]) -> float | None:
    return weighted_kappa(first, second, values, "quadratic")


def machine_agreement(results: Results, people: Sequence[Judgement], machine: Sequence[Judgement], name: str) -> Table:
    """A machine's agreement with people on the units that both rated; never mixed with agreement among people."""
    kind = results.spec.kind_of_study()
    by_people, by_machine = units_by_scale(people), units_by_scale(machine)
    rows = []
    for key, units in by_machine.items():
        level, values = scale_of(kind, key)
        both = {unit: by_people[key][unit] for unit in units if unit in by_people.get(key, {})}
        if not both:
            continue
        single = {unit: next(iter(units[unit].values())) for unit in both}
        cells = (
            Cell(_with_each(both, single, values, level), digits=3),
            Cell(_correlation(both, single, values, level), digits=3),
            Cell(_same_as_most(both, single), digits=1),
            Cell(float(len(both)), digits=0),
        )
        rows.append(Row(f"{key}: {name}", cells, "machine"))
    columns = ("κ with people", "Spearman's ρ with their mean", "same as most of them, %", "judged by both")
    note = "κ is the mean over people, quadratically weighted where the scale has an order."
    return Table(
        "machine-agreement", f"Agreement of a machine with people: {name}", "scale", columns, tuple(rows), (note,)
    )


def _with_each(both: Units, single: dict[Any, Value], values: list[Value], level: Level) -> float | None:
    """The machine's mean kappa with each person, weighted by the number of units that both judged."""
    shared: dict[str, list[tuple[Value, Value]]] = defaultdict(list)
    for unit, given in both.items():
        for rater, value in given.items():
            shared[rater].append((single[unit], value))
    found = []
    for pairs in shared.values():
        first, second = [a for a, _ in pairs], [b for _, b in pairs]
        kappa = weighted_kappa(first, second, values, "quadratic") if level == "ordinal" else _plain(first, second)
        if kappa is not None:
            found.append((kappa, len(pairs)))
    return sum(k * n for k, n in found) / sum(n for _, n in found) if found else None


def _plain(first: list[Value], second: list[Value]) -> float | None:
    """Cohen's kappa without weights."""
    agree = fmean(a == b for a, b in zip(first, second, strict=True))
    names = set(first) | set(second)
    expected = sum(first.count(name) * second.count(name) for name in names) / len(first) ** 2
    return None if expected == 1 else (agree - expected) / (1 - expected)


def _correlation(both: Units, single: dict[Any, Value], values: list[Value], level: Level) -> float | None:
    """Spearman's correlation of the machine's values with the mean of the people's."""
    if level == "nominal" and values != [0.0, 1.0]:
        return None
    place = {value: number for number, value in enumerate(values)}
    machine = [place[single[unit]] for unit in both]
    people = [fmean(place[value] for value in given.values()) for given in both.values()]
    if len(set(machine)) < 2 or len(set(people)) < 2:
        return None
    return float(stats.spearmanr(machine, people).statistic)


def _same_as_most(both: Units, single: dict[Any, Value]) -> float:
    """The percentage of units on which the machine gives the most common answer of the people, or one tied for it."""
    same = 0
    for unit, given in both.items():
        said = list(given.values())
        most = max(said.count(value) for value in said)
        same += single[unit] in {value for value in said if said.count(value) == most}
    return 100 * same / len(both)
