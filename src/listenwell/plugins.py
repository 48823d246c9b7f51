"""Plugins: models, sources and metrics that other installed packages register as entry points.

A package lists them in its pyproject.toml, in the groups `listenwell.models` (NAME = "package.module:Class"),
`listenwell.sources` and `listenwell.metrics` (NAME = "package.module"). A model or a source is imported when its name
is used, metrics when the first one is looked up.
"""

from __future__ import annotations

from collections.abc import Container
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import ModuleType

from listenwell.notices import PluginWarning, warn_once


def plugins(group: str, taken: Container[str] = (), *, needs_class: bool = False) -> dict[str, EntryPoint]:
    """The usable entry points of a group by name; each of the others causes a warning that names it.

    `taken` are listenwell's own names; with `needs_class` an entry point must end in ":Class".
    """
    usable: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)):
        known = "listenwell" if entry.name in taken else describe(usable[entry.name]) if entry.name in usable else ""
        if problem := f"the name is taken by {known}" if known else _problem(entry, needs_class):
            warn_once(f"{describe(entry)} in {group} is ignored: {problem}", PluginWarning)
        else:
            usable[entry.name] = entry
    return usable


def describe(entry: EntryPoint) -> str:
    """The entry point as a user can find it: its name, its value and its package."""
    package = f" of {entry.dist.name}" if entry.dist is not None else ""
    return f"plugin {entry.name} = {entry.value!r}{package}"


def import_plugin(name: str, module: str) -> ModuleType:
    """Import the module of a registered name. If a plugin cannot be imported, a ValueError names it."""
    try:
        return import_module(module)
    except Exception as problem:  # somebody else's code may raise anything
        if module.split(".")[0] == "listenwell":
            raise
        reason = f"{type(problem).__name__}: {problem}"
        raise ValueError(
            f"{name}: the plugin module {module} cannot be imported ({reason}); fix or uninstall its package"
        ) from problem


def _problem(entry: EntryPoint, needs_class: bool) -> str:
    """Why the entry point cannot be used, as far as can be seen without importing its module; empty if it can."""
    match = entry.pattern.match(entry.value)
    if match is None:
        return "its value is not package.module or package.module:Class"
    if bool(match["attr"]) != needs_class:
        return f"expected {'package.module:Class' if needs_class else 'package.module, without an attribute'}"
    try:
        spec = find_spec(match["module"])  # imports the packages above the module
    except Exception as problem:  # somebody else's code may raise anything
        return f"{type(problem).__name__}: {problem}"
    return "" if spec is not None else f"there is no module {match['module']}"
