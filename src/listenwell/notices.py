"""Warnings of listenwell's own: each with a category, so that it can be filtered, and each shown once per process."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ListenwellWarning(UserWarning):
    """The base class of listenwell's warnings."""


class SafetyWarning(ListenwellWarning):
    """The safety checks are weaker than they could be on this installation."""


CareWarning = SafetyWarning
"""The name in earlier versions, which filters of warnings may still use."""


class CacheWarning(ListenwellWarning):
    """The user's own folder cannot be written to; a temporary one is used."""


class PluginWarning(ListenwellWarning):
    """What another package adds cannot be used."""


_shown: set[tuple[type[ListenwellWarning], str]] = set()


def warn_once(message: str, category: type[ListenwellWarning]) -> None:
    if (category, message) not in _shown:
        _shown.add((category, message))
        warnings.warn(message, category, stacklevel=3)


def mark_as_shown(message: str, category: type[ListenwellWarning]) -> None:
    """For code that shows a message in its own way: the message is not shown a second time."""
    _shown.add((category, message))


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
