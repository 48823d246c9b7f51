"""Stopping a run without losing anything."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):  # noqa: N818  not an error: a wish that was met
    """A person asked to stop; everything is saved."""


@contextmanager
def stop_on_signal(ask: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) asks to stop after this update; the second one stops at once."""
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
            if signal.getsignal(number) is on_signal:  # not where something inside has chosen otherwise
                signal.signal(number, handler)


def ignore_termination() -> None:
    """For a process that is about to end and must first say why: its launcher may be ending it at this moment."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
