"""The systems by name. Modules are imported when a model is made, so that listing them costs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from listenwell.taxonomy import unknown_name

if TYPE_CHECKING:
    from listenwell.models.contract import Model, Vocabulary


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a model lives, what it is, and the choices its name stands for."""

    module: str
    cls: str
    about: str
    paper: str
    choices: dict[str, Any] = field(default_factory=dict)


MODELS: dict[str, Entry] = {
    "trs": Entry(
        "listenwell.models.trs",
        "Trs",
        "plain transformer",
        "Vaswani et al. 2017; baseline of Rashkin et al. 2019",
    ),
    "multi-trs": Entry(
        "listenwell.models.trs",
        "Trs",
        "transformer that also classifies the emotion",
        "Rashkin et al. 2019; baseline of MoEL, MIME, Dual-Emp",
        {"emotion": True},
    ),
}


def entry(name: str) -> Entry:
    """The entry of a model by its hyphenated name; underscores are accepted."""
    hyphenated = name.replace("_", "-")
    if hyphenated not in MODELS:
        raise ValueError(unknown_name("model", name, MODELS))
    return MODELS[hyphenated]


def build(name: str, choices: dict[str, Any], vocabulary: Vocabulary) -> Model:
    """A fresh model. `choices` are fields of its config; a wrong one is named with the right ones."""
    from listenwell.configuration import ConfigError, instantiate

    found = entry(name)
    cls = getattr(import_module(found.module), found.cls)
    config = instantiate(cls.Config, {**found.choices, **choices}, f"model {name}")
    try:
        return cls(config, vocabulary)
    except ValueError as problem:  # sizes that do not go together
        raise ConfigError(f"model {name}: {problem}") from problem
