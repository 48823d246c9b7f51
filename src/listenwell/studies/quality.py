"""Quality filters by time, sameness and bonus points. Reports always show the numbers with and without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from listenwell.studies.results import Judgement, Results, TaskRecord, judgements
from listenwell.studies.spec import HUMAN, Bonus


@dataclass(frozen=True, slots=True)
class Discarded:
    """A task, or all tasks of a rater, discarded by the filters."""

    rater: str
    task: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Filtered:
    kept: tuple[TaskRecord, ...]
    discarded: tuple[Discarded, ...]


def bonus_points(record: TaskRecord, results: Results) -> int:
    """One point for each check in which the human reply was rated good or okay (MEED2 § 5.4.1)."""
    items = results.items()
    enough = Bonus().good_enough if not results.spec.bonus.per_task else results.spec.bonus.good_enough
    return sum(answer.by_system().get(HUMAN) in enough for answer in record.answers if items[answer.item].bonus)


def filter_records(results: Results, records: Sequence[TaskRecord]) -> Filtered:
    """Apply the study's filters: the records they keep, and the reasons for discarding the rest."""
    discarded = list(_same_all_the_time(results, records))
    left_out = {one.rater for one in discarded}
    kept = []
    for record in records:
        if record.rater in left_out:
            continue
        reason = _reason(record, results)
        if reason is None:
            kept.append(record)
        else:
            discarded.append(Discarded(record.rater, record.task, reason))
    return Filtered(tuple(kept), tuple(discarded))


def _reason(record: TaskRecord, results: Results) -> str | None:
    filters, has_bonus = results.spec.filters, bool(results.spec.bonus.per_task)
    points = bonus_points(record, results)
    if has_bonus and filters.needs_bonus and points < filters.min_bonus:
        return f"{points} bonus points, fewer than {filters.min_bonus}"
    fast = record.minutes is not None and record.minutes < filters.min_minutes
    if fast and has_bonus and points < filters.min_bonus:
        return f"done in {record.minutes:.1f} minutes with {points} bonus points"
    if fast and not has_bonus:
        return f"done in {record.minutes:.1f} minutes"
    return None


def _same_all_the_time(results: Results, records: Sequence[TaskRecord]) -> Iterable[Discarded]:
    """Raters who gave the same answer to almost everything."""
    filters = results.spec.filters
    by_rater: dict[str, list[Judgement]] = {}
    for one in judgements(records, results):
        by_rater.setdefault(one.rater, []).append(one)
    for rater, given in by_rater.items():
        value, times = Counter(str(one.value) for one in given).most_common(1)[0]
        if len(given) >= filters.sameness_from and times / len(given) > filters.sameness:
            yield Discarded(rater, None, f"{value!r} in {times} of {len(given)} judgements")
