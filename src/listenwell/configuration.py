"""Dataclasses from plain data (YAML, JSON, flags) by jsonargparse, with errors that say where the problem is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from listenwell.labels.taxonomy import near_name, unknown_name

T = TypeVar("T")


class ConfigError(ValueError):
    """An invalid configuration; the message says where, and what would be valid."""


class OptionError(ConfigError):
    """A mistyped option, key or value: the command line exits with code 2."""


def instantiate(cls: type[T], data: Mapping[str, Any], where: str) -> T:
    """Build a dataclass from a mapping, checking types (also of nested ones) and reporting unknown keys."""
    from jsonargparse import ArgumentError, ArgumentParser

    for mistake in mistakes(cls, data):
        raise OptionError(f"{where}: {mistake}")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(cls, None)
    try:
        instance = cls(**vars(parser.instantiate(parser.parse_object(dict(data)))))
    except (ArgumentError, TypeError, ValueError) as problem:  # a wrong type, or rejected by __post_init__
        raise OptionError(f"{where}: {problem}") from problem
    for path in _empty(instance):
        raise OptionError(f"{where}: {path}{NO_VALUE}")
    return instance


NO_VALUE = " has no value; leave the key out for the default"

EXPECTED: dict[Any, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a text",
    Path: "a path",
    list: "a list",
    dict: "keys with values",
    tuple: "a list",
}


def mistakes(hint: Any, value: Any, place: str = "") -> Iterator[str]:
    """Messages about what is wrong with plain data for a type, each with its place.

    Only definite mistakes: the parser has the last word, but its own messages mention its internal classes.
    """
    kind = get_origin(hint) or hint
    if value is None:
        if not _may_be_none(hint):
            yield f"{place}{NO_VALUE}"
    elif kind in (Union, UnionType):
        yield from _mistakes_in_union([one for one in get_args(hint) if one is not NoneType], value, place)
    elif kind is Literal:
        if value not in get_args(hint):
            yield f"{place} is {value!r}, {one_of(value, get_args(hint))}"
    elif dataclasses.is_dataclass(kind):
        yield from _mistakes_in_fields(kind, value, place)
    elif kind in (list, dict, tuple):
        yield from _mistakes_in_items(hint, kind, value, place)
    elif not _fits(kind, value):
        yield f"{place} is {value!r}, expected {EXPECTED[kind]}"


def _mistakes_in_union(hints: list[Any], value: Any, place: str) -> Iterator[str]:
    problems = [next(mistakes(hint, value, place), None) for hint in hints]
    if None not in problems:
        yield str(problems[0])


def _mistakes_in_fields(cls: Any, value: Any, place: str) -> Iterator[str]:
    known = [f.name for f in dataclasses.fields(cls)]
    if isinstance(value, cls):
        return
    if not isinstance(value, Mapping):
        yield f"{place} is {value!r}, expected keys with values: {', '.join(known)}"
        return
    hints = get_type_hints(cls)
    for key, item in value.items():
        if key not in known:
            yield f"{place}: {unknown_name('key', str(key), known)}".removeprefix(": ")
        else:
            yield from mistakes(hints[key], item, f"{place}.{key}".lstrip("."))
    for f in dataclasses.fields(cls):
        if f.name not in value and f.default is f.default_factory is dataclasses.MISSING:
            yield f"{place}: the key {f.name!r} is missing".removeprefix(": ")


def _mistakes_in_items(hint: Any, kind: type, value: Any, place: str) -> Iterator[str]:
    if not isinstance(value, Mapping if kind is dict else list | tuple):
        yield f"{place} is {value!r}, expected {EXPECTED[kind]}"
    elif kind is tuple and len(value) != len(get_args(hint)):
        yield f"{place} is {value!r}, expected {len(get_args(hint))} of them"
    elif get_args(hint):
        entries = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in entries:
            yield from mistakes(get_args(hint)[-1], item, f"{place}.{key}".lstrip("."))


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value may be of a plain type. YAML reads 8e-4 as a string, so a string may be a number."""
    if kind not in EXPECTED:
        return True
    if kind is str:
        return isinstance(value, str)
    if kind is Path:
        return isinstance(value, str | Path)
    if kind is bool:
        return isinstance(value, bool) or str(value).lower() in ("true", "false", "yes", "no")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        return float(value).is_integer() or kind is float
    except ValueError:
        return False


def one_of(value: Any, choices: Any) -> str:
    """What to write instead of a value: one of the choices, with a suggestion of the closest one."""
    names = [str(choice) for choice in choices if choice != ""]
    near = near_name(str(value), names)
    return f"expected one of {', '.join(names)}" + (f"; did you mean {near!r}?" if near else "")


def _may_be_none(hint: Any) -> bool:
    return hint is Any or NoneType in get_args(hint)


def _empty(node: Any, path: str = "") -> Iterator[str]:
    """The places with None where the type does not allow it: the parser accepts null for anything."""
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        hints = get_type_hints(type(node))
        for f in dataclasses.fields(node):
            value, place = getattr(node, f.name), f"{path}.{f.name}".lstrip(".")
            if value is None and not _may_be_none(hints[f.name]):
                yield place
            yield from _empty(value, place)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _empty(value, f"{path}.{index}")
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _empty(value, f"{path}.{key}")
