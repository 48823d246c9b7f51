"""Where a command may write: only where nobody else's files are lost, checked before the work begins.

A folder is used if it does not exist yet, is empty, or holds an earlier output of the same command. Which command wrote
a folder is recorded in a JSON file in it ("command": "evaluate"). A single file is used if it is new or empty;
an image also if the same command drew it, which is recorded in its metadata.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEFT_BY_THE_SYSTEM = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
"""Files that a desktop leaves in folders that somebody opened."""

PICTURES = {".png": "Software", ".pdf": "Creator", ".svg": "Creator"}
"""File extensions of images, and the metadata key for the program that made them."""


class OutputError(ValueError):
    """A path that a command cannot or must not write to."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A command that writes folders, and how to recognise them."""

    command: str
    files: frozenset[str]
    """All file names that the command may write into a folder: only these are ever replaced or removed."""
    wrote: Callable[[Path], bool]
    """Whether a non-empty folder was written by the command."""
    keeps_others: bool = False
    """Other files in the folder are allowed, and kept when it is rewritten."""


def command_of(file: Path) -> str | None:
    """The command that wrote a JSON file, as recorded in it."""
    return _json(file).get("command")


def _json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


EVALUATIONS = (
    frozenset({"scores.json", "items.json", "replies.jsonl", "labels.png", "tables.json"}),
    frozenset({"scores.json", "labels.jsonl", "confusion.png"}),
    frozenset({"scores.json", "heard.jsonl", "confusion.png"}),
    frozenset({"scores.json", "levels.jsonl"}),
)
"""The files of an evaluation: of a system that talks, a classifier, a listener, an empathy classifier."""


def _wrote_evaluation(folder: Path) -> bool:
    if "command" in (scores := _json(folder / "scores.json")):
        return scores["command"] == "evaluate"
    # Earlier versions did not record the command.
    names = _names(folder)
    whole = any(names <= files and files - {"labels.png", "tables.json"} <= names for files in EVALUATIONS)
    return whole and {"system", "about", "scores"} <= scores.keys()


def _wrote_study(command: str, first_score: str) -> Callable[[Path], bool]:
    def wrote(folder: Path) -> bool:
        if "command" in (summary := _json(folder / "scores.json")):
            return summary["command"] == command
        scores = summary.get("scores") or [{}]
        return _names(folder) == {"scores.json", "replies.jsonl"} and scores[0].get("name") == first_score

    return wrote


def _wrote_comparison(folder: Path) -> bool:
    comparison = _json(folder / "compare.json")
    return comparison.get("command") == "compare" or {"title", "columns", "systems", "published"} <= comparison.keys()


STUDY_FILES = frozenset({"scores.json", "replies.jsonl"})
EVALUATE = Owner("evaluate", frozenset().union(*EVALUATIONS), _wrote_evaluation)
VARIETY = Owner("variety", STUDY_FILES, _wrote_study("variety", "different"))
CONTROL = Owner("control", STUDY_FILES, _wrote_study("control", "control-mean"))
COMPARE = Owner("compare", frozenset({"compare.md", "compare.html", "compare.json"}), _wrote_comparison)
CONSENSUS = Owner("consensus", STUDY_FILES, _wrote_study("consensus", "information"))
STUDIES = {owner.command: owner for owner in (VARIETY, CONTROL, CONSENSUS)}


def check_folder(folder: Path, owner: Owner, option: str = "--out") -> None:
    """Raise OutputError for a folder that the command must not or cannot write to; `option` can name another one."""
    place = resolved(folder)
    if place.exists():
        _check_contents(place, folder, owner, option)
        if place == Path.cwd().resolve():  # it is replaced as a whole, which would pull it out from under the shell
            raise OutputError(f"{folder} is the folder that you are in; name one inside it with {option}")
        if os.path.ismount(place):
            raise OutputError(f"{folder} is where a disk is mounted; name a folder inside it with {option}")
        if not os.access(place, os.W_OK | os.X_OK):
            raise OutputError(f"{folder} cannot be written to (no permission); {_another(folder, option)}")
    check_parent(folder, f"name another place with {option}")


def _check_contents(place: Path, shown: Path, owner: Owner, option: str) -> None:
    if not place.is_dir():
        raise OutputError(f"{shown} is a file, where a folder is expected; {_another(shown, option)}")
    names = _names(place)
    others = set() if owner.keeps_others else names - owner.files
    if names and (others or not owner.wrote(place)):
        listed = sorted(others or names)
        some = ", ".join(listed[:3]) + (" …" if len(listed) > 3 else "")
        raise OutputError(
            f"{shown} holds what `listenwell {owner.command}` did not write ({some}), so nothing was written; "
            f"{_another(shown, option)}"
        )


