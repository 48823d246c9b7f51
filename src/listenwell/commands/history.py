"""What was typed before, at the arrow keys: by readline, and in a file of the user's own that nobody else can read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

try:
    import readline
except ImportError:  # Windows has none: lines are typed without it
    readline = None  # type: ignore[assignment]

KEPT = 500
"""Lines that come back in the next conversation."""


def history_file() -> Path | None:
    """In the user's state folder; none where LISTENWELL_HISTORY is off."""
    if os.environ.get("LISTENWELL_HISTORY", "").strip().lower() in ("off", "no", "0", "false"):
        return None
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "listenwell" / "history"


class History:
    """Lines for the arrow keys. Only what is given to it is remembered, so that a line can be left out."""

    def __init__(self, path: Path | None) -> None:
        self.path = path if readline is not None else None
        if readline is not None:
            readline.set_auto_history(False)
            for line in self._read():
                readline.add_history(line)

    def add(self, line: str, keep: bool = True) -> None:
        """For the arrow keys of this conversation; `keep`, for later ones too."""
        if readline is not None:
            readline.add_history(line)
        if keep and self.path is not None:
            # A conversation does not end because a line cannot be written down.
            with suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._write([line], os.O_APPEND)

    def _read(self) -> list[str]:
        if self.path is None:
            return []
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        if len(lines) > 2 * KEPT:
            with suppress(OSError):
                self._write(lines[-KEPT:], os.O_TRUNC)
        return lines[-KEPT:]

    def _write(self, lines: list[str], how: int) -> None:
        assert self.path is not None
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | how, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(handle, 0o600)  # also where the file was there before, readable by others
            file.writelines(line + "\n" for line in lines)
