"""The engine: a thread that owns a system and writes for everybody who waits, some together, a step at a time.

Whoever comes while others are being written waits for the next step, and then begins in a group of their own: groups
take turns, step by step, and a group ends with its longest reply. What one asked for is never seen by another: rows of
a batch share nothing but the product they go through.
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
"""Groups that are written at the same time: more would begin sooner, and go slower."""

GATHER = 0.004
"""Seconds that an idle engine waits for others to come with the first."""


@dataclass(eq=False)
class Ticket:
    """Something that somebody waits for: a reply, or what a function of the system returns."""

    job: Job | None
    call: Callable[[], Any] | None = None
    result: Any = None
    error: ApiError | None = None
    text: str = ""
    """The reply so far, as the event loop knows it."""
    done: bool = False
    begun: float = field(default_factory=time.monotonic)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    alone: bool = False
    """Written by itself, after a group that it was in failed."""
    left_at: int | None = None
    """The step at which its client left."""
    leaving: bool = False

    async def texts(self) -> Any:
        """The text so far whenever it has grown: what comes while nobody looks is not kept twice."""
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
        """In the event loop: there is news."""
        self.text, self.done = text, self.done or done
        self.changed.set()


@dataclass(eq=False)
class Group:
    tickets: list[Ticket]
    steps: Generator[None, None, None]


def _each(steps: Iterable[None]) -> Generator[None, None, None]:
    """The steps of any system, as something that can be closed before its end."""
    yield from steps


class Engine:
    """Writes the replies of one system. `room` is how many may be waited for at once."""

    def __init__(
        self, name: str, system: Any, metrics: Metrics, room: int, *, together: int = 32, compute_threads: int = 0
    ) -> None:
        self.name, self.system, self.metrics, self.room, self.together = name, system, metrics, room, together
        self.compute_threads = compute_threads
        """That share out its products; as many as torch has by itself for 0."""
        self.waiting: deque[Ticket] = deque()
        self.held = 0
        """Tickets that are not done: those that wait, and those being written."""
        self.groups = GROUPS
        self.seconds = 1.0
        """A running mean of how long a place is held."""
        self._changed = threading.Condition()
        self._stopping = False
        self._threads: list[threading.Thread] = []

    # From the event loop

    def start(self, threads: int = 1) -> None:
        for _ in range(threads):
            self._start_thread()

    def stop(self) -> None:
        """Ends the threads at their next step; whoever still waits is told."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=30)
        self._fail(list(self.waiting), stopping)
        self.waiting.clear()

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """All of them or, where there is no room for all, none."""
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
        """Its client has left: no step is computed for it after the one that is running."""
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
        """Seconds until a place may be free."""
        return max(1, min(60, math.ceil(self.seconds)))

    # In the worker's thread

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._run, name=f"engine-{self.name}", daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def _run(self) -> None:
        """Goes on until the engine is stopped. Should the thread itself fail, another takes its place."""
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
        """Who begins now; None at the end."""
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
        """One step of a group, and the news of it; False at its end."""
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
                ticket.leaving = True  # the step that was running is over; the next no longer has it
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
        """What fails together is tried one by one, so that nobody's request spoils another's."""
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
        """Gives up its place; to be called with the lock held."""
        self.held -= 1
        self._show()

    def _show(self) -> None:
        self.metrics.waiting.labels(self.name).set(len(self.waiting))
        self.metrics.writing.labels(self.name).set(self.held - len(self.waiting))

    @staticmethod
    def _tell(news: Sequence[tuple[Ticket, str, bool]]) -> None:
        """One call for each event loop, which is one in a server."""
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
    """Where it happened, and never what the exception says: that may be what somebody wrote."""
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(problem.__traceback__)]
    logger.error("%s: %s at %s", what, type(problem).__name__, " < ".join(reversed(places[-6:])))
