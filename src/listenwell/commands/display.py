"""Progress bars and tables, shared by all commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from listenwell.metrics import Score


@contextmanager
def tracked() -> Iterator[Callable[[str, int], Callable[[int], None]]]:
    """Progress bars on standard error, one per long task; nothing if it is not a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:

        def begin(name: str, total: int) -> Callable[[int], None]:
            task = bars.add_task(name, total=total)
            return lambda more: bars.advance(task, more)

        yield begin


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> Table:
    result = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        result.add_column(column, justify="right" if column in right else "left")
    for row in rows:
        result.add_row(*row)
    return result


def grid(rows: Iterable[Sequence[str]]) -> Table:
    """Columns side by side, without a title or lines."""
    result = Table.grid(padding=(0, 2))
    for row in rows:
        result.add_row("", *row)
    return result


def scores_table(title: str, scores: Iterable[Score]) -> Table:
    """A table with a row per score: its value, its 95 % interval, and how it was computed."""
    columns = ("score", "value", "95 % interval", "signature")
    return table(title, columns, map(_score_row, scores), right=("value",))


def _score_row(score: Score) -> tuple[str, str, str, str]:
    from listenwell.evaluation.compare import digits

    shown = max(2, digits([score]))
    interval = "" if score.low is None else f"{score.low:.{shown}f} to {score.high:.{shown}f}"
    return score.name, f"{score.value:.{shown}f}{score.unit and ' ' + score.unit}", interval, str(score.signature)


def report() -> Console:
    """A console for tables of scores: as wide as the terminal, or wide enough for the whole table."""
    return Console(width=None if Console().is_terminal else 160)
