"""From judgements to tables, with one function per kind of study."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from listenwell.studies import davidson
from listenwell.studies.kinds import AREAS, BOTH_BAD, TIE
from listenwell.studies.published_human import rows_of
from listenwell.studies.results import OUTCOMES, Judgement, Results, polarity_of
from listenwell.studies.statistics import holm, mean_of_items, paired_t, share, sign_test
from listenwell.studies.tables import Cell, Row, Table, p_value, stars
from listenwell.studies.tie_break import majority

Choose = Callable[[Judgement], bool]
POLARITIES = ("positive", "negative")


@dataclass(frozen=True, slots=True)
class View:
    """The judgements behind one table, and the results they come from."""

    results: Results
    judged: Sequence[Judgement]

    def where(self, choose: Choose) -> View:
        return View(self.results, [one for one in self.judged if choose(one)])

    def of_polarity(self, name: str) -> View:
        items = self.results.items()
        return self.where(lambda one: polarity_of(items[one.item]) == name)

    def of_source(self, name: str) -> View:
        items = self.results.items()
        return self.where(lambda one: items[one.item].source == name)

    def sources(self) -> list[str]:
        return sorted({item.source for item in self.results.design.items})


def main_tables(view: View, machine: str = "") -> list[Table]:
    """The study's tables, with published rows for comparison. `machine` names the judge if it is not a person."""
    kind = view.results.spec.kind
    if kind == "ab":
        return ab_tables(view, machine)
    if kind == "drag":
        return drag_tables(view, machine)
    return rating_tables(view, machine)


# Ratings: likert and emotion


def item_means(view: View, system: str, scale: str) -> dict[str, float]:
    """The mean over raters for each item. Empty for A/B and drag studies."""
    values: dict[str, list[float]] = defaultdict(list)
    for one in view.judged:
        if one.system == system and one.scale == scale and isinstance(one.value, int | float):
            values[one.item].append(float(one.value))
    return {item: fmean(given) for item, given in values.items()}


def rating_tables(view: View, machine: str = "") -> list[Table]:
    spec, kind = view.results.spec, view.results.spec.kind_of_study()
    scales = {scale.key: scale.name for scale in kind.scales}
    factor = 100.0 if spec.kind == "emotion" else 1.0
    columns = tuple(name + (", %" if factor == 100 else "") for name in scales.values())
    measured = _rating_rows(view, scales, factor, machine)
    metrics = {column: f"human_{key}" for column, key in zip(columns, scales, strict=True)}
    if spec.kind == "emotion":
        metrics = {columns[0]: "human_emotion_acc"}
    notes = (
        "Mean over items, each the mean of its raters, with Student's 95 % interval over items.",
        "* differs from the first system (paired t test over items, Holm's correction, p < 0.05).",
    )
    beside = rows_of(spec, metrics, columns)
    tables = [Table("means", _titled("Ratings", machine), "system", columns, (*measured, *beside), notes)]
    tables += _by_polarity(view, scales, factor, machine)
    tables.append(_rating_tests(view, scales, machine))
    return tables


def _rating_rows(view: View, scales: Mapping[str, str], factor: float, machine: str) -> list[Row]:
    systems = view.results.spec.systems
    tests = [(s, k, _compare(view, systems[0], s, k)) for s in systems[1:] for k in scales]
    adjusted = dict(zip([(s, k) for s, k, _ in tests], holm([p for _, _, (_, p) in tests]), strict=True))
    rows = []
    for system in systems:
        cells = []
        for key in scales:
            estimate = mean_of_items(list(item_means(view, system, key).values()))
            digits = 1 if factor == 100 else 2
            cells.append(Cell.of(estimate, factor, digits, stars(adjusted.get((system, key)))))
        rows.append(Row(system, tuple(cells), "machine" if machine else "measured"))
    return rows


def _by_polarity(view: View, scales: Mapping[str, str], factor: float, machine: str) -> list[Table]:
    """MIME's Table 4: ratings of contexts with positive and with negative emotions."""
    if not any(view.of_polarity(name).judged for name in POLARITIES):
        return []
    columns = tuple(f"{name}, {polarity}" for name in scales.values() for polarity in POLARITIES)
    rows = []
    for system in view.results.spec.systems:
        cells = [
            Cell.of(mean_of_items(list(item_means(view.of_polarity(polarity), system, key).values())), factor)
            for key in scales
            for polarity in POLARITIES
        ]
        rows.append(Row(system, tuple(cells), "machine" if machine else "measured"))
    short = {"positive": "pos", "negative": "neg"}
    keys = [f"{key}_{short[polarity]}" for key in scales for polarity in POLARITIES]
    places = ["mime/4"] if any(place.startswith("mime/") for place in view.results.spec.published) else []
    beside = rows_of(view.results.spec, dict(zip(columns, keys, strict=True)), columns, places)
    title = _titled("By polarity of the context's emotion", machine)
    return [Table("polarity", title, "system", columns, (*rows, *beside))]


