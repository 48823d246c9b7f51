"""Where trained weights are, and which folder a name refers to: in a checkout's zoo/ or an installed weights package.

A distribution is built by weights/NAME/pyproject.toml and registers its Python package in the entry point group
`listenwell.weights`; each system is a folder in that package. DISTRIBUTIONS says which one contains what, so that the
error for a system that is not installed can name the package to install.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from listenwell.labels.taxonomy import unknown_name
from listenwell.paths import cache_folder

GROUP = "listenwell.weights"

REMOTE = "openai:"
"""Name prefix of a model behind a server."""

DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "listenwell-weights-house": (
        "house",
        "house-listener",
        "house-chooser",
        "emotion-intent",
        "sentiment",
        "multi-trs",
    ),
    "listenwell-weights-papers": ("trs", "mime", "moel", "meed2", "bert-joint", "dual-emp", "epitome"),
    "listenwell-weights-positivity": ("judge",),
}
"""Each stays under 100 MB, the limit of the package index: first what chat needs, then the papers' systems, then what
measures or elicits positive replies."""


def zoo_folder() -> Path:
    """The folder of a checkout's weights; a wheel has none."""
    return Path(str(resources.files("listenwell").joinpath("zoo")))


def installed_folders() -> dict[str, Path]:
    """The folder of every installed weights distribution, by the name of its entry point."""
    return dict(_folders())


def _folders() -> Iterator[tuple[str, Path]]:
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            spec = find_spec(entry.module)  # finds without importing
        except (ImportError, ValueError):
            continue  # registered, but its files are missing: `listenwell doctor` reports it
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield entry.name, Path(place)


def shipped() -> dict[str, Path]:
    """The available trained systems by name: the user's own take precedence, then a checkout's, then installed ones."""
    folders: dict[str, Path] = {}
    for root in (cache_folder(), zoo_folder(), *installed_folders().values()):
        for place in _systems(root):
            folders.setdefault(place.name, place)
    return folders


def _systems(root: Path) -> list[Path]:
    try:
        return [place for place in sorted(root.iterdir()) if (place / "config.json").is_file()]
    except OSError:  # missing or unreadable
        return []


def distribution_of(name: str) -> str | None:
    """The distribution that contains a system's weights."""
    return next((package for package, names in DISTRIBUTIONS.items() if name in names), None)


def how_to_install(name: str) -> str | None:
    """The message for a system whose weights could be installed but are not."""
    package = distribution_of(name)
    return None if package is None else f"{name}: its weights are not installed: pip install {package}"


def find(name_or_path: str | Path) -> Path:
    """Resolve a name or path to a checkpoint folder; a run's folder resolves to its best checkpoint."""
    if is_remote(name_or_path):
        raise ValueError(f"{name_or_path} is a model behind a server: it talks, but it has no checkpoint here")
    path = Path(name_or_path).expanduser()
    for place in (path, path / "best"):
        if (place / "config.json").is_file():
            return place
    known = shipped()
    name = str(name_or_path).replace("_", "-")
    if name in known:
        return known[name]
    if path.exists():
        raise ValueError(f"{path}: no trained system there (neither config.json nor best/config.json)")
    if install_hint := how_to_install(name):
        raise ValueError(install_hint)
    raise ValueError(unknown_name("system", str(name_or_path), known) + "; or give the folder of a run or checkpoint")


def card(place: Path) -> str:
    """A one-line summary of a trained system, with its test scores if there are any."""
    try:
        meta = json.loads((place / "meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "trained"
    details = meta.get("card", {})
    parts = [f"{name} {value:.1f}" for name, value in details.get("scores", {}).items()]
    parts += [f"on {details['drawn']}"] if parts and "drawn" in details else []
    return "trained" + (f": {', '.join(parts)}" if parts else "")


def languages(place: Path) -> list[str]:
    """The languages of a trained system's training data; English if not recorded."""
    try:
        meta = json.loads((place / "meta.json").read_text(encoding="utf-8"))
        return list(meta.get("languages") or ["en"])
    except (OSError, ValueError, AttributeError):
        return ["en"]


def in_language(name_or_path: str | Path, language: str | None) -> str | Path:
    """The system of that name that speaks a language: itself, or the one named NAME-LANGUAGE.

    Without a language, the name is returned as it is; likewise for a model behind a server, whose languages are
    unknown.
    """
    if language is None or is_remote(name_or_path) or language in languages(find(name_or_path)):
        return name_or_path
    known = shipped()
    sibling = f"{str(name_or_path).replace('_', '-')}-{language}"
    if sibling in known and language in languages(known[sibling]):
        return sibling
    speaks = ", ".join(languages(find(name_or_path)))
    others = [name for name, place in known.items() if language in languages(place)]
    hint = f"; these do: {', '.join(others)}" if others else ", and no installed system does"
    raise ValueError(f"{name_or_path} speaks {speaks}, not {language}{hint}")


def is_remote(name_or_path: str | Path) -> bool:
    """Whether this is openai:NAME, a model behind a server of that protocol."""
    return str(name_or_path).startswith(REMOTE)
