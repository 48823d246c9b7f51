"""A name becomes a checkpoint: a path, the user's cache, then the weights inside the package."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from listenwell.taxonomy import unknown_name

if TYPE_CHECKING:
    from listenwell.care import Cared
    from listenwell.system import Bot


def cache_folder() -> Path:
    """LISTENWELL_CACHE, else listenwell in the user's cache folder."""
    told = os.environ.get("LISTENWELL_CACHE")
    if told:
        return Path(told).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "listenwell"


def zoo_folder() -> Path:
    return Path(str(resources.files("listenwell").joinpath("zoo")))


def shipped() -> dict[str, Path]:
    """The trained systems that are at hand by name: the user's own first, then the package's."""
    found: dict[str, Path] = {}
    for root in (cache_folder(), zoo_folder()):
        if root.is_dir():
            for place in sorted(root.iterdir()):
                if (place / "config.json").is_file():
                    found.setdefault(place.name, place)
    return found


def find(name_or_path: str | Path) -> Path:
    """The checkpoint folder that a name or path stands for; a run's folder stands for its best checkpoint."""
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
    raise ValueError(unknown_name("system", str(name_or_path), known) + "; or give the folder of a run or checkpoint")


def card(place: Path) -> str:
    """One line on a trained system: its test scores if it was scored, and what may be done with it."""
    try:
        meta = json.loads((place / "meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "trained"
    parts = [f"{name} {value:.1f}" for name, value in meta.get("card", {}).get("scores", {}).items()]
    return "trained" + (f": {', '.join(parts)}" if parts else "")


@overload
def load(name_or_path: str | Path, care: Literal[True] = True) -> Cared: ...


@overload
def load(name_or_path: str | Path, care: Literal[False]) -> Bot: ...


def load(name_or_path: str | Path, care: bool = True) -> Cared | Bot:
    """A trained system, ready to talk. With care before it, for people; bare, to be measured."""
    from listenwell import checkpoint
    from listenwell.care import Cared
    from listenwell.system import Bot

    made = checkpoint.load(find(name_or_path))
    if not made.model.talks:
        raise ValueError(f"{name_or_path}: {made.name} labels texts and does not talk; see listenwell data label")
    bot = Bot(made)
    return Cared(bot) if care else bot
