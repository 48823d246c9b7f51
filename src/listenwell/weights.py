"""Where trained weights lie: in a checkout under zoo/, else in the weights distributions that are installed.

A distribution is built by weights/NAME/pyproject.toml and announces its Python package in the entry point group
`listenwell.weights`; each system is a folder in that package. DISTRIBUTIONS says which one carries what, so that a name
that is not installed leads to the package to install.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from listenwell.paths import cache_folder

GROUP = "listenwell.weights"

DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "listenwell-weights-house": ("house", "house-listener", "emotion-intent", "sentiment", "multi-trs"),
    "listenwell-weights-papers": ("trs", "mime", "moel", "meed2", "bert-joint"),
    "listenwell-weights-positivity": ("judge",),
}
"""Each stays under 100 MB, the most that the package index takes: what chat needs, then the papers' systems, then what
measures or elicits positive replies."""


def zoo_folder() -> Path:
    """The weights of a checkout; a wheel has none."""
    return Path(str(resources.files("listenwell").joinpath("zoo")))


def installed_folders() -> dict[str, Path]:
    """The folder of every installed weights distribution, by the name of its entry point."""
    return dict(_folders())


def _folders() -> Iterator[tuple[str, Path]]:
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            spec = find_spec(entry.module)  # finds without importing
        except (ImportError, ValueError):
            continue  # announced, but its files are gone: `listenwell doctor` says so
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield entry.name, Path(place)


def shipped() -> dict[str, Path]:
    """The trained systems at hand by name: the user's own first, then those of a checkout, then the installed ones."""
    found: dict[str, Path] = {}
    for root in (cache_folder(), zoo_folder(), *installed_folders().values()):
        for place in _systems(root):
            found.setdefault(place.name, place)
    return found


def _systems(root: Path) -> list[Path]:
    try:
        return [place for place in sorted(root.iterdir()) if (place / "config.json").is_file()]
    except OSError:  # not there, or not to be read
        return []


def distribution_of(name: str) -> str | None:
    """The distribution that carries a system's weights."""
    return next((package for package, names in DISTRIBUTIONS.items() if name in names), None)


def how_to_install(name: str) -> str | None:
    """What to say where a system's weights could be installed and are not."""
    package = distribution_of(name)
    return None if package is None else f"{name}: its weights are not installed: pip install {package}"
