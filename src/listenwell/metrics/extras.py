"""Libraries that only some metrics need, imported when such a metric is computed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str, purpose: str) -> Any:
    """Imports a module; if it is not installed, the ImportError says what needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {package}: pip install 'listenwell[metrics]'") from error
