"""Progress of a curation: a bar per step, with the rate and the estimated time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class RateColumn(ProgressColumn):
    """The rate per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        unit = task.fields.get("unit", "")
        return Text("" if speed is None else f"{speed:,.1f} {unit}/s", style="progress.data.speed")


@contextmanager
def rates(console: Console | None = None) -> Iterator[Callable[[str, str, int], Callable[[int], None]]]:
    """Progress bars on standard error, one per step; nothing if it is not a terminal."""
    console = console or Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:

        def begin(name: str, unit: str, total: int) -> Callable[[int], None]:
            task = bars.add_task(name, total=total, unit=unit)
            return lambda more: bars.advance(task, more)

        yield begin
