"""Resources: the people that a reply of Care names. A file has one or more regions:

us:
  emergency: "911"                      # in quotes, or YAML reads a number
  lines:                                # people to turn to
    - name: Helpline of my town
      contact: {en: call 0800 000 000, zh: 拨打 0800 000 000}   # any text may differ by language
      for: [self-harm]                  # optional: self-harm, danger, harm-to-others; all if absent
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import yaml

from listenwell.configuration import ConfigError
from listenwell.labels.taxonomy import unknown_name
from listenwell.systems.safety.detector import Kind, LanguageCode

LANGUAGES: tuple[LanguageCode, ...] = get_args(LanguageCode)
KINDS: tuple[Kind, ...] = get_args(Kind)
FILE, REGION, DEFAULT = "LISTENWELL_CARE", "LISTENWELL_REGION", "international"
Text = Mapping[LanguageCode, str]


@dataclass(frozen=True, slots=True)
class Line:
    """Somebody to turn to."""

    name: Text
    contact: Text
    kinds: tuple[Kind, ...] = KINDS
    """The kinds of signs for which it is named."""

    def text(self, language: LanguageCode) -> str:
        return f"{self.name[language]}: {self.contact[language]}"


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one region."""

    emergency: Text
    lines: tuple[Line, ...]


def load_resources(path: str | Path | None = None, region: str | None = None) -> Resources:
    """Loads a region from a file. Each defaults to the environment's, else to the international region here.

    For a file with a single region, the region need not be named.
    """
    path = path or os.environ.get(FILE) or None
    region = region or os.environ.get(REGION) or None
    where = "resources.yaml" if path is None else str(path)
    data = _read(
        Path(str(files("listenwell.systems.safety") / where)) if path is None else Path(path).expanduser(), where
    )
    _require(isinstance(data, Mapping) and bool(data), where, f"expected regions by name, found {data!r}")
    if region is None:
        region = next(iter(data)) if len(data) == 1 else DEFAULT
    if region not in data:
        raise ConfigError(f"{where}: {unknown_name('region', region, map(str, data))} (chosen by {REGION})")
    return _region(data[region], f"{where}: {region}")


def _read(path: Path, where: str) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigError(f"{where}: cannot be read: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(f"{where}: is not UTF-8 text") from problem
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        raise ConfigError(f"{where}:{line} is not YAML: {getattr(problem, 'problem', None) or problem}") from problem


def _region(data: Any, where: str) -> Resources:
    _keys(data, ("emergency", "lines"), ("emergency", "lines"), where)
    _require(isinstance(data["lines"], list), f"{where}: lines", f"expected a list, found {data['lines']!r}")
    lines = tuple(_line(line, f"{where}: lines.{index}") for index, line in enumerate(data["lines"]))
    return Resources(_text(data["emergency"], f"{where}: emergency"), lines)


def _line(data: Any, where: str) -> Line:
    _keys(data, ("name", "contact", "for"), ("name", "contact"), where)
    kinds = data.get("for", list(KINDS))
    _require(isinstance(kinds, list) and bool(kinds), f"{where}.for", f"expected a list of {', '.join(KINDS)}")
    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"{where}.for: {unknown_name('kind', str(kind), KINDS)}")
    return Line(_text(data["name"], f"{where}.name"), _text(data["contact"], f"{where}.contact"), tuple(kinds))


def _text(value: Any, where: str) -> Text:
    if isinstance(value, Mapping):
        _keys(value, LANGUAGES, LANGUAGES, where)
        return {language: _text(value[language], f"{where}.{language}")[language] for language in LANGUAGES}
    # YAML reads 0800 as a number and loses the zero.
    _require(not isinstance(value, int | float), where, 'put the number in quotes, as "112"')
    _require(isinstance(value, str) and bool(value.strip()), where, f"expected text, found {value!r}")
    return dict.fromkeys(LANGUAGES, value.strip())


def _keys(data: Any, known: tuple[str, ...], needed: tuple[str, ...], where: str) -> None:
    _require(isinstance(data, Mapping), where, f"expected the keys {', '.join(known)}, found {data!r}")
    for key in data:
        if key not in known:
            raise ConfigError(f"{where}: {unknown_name('key', str(key), known)}")
    for key in needed:
        _require(key in data, where, f"{key} is missing")


def _require(holds: bool, where: str, otherwise: str) -> None:
    if not holds:
        raise ConfigError(f"{where}: {otherwise}")
