"""Dataclasses from plain data (YAML, JSON, flags) by jsonargparse, with errors that name the place."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

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
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(cls, None)
    try:
        return cls(**vars(parser.instantiate_classes(parser.parse_object(dict(data)))))
    except ArgumentError as problem:
        raise ConfigError(f"{where}: {problem}") from problem