def _compare(view: View, first: str, second: str, scale: str) -> tuple[float | None, float | None]:
    """The mean difference over the items that both systems have, and its p-value."""
    one, other = item_means(view, first, scale), item_means(view, second, scale)
    both = sorted(set(one) & set(other))
    if not both:
        return None, None
    left, right = [one[item] for item in both], [other[item] for item in both]
    return fmean(left) - fmean(right), paired_t(left, right)


def _rating_tests(view: View, scales: Mapping[str, str], machine: str) -> Table:
    pairs = [(a, b, key) for a, b in combinations(view.results.spec.systems, 2) for key in scales]
    comparisons = [_compare(view, a, b, key) for a, b, key in pairs]
    adjusted = holm([p for _, p in comparisons])
    rows = tuple(
        Row(
            f"{a} − {b}, {scales[key]}",
            (Cell(difference, digits=3), p_value(p), p_value(corrected), Cell("yes" if stars(corrected) else "no")),
            "machine" if machine else "measured",
        )
        for (a, b, key), (difference, p), corrected in zip(pairs, comparisons, adjusted, strict=True)
    )
    title = _titled("Differences between systems", machine)
    columns = ("difference", "p", "p, Holm", "significant")
    return Table("tests", title, "systems and scale", columns, rows, ("Paired t tests over items.",))


# A/B


def verdicts(view: View) -> dict[str, dict[str, str | None]]:
    """The majority verdict by pair and item; None where there is no majority."""
    said: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for one in view.judged:
        said[one.system][one.item].append(str(one.value))
    return {pair: {item: majority(given) for item, given in by_item.items()} for pair, by_item in said.items()}


def ab_counts(view: View) -> dict[str, Counter[str | None]]:
    return {pair: Counter(by_item.values()) for pair, by_item in verdicts(view).items()}


def ab_tables(view: View, machine: str = "") -> list[Table]:
    columns = ("win, %", "loss, %", "tie, %", "both bad, %", "undecided", "items", "p", "p, Holm")
    metrics = {"win, %": "ab_win", "loss, %": "ab_loss", "tie, %": "ab_tie"}
    beside = rows_of(view.results.spec, metrics, columns)
    notes = (
        "The majority's verdict on each item, from the side of the first system; a fourth rater decides where three "
        "disagree. Papers that offered no 'both bad' count it as a tie.",
        "p: exact sign test of wins against losses; Holm's correction over the pairs.",
    )
    measured = _ab_rows(view, machine)
    tables = [Table("ab", _titled("A/B test", machine), "pair", columns, (*measured, *beside), notes)]
    for polarity in POLARITIES:
        part = view.of_polarity(polarity)
        if part.judged:
            title = _titled(f"A/B test, {polarity} emotions", machine)
            tables.append(Table(f"ab-{polarity}", title, "pair", columns, tuple(_ab_rows(part, machine))))
    tables.append(_davidson_table(view, machine))
    return tables


def _ab_rows(view: View, machine: str) -> list[Row]:
    counts = ab_counts(view)
    tests = [sign_test(count["win"], count["loss"]) for count in counts.values()]
    rows = []
    for (pair, count), p, corrected in zip(counts.items(), tests, holm(tests), strict=True):
        decided = sum(count[name] for name in OUTCOMES)
        shares = [Cell.of(share(count[name], decided), 100, 1) for name in OUTCOMES]
        numbers = [Cell(float(count[None]), digits=0), Cell(float(decided), digits=0)]
        row = (*shares, *numbers, p_value(p), p_value(corrected))
        rows.append(Row(pair, row, "machine" if machine else "measured"))
    return rows


