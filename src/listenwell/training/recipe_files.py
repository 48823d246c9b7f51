"""Loads a recipe by name or from a YAML file. A recipe may extend another one and then only lists the differences:

    base: mime                              # the name of a shipped recipe, or a .yaml file next to this one
    name: mime-no-mimicry
    model: {mimicry: false}                 # mappings are merged, key by key; anything else replaces what was there
    stages.1.examples: 80000                # a key with dots sets one value, like --set; list items by number

`name`, `about` and `row` identify a recipe and are not inherited. A `model` with another name replaces the base's model
entirely, since the options of one model do not apply to another. Changes by --set come last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from listenwell.configuration import OptionError, instantiate, mistakes
from listenwell.decoding import Decoding
from listenwell.labels.taxonomy import unknown_name
from listenwell.models import decoding_class
from listenwell.training.recipe import Recipe

BASE = "base"
OWN = ("name", "about", "row")
"""Keys that a recipe does not inherit."""
SUFFIXES = (".yaml", ".yml")


def load_recipe(name_or_path: str, changes: Sequence[str] = ()) -> Recipe:
    """Load a shipped recipe by name, or a YAML file, and apply changes such as "stages.0.epochs=2"."""
    data = resolved(name_or_path)
    for change in changes:
        _apply_change(data, change)
    where = f"recipe {name_or_path}"
    options = data.pop("decoding", {})
    recipe = instantiate(Recipe, data, where)
    recipe.decoding = _decoding(recipe.model, options, where)
    return recipe


def recipe_from_dict(data: Mapping[str, Any]) -> Recipe:
    """The inverse of `Recipe.to_dict`, for a recipe stored in a checkpoint; its decoding is left out."""
    return instantiate(Recipe, {key: value for key, value in data.items() if key != "decoding"}, "recipe")


def _decoding(model: Mapping[str, Any], options: Any, where: str) -> Decoding:
    """The decoding options of this model's system; some systems have options of their own."""
    cls = decoding_class(model["name"]) if model.get("name") else Decoding
    for mistake in mistakes(cls, options, "decoding"):
        raise OptionError(f"{where}: {mistake}")
    return instantiate(cls, options, where)


def resolved(name_or_path: str) -> dict[str, Any]:
    """The recipe as plain data, with everything it inherits filled in."""
    return _resolve(name_or_path, ())


def recipe_names() -> list[str]:
    """The names of the shipped recipes."""
    return list(_shipped_texts())


def _resolve(name_or_path: str, derived: tuple[str, ...]) -> dict[str, Any]:
    """`derived`: the recipes that extend this one, to detect cycles."""
    data = _read(name_or_path)
    base = data.pop(BASE, None)
    if base is None:
        return _merged({}, data, name_or_path)
    if not isinstance(base, str):
        raise OptionError(f"{name_or_path}: base is {base!r}, expected the name of a recipe or a path to a .yaml file")
    chain = (*derived, _identity(name_or_path))
    base = _beside(base, name_or_path)
    if _identity(base) in chain:
        raise OptionError(f"{name_or_path}: based on itself: {' → '.join([*chain, _identity(base)])}")
    try:
        inherited = _resolve(base, chain)
    except OptionError as problem:
        raise problem if derived else OptionError(f"{name_or_path}: base: {problem}") from problem
    return _merged({key: value for key, value in inherited.items() if key not in OWN}, data, name_or_path)


def _identity(name_or_path: str) -> str:
    return str(Path(name_or_path).resolve()) if _is_file_name(name_or_path) else name_or_path.replace("_", "-")


def _is_file_name(name_or_path: str) -> bool:
    return Path(name_or_path).suffix in SUFFIXES


def _beside(base: str, name_or_path: str) -> str:
    """If both are files, resolves the base relative to the folder of the recipe that names it."""
    own = Path(name_or_path)
    return str(own.parent / base) if _is_file_name(base) and _is_file_name(name_or_path) else base


def _merged(base: dict[str, Any], data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Merges a recipe into its base; keys with dots come last, since they change values inside the merged result."""
    merged = deepcopy(base)
    plain = {key: value for key, value in data.items() if "." not in str(key)}
    model = plain.get("model")
    if isinstance(model, Mapping) and model.get("name", _name(merged)) != _name(merged):
        merged.pop("model", None)
    _merge(merged, plain)
    for key, value in data.items():
        if key not in plain:
            _set(merged, key, value, f"{where}: {key}")
    return merged


def _name(data: Mapping[str, Any]) -> Any:
    model = data.get("model")
    return model.get("name") if isinstance(model, Mapping) else None


def _merge(target: dict[str, Any], data: Mapping[str, Any]) -> None:
    for key, value in data.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = deepcopy(value)


def _read(name_or_path: str) -> dict[str, Any]:
    import yaml

    try:
        data = yaml.safe_load(_text(name_or_path))
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        reason = getattr(problem, "problem", None) or str(problem).splitlines()[0]
        raise OptionError(f"{name_or_path}{line}: not valid YAML: {reason}") from problem
    if not isinstance(data, Mapping):
        raise OptionError(f"{name_or_path}: a recipe is a mapping, found {type(data).__name__}")
    return dict(data)


def _text(name_or_path: str) -> str:
    path = Path(name_or_path)
    if _is_file_name(name_or_path):
        if not path.is_file():
            raise OptionError(f"{path}: {'is a folder' if path.is_dir() else 'no such recipe file'}")
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as problem:
            byte = f"the byte 0x{problem.object[problem.start]:02x} at position {problem.start + 1}"
            raise OptionError(f"{path}: {byte}, expected UTF-8; save the file as UTF-8") from problem
    shipped, name = _shipped_texts(), name_or_path.replace("_", "-")
    if name in shipped:
        return shipped[name]
    if path.is_file():
        raise OptionError(f"{path}: expected a recipe file that ends in .yaml")
    raise OptionError(unknown_name("recipe", name_or_path, shipped) + ", or a path to a .yaml file")


@cache
def _shipped_texts() -> dict[str, str]:
    """The shipped recipes as YAML text, by name."""
    folder = resources.files("listenwell").joinpath("recipes")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name)
    return {file.name.removesuffix(".yaml"): file.read_text(encoding="utf-8") for file in files}


def _apply_change(data: dict[str, Any], change: str) -> None:
    import yaml

    path, separator, text = change.partition("=")
    if not separator:
        raise OptionError(f"a change reads key.key=value, found {change!r}")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as problem:
        raise OptionError(f"--set {change}: {text!r} is not a YAML value") from problem
    _set(data, path, value, f"--set {change}")


def _set(data: dict[str, Any], path: str, value: Any, where: str) -> None:
    """Sets one value by its dotted path; list items are addressed by number."""
    *parents, last = path.split(".")
    target: Any = data
    for key in parents:
        try:
            target = target[int(key)] if isinstance(target, list) else target.setdefault(key, {})
        except (ValueError, IndexError) as problem:
            raise OptionError(f"{where}: {key!r} is not one of the {len(target)} items there") from problem
        if not isinstance(target, dict | list):
            raise OptionError(f"{where}: {key!r} holds a single value, nothing below it can be set")
    try:
        target[int(last) if isinstance(target, list) else last] = deepcopy(value)
    except (ValueError, IndexError) as problem:
        raise OptionError(f"{where}: {last!r} is not one of the {len(target)} items there") from problem
