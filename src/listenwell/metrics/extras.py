"""Libraries that only some numbers need, imported when such a number is computed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str, purpose: str) -> Any:
    """The module `module`; where it is not installed, an error that says what wants it and how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {package}: pip install 'listenwell[metrics]'") from error