def _davidson_table(view: View, machine: str) -> Table:
    counts = {
        tuple(pair.split(" vs ", 1)): (
            float(count["win"]),
            float(count["loss"]),
            float(count[TIE] + count[BOTH_BAD]),
        )
        for pair, count in ab_counts(view).items()
    }
    fitted = davidson.fit(counts)  # type: ignore[arg-type]
    columns = ("log strength", "p(better than the first)")
    title = _titled("Davidson's model of wins and ties", machine)
    if fitted is None:
        why = ("It has no estimate here: a system always or never wins, or nothing was compared yet.",)
        return Table("davidson", title, "system", columns, (), why)
    first = view.results.spec.systems[0]
    rows = []
    for system in sorted(fitted.strengths, key=lambda name: -fitted.strengths[name]):
        low, high = fitted.interval(system)
        better = None if system == first else fitted.probabilities(system, first)[0]
        kind = "machine" if machine else "measured"
        rows.append(Row(system, (Cell(fitted.strengths[system], low, high), Cell(better)), kind))
    tie = "no ties" if fitted.log_tie == float("-inf") else f"log ν = {fitted.log_tie:.3f}"
    note = f"Maximum likelihood over the verdicts; strengths around zero with 95 % intervals; {tie}."
    return Table("davidson", title, "system", columns, tuple(rows), (note,))


# Drag and drop


def drag_tables(view: View, machine: str = "") -> list[Table]:
    spec = view.results.spec
    columns = (*(f"{area}, %" for area in AREAS), "judgements")
    metrics = {f"{area}, %": f"human_{area}" for area in AREAS}
    sources = view.sources()
    rows = _drag_rows(view, machine)
    beside = rows_of(spec, metrics, columns)
    notes = ("Shares of all judgements, with 95 % intervals over items (each item's share of its raters).",)
    tables = [Table("drag", _titled("Good, okay, bad", machine), "system", columns, (*rows, *beside), notes)]
    if len(sources) > 1:
        for source in sources:
            part = tuple(_drag_rows(view.of_source(source), machine))
            tables.append(
                Table(f"drag-{source}", _titled(f"Good, okay, bad: {source}", machine), "system", columns, part)
            )
    for polarity in POLARITIES:
        if (part_of := view.of_polarity(polarity)).judged:
            title = _titled(f"Good, okay, bad: {polarity} emotions", machine)
            tables.append(Table(f"drag-{polarity}", title, "system", columns, tuple(_drag_rows(part_of, machine))))
    tables.append(_drag_tests(view, machine))
    return tables


def area_shares(view: View, system: str, area: str) -> dict[str, float]:
    """For each item, the share of raters who put the system's reply in this area."""
    said: dict[str, list[bool]] = defaultdict(list)
    for one in view.judged:
        if one.system == system:
            said[one.item].append(one.value == area)
    return {item: fmean(given) for item, given in said.items()}


def _drag_rows(view: View, machine: str) -> list[Row]:
    rows = []
    for system in view.results.spec.systems:
        number = sum(one.system == system for one in view.judged)
        cells = []
        for area in AREAS:
            interval = mean_of_items(list(area_shares(view, system, area).values()))
            count = sum(one.system == system and one.value == area for one in view.judged)
            low = None if interval is None or interval.low is None else max(0.0, 100 * interval.low)
            high = None if interval is None or interval.high is None else min(100.0, 100 * interval.high)
            cells.append(Cell(100 * count / number if number else None, low, high, digits=1))
        cells.append(Cell(float(number), digits=0))
        rows.append(Row(system, tuple(cells), "machine" if machine else "measured"))
    return rows


def _drag_tests(view: View, machine: str) -> Table:
    pairs = list(combinations(view.results.spec.systems, 2))
    comparisons = []
    for a, b in pairs:
        one, other = area_shares(view, a, "good"), area_shares(view, b, "good")
        both = sorted(set(one) & set(other))
        left, right = [one[item] for item in both], [other[item] for item in both]
        comparisons.append(
            (100 * (fmean(left) - fmean(right)) if both else None, paired_t(left, right) if both else None)
        )
    adjusted = holm([p for _, p in comparisons])
    rows = tuple(
        Row(
            f"{a} − {b}",
            (Cell(difference, digits=1), p_value(p), p_value(corrected), Cell("yes" if stars(corrected) else "no")),
            "machine" if machine else "measured",
        )
        for (a, b), (difference, p), corrected in zip(pairs, comparisons, adjusted, strict=True)
    )
    columns = ("difference of good, %", "p", "p, Holm", "significant")
    title = _titled("Differences between systems", machine)
    return Table("tests", title, "systems", columns, rows, ("Paired t tests over items on the share of good.",))


def good_labels(view: View) -> dict[str, Counter[str]]:
    """MEED2's Figure 5: for each system that chooses labels, the labels of its replies that were rated good."""
    counts: dict[str, Counter[str]] = {}
    for one in view.judged:
        label = view.results.design.replies[one.item, one.system].label
        if label is not None and one.value == AREAS[0]:
            counts.setdefault(one.system, Counter())[label] += 1
    return counts


def _titled(title: str, machine: str) -> str:
    return f"{title} (machine: {machine})" if machine else title
