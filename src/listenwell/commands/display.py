"""What the commands print alike: progress bars and tables."""

from __future__ import annotations

import codecs
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from listenwell.metrics import Score

PLAIN = {"…": "...", "·": "-", "█": "#", "–": "-", "—": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "→": "->"}
"""What stands for a symbol where the terminal has only ASCII."""


def degrade_symbols() -> None:
    """From now on, what the terminal's encoding lacks is printed as something like it, and never an error."""
    codecs.register_error("listenwell.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="listenwell.plain")


def _plain(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    lacking = problem.object[problem.start : problem.end]
    return "".join(map(_like, lacking)), problem.end


def _like(symbol: str) -> str:
    letters = unicodedata.normalize("NFKD", symbol).encode("ascii", "ignore").decode()
    return PLAIN.get(symbol) or letters or "?"


@contextmanager
def tracked() -> Iterator[Callable[[str, int], Callable[[int], None]]]:
    """A progress bar on standard error for each piece of long work; nothing where no one looks."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:

        def begin(name: str, total: int) -> Callable[[int], None]:
            task = bars.add_task(name, total=total)
            return lambda more: bars.advance(task, more)

        yield begin


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> Table:
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left")
    for row in rows:
        made.add_row(*row)
    return made


def grid(rows: Iterable[Sequence[str]]) -> Table:
    """Columns side by side, without a title or lines."""
    made = Table.grid(padding=(0, 2))
    for row in rows:
        made.add_row("", *row)
    return made


def scores_table(title: str, scores: Iterable[Score]) -> Table:
    """A row for each score: its value, its 95 % interval, and how it was computed."""
    columns = ("score", "value", "95 % interval", "signature")
    return table(title, columns, map(_score_row, scores), right=("value",))


def _score_row(score: Score) -> tuple[str, str, str, str]:
    from listenwell.evaluation.compare import digits

    shown = max(2, digits([score]))
    interval = "" if score.low is None else f"{score.low:.{shown}f} to {score.high:.{shown}f}"
    return score.name, f"{score.value:.{shown}f}{score.unit and ' ' + score.unit}", interval, str(score.signature)


def report() -> Console:
    """Where a table of scores is printed: as wide as the terminal, or wide enough for all of it."""
    return Console(width=None if Console().is_terminal else 160)
