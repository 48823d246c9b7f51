"""What is installed and what is missing, as findings: each has a state and, if something is wrong, a command to fix it.

Only files and package metadata are inspected; nothing heavy is imported. Errors during the inspection are findings too.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

State = Literal["ok", "off", "missing", "broken", "note"]

CORE = "core"
NOT_FOR_USERS = ("dev",)
IMPORTED_AS = {"scikit-learn": "sklearn", "pyyaml": "yaml", "vadersentiment": "vaderSentiment"}
"""Packages whose import name differs from their distribution name."""
READERS = {
    "emotion-intent": "labeller of turns",
    "house-listener": "listener of dialogues",
    "house-chooser": "chooser among replies",
    "sentiment": "polarity, to choose replies by",
    "judge": "polarity, to measure replies by",
    "epitome": "empathy, to measure replies by",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    section: str
    name: str
    state: State
    detail: str
    remedy: str = ""
    """The command that fixes it."""
    weakens_safety: bool = False


def diagnose(imports: bool = False) -> list[Finding]:
    """All findings. With `imports`, also import every package in a separate process, which takes seconds."""
    sections: dict[str, Callable[[], Iterator[Finding]]] = {
        "packages": packages,
        "care": care,
        "classifiers": classifiers,
        "systems": systems,
        "folders": folders,
        "threads": threads,
    }
    findings = [finding for name, look in sections.items() for finding in _safely(name, look)]
    return findings + (list(_safely("imports", lambda: imported(findings))) if imports else [])


def _safely(section: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of a section; an exception ends the section, not the report."""
    try:
        yield from look()
    except Exception as problem:
        detail = f"cannot be checked: {type(problem).__name__}: {problem}"
        yield Finding(section, section, "broken", detail, weakens_safety=section == "care")


# Packages


def packages() -> Iterator[Finding]:
    for name, (required_by, specifier) in sorted(_requirements().items()):
        yield _package(name, required_by, specifier)
    from listenwell.backbones.locate import SHORT, install_command, packed

    for short, hub_name in SHORT.items():
        command = install_command(short)
        there = packed(hub_name)
        detail = f"carries {hub_name}" + (f": {there}" if there else "")
        yield Finding("packages", command.split()[-1], "ok" if there else "missing", detail, "" if there else command)


def _package(name: str, required_by: list[str], specifier: Any) -> Finding:
    version = _version(name)
    wanted = f"wanted by {', '.join(required_by)}"
    command = f"pip install '{name}{specifier}'"
    if version is None:
        return Finding("packages", name, "missing", wanted, command)
    if find_spec(_module(name)) is None:
        return Finding("packages", name, "broken", f"{version}, but its files are missing; {wanted}", _reinstall(name))
    if not specifier.contains(version, prereleases=True):
        return Finding("packages", name, "broken", f"{version}, needs {specifier}; {wanted}", command)
    return Finding("packages", name, "ok", f"{version}, {wanted}")


def _requirements() -> dict[str, tuple[list[str], Any]]:
    """By package, which extras of listenwell require it and in which versions, from listenwell's metadata."""
    from packaging.requirements import Requirement

    requirements: dict[str, tuple[list[str], Any]] = {}
    for text in metadata.requires("listenwell") or ():
        needed = Requirement(text)
        extra = re.search(r"""extra\s*==\s*["']([^"']+)""", text)
        by = extra[1] if extra else CORE
        if by in NOT_FOR_USERS or needed.name.startswith("listenwell"):
            continue
        required_by, _ = requirements.setdefault(needed.name, ([], needed.specifier))
        required_by.append(by)
    return requirements


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _module(name: str) -> str:
    return IMPORTED_AS.get(name.lower(), name.replace("-", "_"))


def _reinstall(name: str) -> str:
    return f"pip install --force-reinstall --no-deps {name}"


