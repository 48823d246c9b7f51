"""listenwell's own warnings: each has a category, so that it can be filtered, and is shown once per process."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ListenwellWarning(UserWarning):
    """The base class of listenwell's warnings."""


class SafetyWarning(ListenwellWarning):
    """This installation's safety checks are weaker than they could be."""


CareWarning = SafetyWarning
"""The name in earlier versions, which warning filters may still use."""


class CacheWarning(ListenwellWarning):
    """The user's folder is not writable; a temporary one is used."""


class PluginWarning(ListenwellWarning):
    """A plugin from another package cannot be used."""


_shown: set[tuple[type[ListenwellWarning], str]] = set()


def warn_once(message: str, category: type[ListenwellWarning]) -> None:
    if (category, message) not in _shown:
        _shown.add((category, message))
        warnings.warn(message, category, stacklevel=3)


def mark_as_shown(message: str, category: type[ListenwellWarning]) -> None:
    """For code that shows a message in its own way, so that it is not shown again."""
    _shown.add((category, message))


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show listenwell's own warnings on standard error as a single plain line, without the source code line."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_plainly(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            if issubclass(category, ListenwellWarning):
                print(f"listenwell: {message}", file=sys.stderr)
            else:
                show(message, category, *rest, **named)

        warnings.showwarning = show_plainly
        yield
