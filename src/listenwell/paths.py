"""The folders of the user that listenwell reads and writes: corpora, the cache, the history of conversations.

Where a folder cannot be written to (a read-only or missing home), writers use a temporary one and warn once.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from listenwell.notices import CacheWarning, warn_once

CACHE_VARIABLE = "LISTENWELL_CACHE"
DATA_VARIABLE = "LISTENWELL_DATA"


def data_folder() -> Path:
    """Where corpora are looked for: LISTENWELL_DATA, else listenwell in the user's data folder."""
    named = os.environ.get(DATA_VARIABLE)
    return expand(named) if named else expand(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "listenwell"


def cache_folder() -> Path:
    """LISTENWELL_CACHE, else listenwell in the user's cache folder: where to read. Writers ask `writable_cache`."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return expand(named)
    return expand(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "listenwell"


def writable_cache() -> Path:
    """The cache folder where it can be written to, else a temporary folder of the user's own.

    A folder that LISTENWELL_CACHE names is not second-guessed: writing there fails with its name.
    """
    if os.environ.get(CACHE_VARIABLE):
        return cache_folder()
    return _writable(cache_folder(), mode=0o777, purpose=f"the cache; {CACHE_VARIABLE} names another folder")


def state_folder() -> Path:
    """Where the chat history is."""
    return expand(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "listenwell"


def writable_state() -> Path:
    return _writable(state_folder(), mode=0o700, purpose="the history of chat; XDG_STATE_HOME names another folder")


def expand(path: str) -> Path:
    """With ~ as the user's home. Where nobody knows that (no HOME, no entry for the user), a path that cannot be."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(os.devnull) / path.removeprefix("~").lstrip("/")


def is_writable(folder: Path, mode: int = 0o777) -> bool:
    """Whether a file can be made there; the folder is made if need be.

    It is tried: permissions alone say nothing of read-only disks, full ones, or what the superuser may not write to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=mode)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def can_be_written(folder: Path) -> bool:
    """The same without making a folder: by the permissions of the nearest folder above it that is there."""
    there = next((place for place in (folder, *folder.parents) if place.exists()), None)
    return there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _writable(folder: Path, mode: int, purpose: str) -> Path:
    if _was_writable(folder, mode):
        return folder
    instead = temporary_folder() / folder.name
    instead.mkdir(mode=0o700, exist_ok=True)
    warn_once(f"{folder} cannot be written to; using {instead} for {purpose}", CacheWarning)
    return instead


_was_writable = cache(is_writable)


@cache
def temporary_folder() -> Path:
    """A folder among the temporary files that is the user's alone; the same in every process, so that what is unpacked
    once serves them all."""
    root = Path(tempfile.gettempdir())
    folder = root / f"listenwell-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        if is_private(folder) and is_writable(folder):
            return folder
    # The name is taken by somebody else: what they put there is not to be trusted.
    return Path(tempfile.mkdtemp(prefix="listenwell-"))


def is_private(folder: Path) -> bool:
    """A real folder, no link, of this user, that nobody else can write to."""
    status = folder.lstat()
    own = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    return stat.S_ISDIR(status.st_mode) and own