def imported(findings: list[Finding]) -> Iterator[Finding]:
    """Whether the installed packages can be imported: reports those that cannot, or that crash the process."""
    import subprocess

    names = [one.name for one in findings if one.section == "packages" and one.state == "ok"]
    modules = {_module(name): name for name in names if not is_carrier(name)}
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    print('begin', name, flush=True)\n"
        "    try: importlib.import_module(name)\n"
        "    except BaseException as problem: print('broken', name, type(problem).__name__, problem, flush=True)\n"
        "import torch; print('threads', torch.get_num_threads(), flush=True)\n"
    )
    words = [sys.executable, "-c", code, *modules]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines() if line]
    for kind, name, *rest in lines:
        if kind == "broken":
            yield _unimportable(modules[name], " ".join(rest))
        elif kind == "threads":
            yield Finding("imports", "torch threads", "ok", name)
    if done.returncode < 0 and lines:  # killed by a signal, for example by a library built for another processor
        yield _unimportable(modules.get(lines[-1][1], "torch"), f"ends the process (signal {-done.returncode})")


def is_carrier(name: str) -> bool:
    """Whether a package only carries files and is never imported."""
    from listenwell.backbones.locate import CARRIERS

    return any(_module(name) == package for several in CARRIERS.values() for package, _ in several)


def _unimportable(name: str, problem: str) -> Finding:
    weakens = name in ("torch", "safetensors", "tokenizers", "PyYAML")
    return Finding("imports", name, "broken", f"cannot be imported: {problem}", _reinstall(name), weakens)


# Care and classifiers


def care() -> Iterator[Finding]:
    from importlib.resources import files

    from listenwell.systems.safety.resources import FILE, load_resources
    from listenwell.systems.safety.status import classifier_status

    status = classifier_status()
    name = "crisis classifier, English"
    if status.active:
        yield Finding("care", name, "ok", "active, with the rules")
    else:
        yield Finding("care", name, "off", f"{status.problem}; the rules serve alone", status.remedy, True)
    for language in ("english", "chinese"):
        there = files("listenwell.systems.safety").joinpath(f"{language}.yaml").is_file()
        how = "with a classifier" if language == "chinese" or status.active else "alone"
        detail = f"active, {how}" if there else "their file is missing from the package"
        remedy = "" if there else _reinstall("listenwell")
        yield Finding(
            "care", f"crisis rules, {language.title()}", "ok" if there else "broken", detail, remedy, not there
        )
    try:
        lines = load_resources().lines
    except ValueError as problem:
        yield Finding("care", "crisis resources", "broken", str(problem), f"unset {FILE}, or fix the file", True)
    else:
        where = os.environ.get(FILE) or "shipped, of no country: SAFETY.md says how to name your own"
        yield Finding("care", "crisis resources", "ok", f"{len(lines)} ({where})")


def classifiers() -> Iterator[Finding]:
    from listenwell.weights import distribution_of, shipped

    known = shipped()
    for name, purpose in READERS.items():
        if name not in known:
            yield Finding("classifiers", name, "missing", purpose, f"pip install {distribution_of(name)}")
        elif remedy := _backbone_remedy(known[name]):
            yield Finding("classifiers", name, "off", f"{purpose}; lacks its pretrained encoder", remedy)
        else:
            yield Finding("classifiers", name, "ok", f"{purpose}: {known[name]}")


def _backbone_remedy(place: Path) -> str:
    """What to install for the pretrained model that a system needs; empty if it is there."""
    import json

    from listenwell.backbones.locate import SHORT, at_hand, install_command

    model = json.loads((place / "config.json").read_text(encoding="utf-8"))["model"]
    backbone = model.get("backbone")
    if backbone is None:
        return ""
    if model.get("architecture", {}).get("model_type") != "bert" and find_spec("transformers") is None:
        return _for_chat("transformers")
    return install_command(backbone) if backbone in SHORT and not at_hand(backbone) else ""


def systems() -> Iterator[Finding]:
    from listenwell.loading import FALLBACK, HOUSE, missing_for_house
    from listenwell.systems.safety.status import is_whole
    from listenwell.weights import distribution_of, shipped

    known, missing = shipped(), missing_for_house()
    if not missing:
        yield Finding("systems", "default", "ok", HOUSE)
    else:
        default = FALLBACK if FALLBACK in known else "none: no weights are installed"
        yield Finding("systems", "default", "note", f"{default}; {HOUSE} lacks {', '.join(missing)}")
    for name in missing:
        yield Finding("systems", f"{HOUSE} needs {name}", "missing", "to be the default system", _for_house(name))
    for name, place in known.items():
        if not is_whole(place / "model.safetensors"):
            package = distribution_of(name)
            remedy = _reinstall(package) if package else ""
            yield Finding("systems", name, "broken", f"{place / 'model.safetensors'} is missing or cut short", remedy)
    yield Finding("systems", "trained, available", "ok" if known else "missing", ", ".join(known) or "none")


