"""Input history for the arrow keys, kept in a file that only the user can read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import InMemoryHistory

from listenwell.paths import writable_state

MAX_MESSAGES = 500
"""The number of messages kept for the next conversation."""

LINE_BREAK = "\u2028"
"""Replaces a line break inside a message, since the file has one message per line."""


def history_file() -> Path | None:
    """The history file in the user's state folder; None if LISTENWELL_HISTORY is off."""
    if os.environ.get("LISTENWELL_HISTORY", "").strip().lower() in ("off", "no", "0", "false"):
        return None
    return writable_state() / "history"


class History(InMemoryHistory):
    """Messages for the arrow keys. Only messages passed to `add` are remembered, so that one can be left out."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        messages = self._read()
        self._last_kept = messages[-1:]
        super().__init__(messages)

    def append_string(self, string: str) -> None:
        """Do nothing: the prompt calls this with all input, but what is remembered is decided after the reply."""

    def add(self, text: str, keep: bool = True) -> None:
        """Remember a message for this conversation and, with `keep`, for later ones too."""
        if self.get_strings()[-1:] != [text]:
            super().append_string(text)
        if keep and self.path is not None and self._last_kept != [text]:
            self._last_kept = [text]
            # Failing to write the history must not end the conversation.
            with suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._write([text], os.O_APPEND)

    def _read(self) -> list[str]:
        if self.path is None:
            return []
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return []
        messages = [line.replace(LINE_BREAK, "\n") for line in lines if line]
        if len(messages) > 2 * MAX_MESSAGES:
            with suppress(OSError):
                self._write(messages[-MAX_MESSAGES:], os.O_TRUNC)
        return messages[-MAX_MESSAGES:]

    def _write(self, messages: list[str], how: int) -> None:
        assert self.path is not None
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | how, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(handle, 0o600)  # also if the file existed before and others could read it
            file.writelines(message.replace("\n", LINE_BREAK) + "\n" for message in messages)
