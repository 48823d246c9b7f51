"""Caches what Care would compute several times for one conversation.

The rules of several detectors read the same messages again and again: normalised, with idioms cut out, searched.
Within `remembering`, the results of `once` functions are cached; at its end they are discarded, along with all texts.
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
    """Caches results until its end: in the given memory, else in that of an enclosing call, else in a new one."""
    own = memory if memory is not None else _MEMORY.get()
    own = {} if own is None else own
    token = _MEMORY.set(own)
    try:
        yield own
    finally:
        _MEMORY.reset(token)


def memory() -> Memory | None:
    """Returns the memory of the current call; None outside of one."""
    return _MEMORY.get()


def once(function: Callable[P, R]) -> Callable[P, R]:
    """Caches a function of texts, or a method of an object that lives as long as the process."""

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
