"""What the commands print alike: progress bars and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table


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
