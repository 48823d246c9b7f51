"""The output of a run: a progress display, JSON lines, TensorBoard."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Journal:
    """Writes log.jsonl, one record per line, and the same numbers to TensorBoard if it is installed."""

    def __init__(self, folder: Path, after: int) -> None:
        """`after`: the number of updates done so far; anything an interrupted run logged beyond that is dropped."""
        self.path = folder / "log.jsonl"
        self._drop_beyond(after)
        self._lines = self.path.open("a", encoding="utf-8")
        try:
            from torch.utils.tensorboard import SummaryWriter

            self._board: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=after + 1)
        except ImportError:
            self._board = None

    def _drop_beyond(self, after: int) -> None:
        if not self.path.exists():
            return
        lines = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                if json.loads(line)["update"] <= after:
                    lines.append(line)
            except (ValueError, KeyError):
                continue  # a line that was cut off by a hard stop
        fresh = self.path.with_suffix(".writing")
        fresh.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        fresh.replace(self.path)

    def write(self, kind: str, update: int, record: dict[str, Any]) -> None:
        self._lines.write(json.dumps({"kind": kind, "update": update, **record}) + "\n")
        self._lines.flush()
        if self._board is not None:
            for name, value in record.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{kind}/{name}", value, update)
            if replies := record.get("replies"):
                self._board.add_text("replies", _as_table(replies), update)

    def close(self) -> None:
        self._lines.close()
        if self._board is not None:
            self._board.close()


def _as_table(replies: list[dict[str, str]]) -> str:
    """A Markdown table, which TensorBoard can render."""
    cells = [[text.replace("|", "\\|").replace("\n", " ") for text in reply.values()] for reply in replies]
    return "\n".join(["| context | reply |", "|---|---|", *(f"| {' | '.join(row)} |" for row in cells)])


def read_journal(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Display:
    """A progress bar with losses, examples/s and time left in a terminal; elsewhere a line every 30 seconds."""

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self.console = console
        self.quiet = quiet
        self._live = console.is_terminal and not quiet
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[state]}"),
            console=console,
            disable=not self._live,
        )
        self._task: TaskID | None = None
        self._name = ""
        self._said = time.monotonic()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begin(self, name: str, total: int) -> Callable[[int], None]:
        """Show the progress of work before training; returns a function to call with the number of newly done items."""
        task, done = self._progress.add_task(name, total=total, state=""), 0
        self.say(f"{name}: {total:,}")

        def advance(more: int) -> None:
            nonlocal done
            done += more
            self._progress.advance(task, more)
            if done >= total:
                self._progress.remove_task(task)
            elif not self._live and time.monotonic() - self._said >= 30:
                self._said = time.monotonic()
                self.say(f"{name}: {done:,} of {total:,}")

        return advance

    def stage(self, name: str, total: int, done: int) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._name = name
        self._task = self._progress.add_task(name, total=total, completed=done, state="")

    def update(self, seen: int, total: int, means: dict[str, float], speed: float) -> None:
        state = f"{describe(means)} · {speed:.0f} examples/s"
        if self._task is not None:
            self._progress.update(self._task, completed=seen, state=state)
        if not self._live and time.monotonic() - self._said >= 30:
            self._said = time.monotonic()
            left = (total - seen) / max(speed, 1e-9)
            self.say(f"{self._name}: {seen:,} of {total:,} examples · {state} · {left / 60:.0f} min left")

    def say(self, text: str) -> None:
        # No markup: a folder may be called [old].
        if not self.quiet:
            self.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def warn(self, text: str) -> None:
        """Print a warning, even in quiet mode."""
        self.console.print(f"[yellow]warning:[/] {escape(text)}", highlight=False, soft_wrap=True)


def describe(means: dict[str, float]) -> str:
    """Formats losses for display: the reply loss as perplexity, accuracies in percent, all others as they are."""
    parts = []
    for name, value in means.items():
        if name == "reply":
            parts.append(f"perplexity {math.exp(min(value, 50)):.1f}")
        elif name.endswith("accuracy"):
            parts.append(f"{name} {100 * value:.1f} %")
        else:
            parts.append(f"{name} {value:.3f}")
    return " · ".join(parts)
