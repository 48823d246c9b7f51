"""Runs jobs in processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any

from listenwell.data.curation.engines import Job, Task

IN_FLIGHT = 2
"""Jobs submitted per worker: one running, one waiting. More would only take memory."""


class LocalEngine:
    """A pool with one process per worker; a single worker runs in this process."""

    name = "local"

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._pool: ProcessPoolExecutor | None = None

    def run(self, task: Task, jobs: Iterable[Job]) -> Iterator[Any]:
        if self.workers == 1:
            yield from map(task, jobs)
            return
        if self._pool is None:
            # Not forked: a child would inherit the locks of the modules imported here.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.workers, context, initializer=_prepare)
        rest = iter(jobs)
        running: set[Future[Any]] = set()
        try:
            while True:
                room = IN_FLIGHT * self.workers - len(running)
                running |= {self._pool.submit(task, job) for job in islice(rest, room)}
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BrokenProcessPool as problem:
            raise RuntimeError(
                "a worker process was stopped from outside, perhaps for lack of memory; the same command goes on from "
                "where it was, --workers names a smaller number of processes"
            ) from problem
        finally:
            if running:  # Ctrl-C or an error: unfinished jobs are not waited for, and leave nothing behind
                self._stop()

    def _stop(self) -> None:
        # Before Python 3.14, the executor itself can only wait for them.
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            process.terminate()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _prepare() -> None:
    """Sets up a worker: it ignores Ctrl-C, which the main process handles, and exits when the main process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
