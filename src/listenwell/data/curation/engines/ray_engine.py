"""Runs jobs on many machines with Ray Data. Input and output folder must have the same paths on all of them."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from listenwell.data.curation.engines import Job, Task
from listenwell.data.curation.records import choose_allocator

WAVE = 4096
"""Jobs per Ray dataset: a single dataset of all jobs would have to be in memory."""

OBJECT_STORE = 128 << 20
"""Bytes of object store for a local Ray. Jobs and results are small, since the records go through files."""


class RayEngine:
    """Uses the Ray cluster at RAY_ADDRESS if set, else a local Ray on this machine."""

    name = "ray"

    def __init__(self, workers: int | None = None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        choose_allocator()  # Ray imports pyarrow
        try:
            import ray
            import ray.data
        except ImportError as problem:
            raise ImportError("the engine ray needs Ray: pip install 'listenwell[cluster]'") from problem
        self._ray = ray
        self._started = not ray.is_initialized()
        if self._started:
            self._start(workers)
        self._limit = workers
        self.workers = workers or int(ray.cluster_resources().get("CPU", 1))
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # errors are raised

    def _start(self, workers: int | None) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "include_dashboard": False}
        if not os.environ.get("RAY_ADDRESS"):
            options |= {"address": "local", "num_cpus": workers, "object_store_memory": OBJECT_STORE}
        self._ray.init(**options)

    def run(self, task: Task, jobs: Iterable[Job]) -> Iterator[Any]:
        rest = iter(jobs)
        while wave := list(islice(rest, WAVE)):
            rows = [{"job": json.dumps(job)} for job in wave]
            data = self._ray.data.from_items(rows, override_num_blocks=len(rows))
            # One task per job, with at most as many at once as workers were requested.
            results = data.map(partial(_run, task), concurrency=self._limit)
            try:
                for row in results.iter_rows():
                    if row["problem"]:
                        raise RuntimeError(f"a task failed on Ray: {row['problem']}")
                    yield json.loads(row["result"])
            except self._ray.exceptions.RayError as problem:
                raise RuntimeError(
                    f"Ray stopped ({type(problem).__name__}); the same command goes on from where it was"
                ) from problem

    def close(self) -> None:
        if self._started:
            self._ray.shutdown()


def _run(task: Task, row: dict[str, Any]) -> dict[str, Any]:
    """Runs a task on a row, which Ray transfers as columns of text."""
    try:
        return {"result": json.dumps(task(json.loads(row["job"]))), "problem": ""}
    except Exception as problem:
        # Returned as text, since Ray would wrap it in its own traceback.
        return {"result": "", "problem": f"{type(problem).__name__}: {problem}"}
