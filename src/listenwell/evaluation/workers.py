"""Computes an evaluation's replies and likelihoods in several processes, with the same results as in a single one.

Replies are computed in chunks whose boundaries do not depend on the number of processes, and sampling depends on an
item's position in the corpus. The likelihoods are a single task, since their batches and samples depend on all items.
Each process holds the system, and the parent process computes too. The last digits of a matrix product may depend on
the number of threads: with OMP_NUM_THREADS=1, results are identical for any number of workers.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

import torch

from listenwell.data.dialogue import Dialogue, Example, without_annotations
from listenwell.decoding import Decoding
from listenwell.evaluation.evaluate import CHUNK, Progress
from listenwell.evaluation.partial import PartialResults
from listenwell.loading import load
from listenwell.systems.base import Likelihoods, System
from listenwell.systems.house.system import TOGETHER, House
from listenwell.systems.reply import Reply

Result = tuple[list[Reply] | Likelihoods | None, float]
"""The result of a task, and the seconds it took."""

Done = Callable[[int], None]
"""Called with the number of newly finished items."""


class WorkerError(RuntimeError):
    """A worker process ended before its work was done."""


class StoppedError(Exception):
    """Aborts this process's own task when the evaluation ends."""


@dataclass(frozen=True, slots=True)
class Task:
    """The replies to some items, starting at index `first`; or, if `first` is None, the likelihoods of all items."""

    items: tuple[Example, ...]
    first: int | None = None

    @property
    def kind(self) -> str:
        return "likelihoods" if self.first is None else "replies"

    def run(self, system: System, done: Done | None = None) -> Result:
        begun = time.monotonic()
        result: list[Reply] | Likelihoods | None
        if self.first is None:
            result = system.likelihoods(self.items, done=done)
        else:
            contexts = [Dialogue(item.id, item.context) for item in self.items]
            result = system.replies(contexts, done=done, first=self.first)
        return result, time.monotonic() - begun


Submit = Callable[[Task], "Future[Result]"]
"""Submits a task to a process."""


def load_like(system: str, decoding: Decoding, precision: str) -> System:
    """Load the system of this name with the same settings as in another process."""
    other: Any = load(system, care=False)
    other.decoding = decoding
    if precision:
        other.precision = precision
    return other


def tasks(system: System, items: Sequence[Example], partial_results: PartialResults) -> list[Task]:
    """The remaining tasks; the likelihoods, which take longer than a chunk, come first."""
    inputs = [without_annotations(item) for item in items]
    size = TOGETHER if isinstance(system, House) else CHUNK  # boundaries that the system's own batches do not cross
    unbroken = len(partial_results.replies)
    places = [
        first for first in range(0, len(inputs), size) if first >= unbroken and first not in partial_results.chunks
    ]
    likelihoods = [] if partial_results.likelihoods() is not None else [Task(tuple(inputs))]
    return likelihoods + [Task(tuple(inputs[first : first + size]), first) for first in places]


def compute(
    system: System,
    load_other: Callable[[], System],
    items: Sequence[Example],
    workers: int,
    partial_results: PartialResults,
    begin: Progress,
) -> None:
    """Compute all replies and likelihoods into `partial_results`, in this process and `workers` - 1 others.

    `load_other` is called in each of the others and must be picklable. The torch threads are divided among all of them.
    """
    todo = deque(tasks(system, items, partial_results))
    bars = {"replies": begin("replies", len(items)), "likelihoods": begin("likelihoods", len(items))}
    bars["replies"](len(partial_results))
    running: dict[Future[Result], tuple[Task, Submit]] = {}
    try:
        with _processes(system, load_other, workers, bars) as idle:
            while todo or running:
                while todo and idle:
                    task, submit = todo.popleft(), idle.pop()
                    running[submit(task)] = task, submit
                finished = wait(running, return_when=FIRST_COMPLETED).done
                for future in sorted(finished, key=lambda one: one.exception() is not None):  # finished tasks first
                    task, submit = running.pop(future)
                    _keep(partial_results, task, *future.result())
                    idle.append(submit)
    except BrokenProcessPool as problem:
        raise WorkerError(
            "a worker process ended before its work was done: it was killed, or there is not enough memory for "
            f"{workers} systems; the same command with fewer --workers may do"
        ) from problem


@contextmanager
def _processes(
    system: System, load_other: Callable[[], System], workers: int, bars: Mapping[str, Done]
) -> Iterator[list[Submit]]:
    """Functions that submit a task to each process, this one last. All processes are stopped at the end, even after an
    error."""
    threads, before, stop = torch.get_num_threads(), multiprocessing.active_children(), Event()
    share = max(1, threads // workers)
    context = multiprocessing.get_context("spawn")  # a fork would copy locks in an unknown state
    others = ProcessPoolExecutor(max(1, workers - 1), context, _start_worker, (load_other, share))
    own = ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(share,))

    def in_other(task: Task) -> Future[Result]:
        future = others.submit(_run_in_worker, task)
        future.add_done_callback(lambda one: None if one.exception() else bars[task.kind](len(task.items)))
        return future

    def in_this(task: Task) -> Future[Result]:
        def done(more: int) -> None:
            if stop.is_set():
                raise StoppedError
            bars[task.kind](more)

        return own.submit(task.run, system, done)

    try:
        yield [*[in_other] * (workers - 1), in_this]
    finally:
        stop.set()
        for process in multiprocessing.active_children():
            if process not in before:
                process.terminate()
        others.shutdown(cancel_futures=True)
        own.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def _keep(partial_results: PartialResults, task: Task, result: Any, seconds: float) -> None:
    if task.first is not None:
        partial_results.add(result, seconds, task.first)
    elif result is not None:
        partial_results.save_likelihoods(result)


# In a worker process

_system: System | None = None


def _start_worker(load_system: Callable[[], System], threads: int) -> None:
    global _system
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent ends this one
    torch.set_num_threads(threads)
    _system = load_system()


def _run_in_worker(task: Task) -> Result:
    assert _system is not None
    return task.run(_system)
