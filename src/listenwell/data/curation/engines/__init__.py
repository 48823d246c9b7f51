"""Runs the tasks of a curation: in processes on this machine, or on Ray.

An engine gets a function and jobs (JSON objects), and yields the function's results in any order. Everything that
determines the records is in the function and the jobs, so all engines give the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from listenwell.labels.taxonomy import unknown_name

Job = dict[str, Any]
Task = Callable[[Job], Any]

ENGINES = ("local", "ray")


class Engine(Protocol):
    """Runs a task on every job."""

    name: str
    workers: int

    def run(self, task: Task, jobs: Iterable[Job]) -> Iterator[Any]:
        """Yield results as they are ready. `task` must be picklable: a module-level function, or a partial of one."""
        ...

    def close(self) -> None: ...


def make_engine(name: str, workers: int | None = None) -> Engine:
    """Create an engine by name, with one worker per available processor by default."""
    if name == "local":
        from listenwell.data.curation.engines.local import LocalEngine

        return LocalEngine(workers)
    if name == "ray":
        from listenwell.data.curation.engines.ray_engine import RayEngine

        return RayEngine(workers)
    raise ValueError(unknown_name("engine", name, ENGINES))
