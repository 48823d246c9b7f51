"""What care computes several times for one conversation is computed once.

The rules of several detectors read the same messages again and again: normalised, with idioms cut out, looked through.
Within `remembering` the results of `once` functions are kept; with its end they are gone, and with them every text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

Memory = dict[Any, Any]
_MEMORY: ContextVar[Memory | None] = ContextVar("memory", default=None)


@contextmanager
def remembering(memory: Memory | None = None) -> Iterator[Memory]:
    """Keeps results until its end: in the memory given, else in that of a call around this one, else in a new one."""
    own = memory if memory is not None else _MEMORY.get()
    own = {} if own is None else own
    token = _MEMORY.set(own)
    try:
        yield own
    finally:
        _MEMORY.reset(token)


def memory() -> Memory | None:
    """Of the call that is running; None outside of any."""
    return _MEMORY.get()


def once(function: Callable[P, R]) -> Callable[P, R]:
    """A function of texts, or a method of an object that lives as long as the process."""

    @wraps(function)
    def remembered(*args: P.args, **named: P.kwargs) -> R:
        results = _MEMORY.get()
        if results is None or named:
            return function(*args, **named)
        key = (function, *(one if isinstance(one, str) else id(one) for one in args))
        if key not in results:
            results[key] = function(*args, **named)
        return results[key]

    return remembered
