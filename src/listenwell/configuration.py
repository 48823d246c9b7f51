"""Dataclasses from plain data (YAML, JSON, flags) by jsonargparse, with errors that name the place."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_args, get_type_hints

T = TypeVar("T")


class ConfigError(ValueError):
    """A configuration that cannot be used; the message says where and what would do."""


def instantiate(cls: type[T], data: Mapping[str, Any], where: str) -> T:
    """A dataclass from a mapping: types checked, nested ones too, unknown keys named."""
    from jsonargparse import ArgumentError, ArgumentParser

    from listenwell.taxonomy import unknown_name

    known = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for key in data:
        if key not in known:
            raise ConfigError(f"{where}: {unknown_name('key', str(key), known)}")
    hints = get_type_hints(cls)
    for key, value in data.items():
        if value is None and not _may_be_none(hints[key]):
            raise ConfigError(f"{where}: {key} has no value; leave the key out for the default")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(cls, None)
    try:
        made = cls(**vars(parser.instantiate(parser.parse_object(dict(data)))))
    except (ArgumentError, TypeError, ValueError) as problem:  # a wrong type, or what __post_init__ refuses
        raise ConfigError(f"{where}: {problem}") from problem
    for path in _empty(made):
        raise ConfigError(f"{where}: {path} has no value; leave the key out for the default")
    return made


def _may_be_none(hint: Any) -> bool:
    return hint is Any or type(None) in get_args(hint)


def _empty(made: Any, path: str = "") -> Iterator[str]:
    """The places that hold None where the type does not allow it: the parser takes null for anything."""
    if dataclasses.is_dataclass(made) and not isinstance(made, type):
        hints = get_type_hints(type(made))
        for f in dataclasses.fields(made):
            value, place = getattr(made, f.name), f"{path}.{f.name}".lstrip(".")
            if value is None and not _may_be_none(hints[f.name]):
                yield place
            yield from _empty(value, place)
    elif isinstance(made, list):
        for index, value in enumerate(made):
            yield from _empty(value, f"{path}.{index}")
    elif isinstance(made, dict):
        for key, value in made.items():
            yield from _empty(value, f"{path}.{key}")
