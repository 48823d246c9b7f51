"""Stops a run without losing anything."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):  # noqa: N818  not an error: the run stopped as requested
    """The user asked to stop; everything is saved."""


@contextmanager
def stop_on_signal(ask: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) calls `ask`, to stop at the next opportunity; the second one stops at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        ask()
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is on_signal:  # unless code inside has set another handler
                signal.signal(number, handler)


def ignore_termination() -> None:
    """For a process that must report an error before it exits, while its launcher may already be terminating it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
