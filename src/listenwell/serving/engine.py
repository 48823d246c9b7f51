"""The engine: a thread that owns a system and decodes replies for all waiting requests, in batches, step by step.

A request that arrives while others are being decoded waits for the next step and then starts in a new group. Groups
take turns, one step each, and a group ends with its longest reply. Requests cannot see each other: rows of a batch
share nothing but the matrix products they go through.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from listenwell.layers.cpu import compute_with
from listenwell.serving.errors import ApiError, busy, failed, stopping
from listenwell.serving.metrics import Metrics
from listenwell.systems.capabilities import Capabilities
from listenwell.systems.together import Job, write_plainly

logger = logging.getLogger("listenwell.serving")

GROUPS = 3
"""Groups that are decoded at the same time. With more, replies would start sooner but take longer."""

GATHER = 0.004
"""Seconds that an idle engine waits after the first request for more to arrive."""


@dataclass(eq=False)
class Ticket:
    """A unit of work that a client waits for: a reply, or the result of a call to the system."""

    job: Job | None
    call: Callable[[], Any] | None = None
    result: Any = None
    error: ApiError | None = None
    text: str = ""
    """The reply so far, as known to the event loop."""
    done: bool = False
    begun: float = field(default_factory=time.monotonic)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    alone: bool = False
    """Whether it is decoded by itself, because its group failed."""
    left_at: int | None = None
    """The step at which its client disconnected."""
    leaving: bool = False

    async def texts(self) -> Any:
        """Yield the text so far each time it has grown; updates that arrive in between are merged."""
        seen = ""
        while not self.done:
            await self.changed.wait()
            self.changed.clear()
            if self.text != seen:
                seen = self.text
                yield seen
        if self.error is not None:
            raise self.error

    async def wait(self) -> Any:
        async for _ in self.texts():
            pass
        return self.result

    def tell(self, text: str, done: bool) -> None:
        """Update the ticket. Runs in the event loop."""
        self.text, self.done = text, self.done or done
        self.changed.set()


@dataclass(eq=False)
class Group:
    tickets: list[Ticket]
    steps: Generator[None, None, None]


def _each(steps: Iterable[None]) -> Generator[None, None, None]:
    """Wrap the steps of any system in a generator, so that they can be closed early."""
    yield from steps


class Engine:
    """Decodes the replies of one system. `room` is the most tickets it holds at once."""

    def __init__(
        self, name: str, system: Any, metrics: Metrics, room: int, *, together: int = 32, compute_threads: int = 0
    ) -> None:
        self.name, self.system, self.metrics, self.room, self.together = name, system, metrics, room, together
        self.compute_threads = compute_threads
        """Threads for its matrix products; 0 leaves torch's default."""
        self.waiting: deque[Ticket] = deque()
        self.held = 0
        """Unfinished tickets: those waiting and those being decoded."""
        self.groups = GROUPS
        self.seconds = 1.0
        """A running mean of how long a ticket takes."""
        self._changed = threading.Condition()
        self._stopping = False
        self._threads: list[threading.Thread] = []

    # From the event loop

    def start(self, threads: int = 1) -> None:
        for _ in range(threads):
            self._start_thread()

    def stop(self) -> None:
        """Stop the threads at their next step and fail all tickets that are still waiting."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=30)
        self._fail(list(self.waiting), stopping)
        self.waiting.clear()

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Queue all tickets or, if there is not enough room, none."""
        with self._changed:
            if self._stopping:
                raise stopping()
            if self.held + len(tickets) > self.room:
                self.metrics.refused.labels(self.name).inc()
                raise busy(self.expected_wait())
            self.held += len(tickets)
            self.waiting.extend(tickets)
            self._show()
            self._changed.notify()

    def cancel(self, ticket: Ticket) -> None:
        """Drop a ticket whose client has disconnected. No step is computed for it after the current one."""
        with self._changed:
            written = ticket.job is not None and ticket.job.reply is not None
            if ticket.done or written or ticket.left_at is not None:
                return
            ticket.left_at = 0 if ticket.job is None else ticket.job.steps
            if ticket.job is not None:
                ticket.job.dropped = True
            self.metrics.cancelled.labels(self.name).inc()
            if ticket in self.waiting:
                self.waiting.remove(ticket)
                self._release(ticket)

    def expected_wait(self) -> int:
        """Estimated seconds until a place is free."""
        return max(1, min(60, math.ceil(self.seconds)))

    # In the worker's thread

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._run, name=f"engine-{self.name}", daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def _run(self) -> None:
        """Work until the engine is stopped. If the thread itself fails, a new one replaces it."""
        if self.compute_threads:
            compute_with(self.compute_threads)
        groups: list[Group] = []
        try:
            while (tickets := self._take(groups)) is not None:
                if tickets:
                    groups.append(self._begin(tickets))
                for group in list(groups):
                    if not self._advance(group):
                        groups.remove(group)
        except BaseException as problem:
            log_failure("a worker died and is replaced", problem)
            self.metrics.restarts.labels(self.name).inc()
            self._fail([ticket for group in groups for ticket in group.tickets], failed)
            if not self._stopping:
                self._start_thread()
            return
        self._fail([ticket for group in groups for ticket in group.tickets], stopping)

    def _take(self, groups: Sequence[Group]) -> list[Ticket] | None:
        """The tickets to start now; None when the engine is stopping."""
        with self._changed:
            while not self.waiting and not groups and not self._stopping:
                self._changed.wait()
            if self._stopping:
                return None
            if not groups and not self.waiting[0].alone:
                self._changed.wait_for(lambda: len(self.waiting) >= self.together or self._stopping, GATHER)
            if not self.waiting or len(groups) >= self.groups:
                return []
            if self.waiting[0].alone or self.waiting[0].job is None:
                taken = [self.waiting.popleft()]
            else:
                taken = []
                while self.waiting and len(taken) < self.together and self._joins(self.waiting[0]):
                    taken.append(self.waiting.popleft())
            self._show()
            return taken

    @staticmethod
    def _joins(ticket: Ticket) -> bool:
        return not ticket.alone and ticket.job is not None

    def _begin(self, tickets: list[Ticket]) -> Group:
        jobs = [ticket.job for ticket in tickets if ticket.job is not None]
        if not jobs:
            return Group(tickets, self._call(tickets[0]))
        self.metrics.together.labels(self.name).observe(len(jobs))
        together = Capabilities.of(self.system).can_write_together
        return Group(tickets, _each(self.system.write_together(jobs) if together else write_plainly(self.system, jobs)))

    def _call(self, ticket: Ticket) -> Generator[None, None, None]:
        assert ticket.call is not None
        if ticket.left_at is None:
            ticket.result = ticket.call()
        yield

    def _advance(self, group: Group) -> bool:
        """Run one step of a group and publish the result. Returns False when the group is done."""
        try:
            next(group.steps)
            self.metrics.steps.labels(self.name).inc()
            ended = False
        except StopIteration:
            ended = True
        except Exception as problem:
            self._isolate(group, problem)
            return False
        self._publish(group, ended)
        return not ended and bool(group.tickets)

    def _publish(self, group: Group, ended: bool) -> None:
        news: list[tuple[Ticket, str, bool]] = []
        staying = []
        for ticket in group.tickets:
            if ticket.left_at is not None and (ticket.leaving or ended or not self._others_stay(group)):
                self._leave(ticket)
            elif ticket.left_at is not None:
                ticket.leaving = True  # the step that was running is over; the next leaves it out
                staying.append(ticket)
            elif self._is_done(ticket):
                news.append((ticket, ticket.job.text if ticket.job else "", True))
            elif ended:
                self._fail([ticket], failed)
            else:
                staying.append(ticket)
                if ticket.job is not None and ticket.job.grows and ticket.job.text != ticket.text:
                    news.append((ticket, ticket.job.text, False))
        group.tickets = staying
        if not staying:
            group.steps.close()
        for ticket, _, done in news:
            if done:
                self._finish(ticket)
        self._tell(news)

    @staticmethod
    def _others_stay(group: Group) -> bool:
        return any(ticket.left_at is None for ticket in group.tickets)

    @staticmethod
    def _is_done(ticket: Ticket) -> bool:
        if ticket.job is None:
            return True
        ticket.result = ticket.job.reply
        return ticket.job.reply is not None

    def _leave(self, ticket: Ticket) -> None:
        steps = 0 if ticket.job is None else ticket.job.steps
        self.metrics.late_steps.labels(self.name).inc(steps - (ticket.left_at or 0))
        with self._changed:
            self._release(ticket)

    def _finish(self, ticket: Ticket) -> None:
        self.metrics.replies.labels(self.name).inc()
        with self._changed:
            self.seconds += 0.1 * (time.monotonic() - ticket.begun - self.seconds)
            self._release(ticket)

    def _isolate(self, group: Group, problem: Exception) -> None:
        """Retry the tickets of a failed group one by one, so that one bad request does not fail the others."""
        log_failure(f"{len(group.tickets)} replies failed together", problem)
        if len(group.tickets) == 1:
            self._fail(group.tickets, failed)
            return
        with self._changed:
            for ticket in reversed(group.tickets):
                if ticket.left_at is not None:
                    self._release(ticket)
                elif ticket.job is not None:
                    ticket.alone = True
                    self.waiting.appendleft(ticket)

    def _fail(self, tickets: Sequence[Ticket], error: Callable[[], ApiError]) -> None:
        for ticket in tickets:
            if ticket.left_at is None:
                ticket.error = error()
                self.metrics.failed.labels(self.name).inc()
            with self._changed:
                self._release(ticket)
        self._tell([(ticket, ticket.text, True) for ticket in tickets])

    def _release(self, ticket: Ticket) -> None:
        """Free a ticket's place. Call with the lock held."""
        self.held -= 1
        self._show()

    def _show(self) -> None:
        self.metrics.waiting.labels(self.name).set(len(self.waiting))
        self.metrics.writing.labels(self.name).set(self.held - len(self.waiting))

    @staticmethod
    def _tell(news: Sequence[tuple[Ticket, str, bool]]) -> None:
        """Deliver updates with one call per event loop; a server has only one."""
        loops: dict[asyncio.AbstractEventLoop, list[tuple[Ticket, str, bool]]] = {}
        for one in news:
            loops.setdefault(one[0].loop, []).append(one)
        for loop, some in loops.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_deliver, some)


def _deliver(news: Sequence[tuple[Ticket, str, bool]]) -> None:
    for ticket, text, done in news:
        ticket.tell(text, done)


def log_failure(what: str, problem: BaseException) -> None:
    """Log where an exception occurred, never its message: it may contain what a user wrote."""
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(problem.__traceback__)]
    logger.error("%s: %s at %s", what, type(problem).__name__, " < ".join(reversed(places[-6:])))
