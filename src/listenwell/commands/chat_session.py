"""A conversation in a terminal: how replies and notes are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.status import Status
from rich.text import Text

from listenwell.systems.conversation import Conversation, summary

PROBLEMS = (ValueError, OSError, RuntimeError, ImportError)
"""Errors of a system or a file. They are shown, and the conversation continues."""


class LeaveChat(Exception):  # noqa: N818 - not an error
    """The user wants to leave."""


@dataclass
class Session:
    """A conversation, the terminal it is shown in, and how to load other systems."""

    conversation: Conversation
    console: Console
    load: Callable[[str], Any]
    model: str = ""
    """The name by which the current system was loaded."""

    def say(self, text: str) -> bool:
        """Show the reply to a message. Returns False if there is none; the message then does not count as said."""
        conversation = self.conversation
        return self._show(
            lambda: conversation.say(text), lambda: conversation.stream(text), "your message was not sent"
        )

    def retry(self) -> bool:
        """Show another reply to the last message. Returns False if there is none; the old one then stays."""
        return self._show(self.conversation.retry, self.conversation.stream_retry, "the reply stays as it was")

    def note(self, text: str) -> None:
        self.console.print(text, markup=False, style="dim", soft_wrap=True)

    def problem(self, text: object) -> None:
        self.console.print(str(text), markup=False, style="red", soft_wrap=True)

    def busy(self, text: str) -> Status:
        return self.console.status(text, spinner="line")

    def _show(self, reply: Callable[[], Any], stream: Callable[[], Iterator[str]], unchanged: str) -> bool:
        try:
            if self.conversation.streams:
                self._show_growing(stream())
            else:
                with self.busy("…"):
                    text = reply().text
                self.console.print(self._line(text))
        except KeyboardInterrupt:
            self.note(f"stopped; {unchanged}")
            return False
        except PROBLEMS as problem:
            self.problem(f"no reply, {unchanged}: {problem}")
            return False
        assert self.conversation.last is not None
        if line := summary(self.conversation.last):
            self.note(line)
        return True

    def _show_growing(self, texts: Iterator[str]) -> None:
        with self.busy("…"):
            text = next(texts, "")
        # Redrawn each time, because new words may join or change earlier ones.
        with Live(self._line(text), console=self.console, auto_refresh=False, vertical_overflow="visible") as live:
            for text in texts:
                live.update(self._line(text), refresh=True)

    def _line(self, text: str) -> Text:
        return Text.assemble((self.conversation.system.name, "bold cyan"), " > ", text)
