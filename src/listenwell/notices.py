"""Warnings of listenwell's own: each with a category, so that it can be filtered, and each said once per process."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ListenwellWarning(UserWarning):
    """What all warnings of listenwell are."""


class CareWarning(ListenwellWarning):
    """Care is weaker than it could be on this installation."""


class CacheWarning(ListenwellWarning):
    """The user's own folder cannot be written to; a temporary one is used."""


class PluginWarning(ListenwellWarning):
    """What another package adds cannot be used."""


_already_said: set[tuple[type[ListenwellWarning], str]] = set()


def warn_once(message: str, category: type[ListenwellWarning]) -> None:
    if (category, message) not in _already_said:
        _already_said.add((category, message))
        warnings.warn(message, category, stacklevel=3)


def already_said(message: str, category: type[ListenwellWarning]) -> None:
    """Whoever shows a message in a way of their own says so here: it is not said a second time."""
    _already_said.add((category, message))


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Shows listenwell's own warnings on standard error as one plain line, without the line of code they come from."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_plainly(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            if issubclass(category, ListenwellWarning):
                print(f"listenwell: {message}", file=sys.stderr)
            else:
                show(message, category, *rest, **named)

        warnings.showwarning = show_plainly
        yield
