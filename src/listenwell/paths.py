"""The user's folders that listenwell reads and writes: corpora, the cache, the chat history.

If a folder is not writable (a read-only or missing home), a temporary one is used, with a single warning.
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
    """Where to look for corpora: LISTENWELL_DATA, or else listenwell in the user's data folder."""
    named = os.environ.get(DATA_VARIABLE)
    return expand(named) if named else expand(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "listenwell"


def cache_folder() -> Path:
    """The cache to read from: LISTENWELL_CACHE, else listenwell in the user's cache. To write, use `writable_cache`."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return expand(named)
    return expand(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "listenwell"


def writable_cache() -> Path:
    """The cache folder if it is writable, or else a private temporary folder.

    If LISTENWELL_CACHE is set, it is used as it is: an error when writing there names the folder.
    """
    if os.environ.get(CACHE_VARIABLE):
        return cache_folder()
    return _writable(cache_folder(), mode=0o777, purpose=f"the cache; {CACHE_VARIABLE} names another folder")


def state_folder() -> Path:
    """The folder of the chat history."""
    return expand(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "listenwell"


def writable_state() -> Path:
    return _writable(state_folder(), mode=0o700, purpose="the history of chat; XDG_STATE_HOME names another folder")


def expand(path: str) -> Path:
    """Expand ~ to the user's home. If that is unknown (no HOME, no passwd entry), return a path that cannot exist."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(os.devnull) / path.removeprefix("~").lstrip("/")


def is_writable(folder: Path, mode: int = 0o777) -> bool:
    """Whether a file can be created in the folder, which is created if needed.

    This is tried out, since permissions do not reveal read-only or full disks, or what even root cannot write to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=mode)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def can_be_written(folder: Path) -> bool:
    """The same without creating a folder, judged by the permissions of the nearest existing parent folder."""
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
    """A private folder among the temporary files, the same in every process, so that unpacked files are shared by
    all of them."""
    root = Path(tempfile.gettempdir())
    folder = root / f"listenwell-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        if is_private(folder) and is_writable(folder):
            return folder
    # The name is taken by somebody else, whose files cannot be trusted.
    return Path(tempfile.mkdtemp(prefix="listenwell-"))


def is_private(folder: Path) -> bool:
    """Whether it is a real folder, not a link, owned by this user and writable by nobody else."""
    status = folder.lstat()
    own = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    return stat.S_ISDIR(status.st_mode) and own
