"""What each rater is owed: finished tasks, parts of abandoned tasks, and bonuses. Everyone who joined is listed."""

from __future__ import annotations

from dataclasses import dataclass

from listenwell.studies.quality import bonus_points
from listenwell.studies.results import Results
from listenwell.studies.tables import write_csv


@dataclass(frozen=True, slots=True)
class PayLine:
    rater: str
    tasks: int
    """Finished tasks, including those no longer needed."""
    left: int
    """Tasks begun and not finished."""
    answers: int
    minutes: float
    bonus_points: int
    amount: float
    completion_code: str


def pay_list(results: Results) -> list[PayLine]:
    """One line per person, including dropouts. Work that the filters discard is paid too."""
    pay, checks = results.spec.pay, results.spec.bonus.per_task
    lines = []
    for rater, about in results.raters.items():
        if about["machine"]:
            continue
        own = [record for record in results.records if record.rater == rater]
        finished = [record for record in own if record.state in ("done", "extra")]
        points = [bonus_points(record, results) for record in finished]
        possible = [_checks(record.answers, results) for record in finished]
        bonuses = sum(bool(most) and got == most for got, most in zip(points, possible, strict=True)) if checks else 0
        parts = sum(len(record.answers) / record.size for record in own if record not in finished)
        lines.append(
            PayLine(
                rater,
                len(finished),
                len(own) - len(finished),
                sum(len(record.answers) for record in own),
                sum(answer.seconds for record in own for answer in record.answers) / 60,
                sum(points),
                round(pay.per_task * (len(finished) + parts) + pay.bonus * bonuses, 2),
                about["completion_code"],
            )
        )
    return lines


def _checks(given: tuple, results: Results) -> int:
    items = results.items()
    return sum(items[answer.item].bonus for answer in given)


def pay_csv(results: Results) -> str:
    currency = results.spec.pay.currency
    head = ["rater", "tasks", "left", "answers", "minutes", "bonus points", f"amount ({currency})", "completion code"]
    lines = [
        [
            line.rater,
            str(line.tasks),
            str(line.left),
            str(line.answers),
            f"{line.minutes:.1f}",
            str(line.bonus_points),
            f"{line.amount:.2f}",
            line.completion_code,
        ]
        for line in pay_list(results)
    ]
    return write_csv([head, *lines])
