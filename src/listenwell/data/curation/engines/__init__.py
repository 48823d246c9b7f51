"""What runs the work of a curation: processes of this machine, or Ray.

An engine gets a function and jobs, each a JSON object, and gives back the function's results in any order. Everything
that decides the records is in the function and the jobs, so every engine gives the same.
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
        """The results, as they are ready. `task` can be pickled: a function of a module, or a partial of one."""
        ...

    def close(self) -> None: ...


def make_engine(name: str, workers: int | None = None) -> Engine:
    """An engine by name; as many workers as there are processors if no number is given."""
    if name == "local":
        from listenwell.data.curation.engines.local import LocalEngine

        return LocalEngine(workers)
    if name == "ray":
        from listenwell.data.curation.engines.ray_engine import RayEngine

        return RayEngine(workers)
    raise ValueError(unknown_name("engine", name, ENGINES))