def check_file(path: Path, option: str = "--out") -> None:
    """Raise OutputError for an existing file, a folder, or a place where no file can be written."""
    _check_file(path, option, lambda place: False)


def check_picture(path: Path, command: str, option: str = "--out") -> None:
    """The same for an image, which may already exist if the same command drew it."""
    if path.suffix.lower() not in PICTURES:
        raise OutputError(f"{path}: a picture's name ends in {', '.join(PICTURES)}; name such a file with {option}")
    _check_file(path, option, lambda place: _drawn_by(command).encode() in place.read_bytes())


def _check_file(path: Path, option: str, is_own: Callable[[Path], bool]) -> None:
    place = resolved(path)
    if place.is_dir():
        raise OutputError(f"{path} is a folder, where a file is expected; {_another(path, option)}")
    if place.exists():
        if not place.is_file():
            raise OutputError(f"{path} is not a regular file; {_another(path, option)}")
        if not os.access(place, os.R_OK | os.W_OK):
            raise OutputError(f"{path} cannot be written to (no permission); {_another(path, option)}")
        if place.stat().st_size and not is_own(place):
            raise OutputError(
                f"{path} already exists and is not overwritten; remove it first, or {_another(path, option)}"
            )
    check_parent(path, f"name another place with {option}")


def check_parent(path: Path, way_out: str) -> None:
    """Raise OutputError for a path whose parent is not writable. Missing parent folders will be created."""
    parent = resolved(path).parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise OutputError(f"{path}: {parent} is a file, not a folder; {way_out}")
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".listenwell-", dir=parent))
    except OSError as problem:
        reason = problem.strerror or problem
        raise OutputError(f"{path}: cannot write in {parent} ({reason}); {way_out}") from problem


def resolved(path: Path) -> Path:
    """The path with links resolved, so that a link is kept and its target is written."""
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError) as problem:
        raise OutputError(f"{path}: cannot be followed ({problem}); name another place") from problem


def save_picture(figure: Any, path: Path, command: str, dpi: int) -> None:
    """Save a figure to a file that records which command drew it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi, metadata={PICTURES[path.suffix.lower()]: _drawn_by(command)})


def _drawn_by(command: str) -> str:
    return f"drawn by listenwell {command}"


def write_folder(folder: Path, fill: Callable[[Path], None], owner: Owner, previous: Path | None = None) -> None:
    """Fill a new folder and put it in place of the old one, which moves to `previous` or is removed.

    Nothing existing is touched until the final renames; if writing fails, the half-written folder is removed. Of the
    old folder, only the owner's files are removed.
    """
    shown, folder = folder, resolved(folder)
    if folder.exists():
        _check_contents(folder, shown, owner, "--out")
    fresh = folder.with_name(f".{folder.name}.writing")
    _make_room(fresh, owner)
    try:
        fresh.mkdir(parents=True)
        fill(fresh)
        for file in fresh.rglob("*"):
            _sync(file)
        _sync(fresh)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    aside = previous or folder.with_name(f".{folder.name}.old")
    if there := folder.exists():
        _make_room(aside, owner)
        os.rename(folder, aside)
    os.rename(fresh, folder)
    if there:
        _move_others(aside, folder, owner)
    _sync(folder.parent)
    if previous is None:
        _make_room(aside, owner)


def settle(folder: Path) -> None:
    """Restore the old folder if an interruption between the two renames left none."""
    folder = resolved(folder)
    aside = folder.with_name(f".{folder.name}.old")
    if aside.exists() and not folder.exists():
        os.rename(aside, folder)


def discard(folder: Path, files: Collection[str]) -> bool:
    """Remove a folder if it contains nothing but `files`; returns whether it is gone."""
    if not folder.is_dir() or folder.is_symlink() or not _names(folder) <= set(files):
        return not os.path.lexists(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _make_room(place: Path, owner: Owner) -> None:
    """Remove what an earlier run left under a name beside the output; anything else there is renamed."""
    if not discard(place, owner.files):
        os.rename(place, _free(place))


def _move_others(source: Path, target: Path, owner: Owner) -> None:
    """Keep files that the owner did not write in the folder."""
    for name in _names(source) - owner.files:
        if not os.path.lexists(target / name):
            os.rename(source / name, target / name)


def _names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()} - LEFT_BY_THE_SYSTEM


def _another(path: Path, option: str) -> str:
    return f"name another with {option}, such as {_free(path)}"


def _free(path: Path) -> Path:
    """An unused name beside the path."""
    number = 2
    while os.path.lexists(free := path.with_name(f"{path.name.removesuffix(path.suffix)}-{number}{path.suffix}")):
        number += 1
    return free


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