def _for_house(name: str) -> str:
    from listenwell.backbones.locate import SHORT, install_command
    from listenwell.weights import distribution_of

    if name in SHORT:
        return install_command(name)
    package = distribution_of(name)
    return f"pip install {package}" if package else _for_chat(name)


def _for_chat(package: str) -> str:
    """The command to install a library; through listenwell's extra if it has one, for the right versions."""
    return "pip install 'listenwell[chat]'" if package in ("transformers", "peft") else f"pip install {package}"


# The machine


def folders() -> Iterator[Finding]:
    from listenwell.data.sources import data_roots
    from listenwell.paths import (
        CACHE_VARIABLE,
        DATA_VARIABLE,
        cache_folder,
        can_be_written,
        state_folder,
        temporary_folder,
    )
    from listenwell.weights import zoo_folder

    for name, folder, variable in (
        ("cache", cache_folder(), CACHE_VARIABLE),
        ("chat history", state_folder(), "XDG_STATE_HOME"),
    ):
        if can_be_written(folder):
            yield Finding("folders", name, "ok", f"{folder} (writable)")
        elif os.environ.get(variable) and variable == CACHE_VARIABLE:
            detail = f"{folder} cannot be written to, and {variable} names it"
            yield Finding("folders", name, "broken", detail, f"export {variable}=FOLDER")
        else:
            detail = f"{folder} cannot be written to; {temporary_folder()} is used"
            yield Finding("folders", name, "note", detail, f"export {variable}=FOLDER")
    for root in data_roots():
        there = root.is_dir() and os.access(root, os.R_OK | os.X_OK)
        detail = f"{root} ({'readable' if there else 'not there, or not readable'})"
        remedy = "" if there else f"export {DATA_VARIABLE}=FOLDER"
        yield Finding("folders", "corpora", "ok" if there else "note", detail, remedy)
    if zoo_folder().is_dir():
        yield Finding("folders", "weights", "ok", f"{zoo_folder()} (a checkout's own)")
    yield from _weights_packages()


def _weights_packages() -> Iterator[Finding]:
    from listenwell import __version__
    from listenwell.weights import DISTRIBUTIONS, GROUP, installed_folders

    there = installed_folders()
    for entry in metadata.entry_points(group=GROUP):
        package = entry.dist.name if entry.dist else entry.name
        version = entry.dist.version if entry.dist else "?"
        if entry.name not in there:
            yield Finding("folders", package, "broken", f"{version}, but its files are missing", _reinstall(package))
        elif version.split(".")[:2] != __version__.split(".")[:2]:
            series = ".".join(__version__.split(".")[:2])
            detail = f"{version}, made for another series than listenwell {__version__}"
            yield Finding("folders", package, "broken", detail, f"pip install '{package}=={series}.*'")
        elif package in DISTRIBUTIONS or there[entry.name].is_dir():
            yield Finding("folders", package, "ok", f"{version}: {there[entry.name]}")


def threads() -> Iterator[Finding]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding("threads", "cores", "ok", f"{os.cpu_count()} in the machine, {usable} for this process{_quota()}")
    named = [f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if name in os.environ]
    yield Finding("threads", "settings", "ok", ", ".join(named) or f"none ({' and '.join(THREAD_VARIABLES[:2])} unset)")
    if "torch" in sys.modules:
        detail = f"{sys.modules['torch'].get_num_threads()}"
    elif os.environ.get("OMP_NUM_THREADS", "").isdigit():
        detail = f"{os.environ['OMP_NUM_THREADS']}, as OMP_NUM_THREADS says"
    else:
        detail = f"as many as it finds cores, at most {usable} (--imports asks it)"
    yield Finding("threads", "torch threads", "ok", detail)


THREAD_VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MKL_NUM_THREADS", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def _quota() -> str:
    """The CPU quota of a container, if it has one."""
    try:
        most, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return "" if most == "max" else f", {int(most) / int(period):.1f} by the container's quota"
    except (OSError, ValueError):
        return ""


def about() -> dict[str, str]:
    """The versions at the beginning of a report."""
    from listenwell import __version__

    place = str(Path(__file__).parent)
    return {
        "listenwell": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "installed in": place,
    }
