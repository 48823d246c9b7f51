"""The input line, with editing, history, completion and pasted text, using prompt_toolkit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.utils import is_dumb_terminal

from listenwell.commands.history import History
from listenwell.data.dialogue import readable

try:
    import termios
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

PROMPT, CONTINUED = "you  > ", "     | "

Arguments = Callable[[], Iterable[str]]
"""Lists the possible arguments of a command."""


class Prompt:
    """Reads messages. A context manager: between reads, keys are not echoed but kept for the next message.

    Pasted text is one message, even if it has several lines; Alt-Enter starts a new line.
    """

    def __init__(self, history: History, commands: Mapping[str, Arguments]) -> None:
        self.session: PromptSession[str] = PromptSession(
            history=history,
            completer=CommandCompleter(commands),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            key_bindings=_keys(),
            prompt_continuation=CONTINUED,
            enable_suspend=True,
        )
        self._before: list[Any] | None = None

    def read(self) -> str:
        """Read a message. Raises KeyboardInterrupt on Ctrl-C and EOFError on Ctrl-D."""
        try:
            return recovered(self.session.prompt(PROMPT)).strip()
        finally:
            # The session switches it off, but text pasted before the next prompt should be one message too.
            self._bracketed_paste(on=True)

    def __enter__(self) -> Prompt:
        if termios is not None:
            with suppress(termios.error):
                self._before = termios.tcgetattr(sys.stdin)
                termios.tcsetattr(sys.stdin, termios.TCSANOW, _without_echo(self._before))
        return self

    def __exit__(self, *_: object) -> None:
        self._bracketed_paste(on=False)
        if self._before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def _bracketed_paste(self, on: bool) -> None:
        if not is_dumb_terminal():
            output = self.session.output
            (output.enable_bracketed_paste if on else output.disable_bracketed_paste)()
            output.flush()


def recovered(text: str) -> str:
    """Decode text from a terminal or pipe that claimed ASCII but sent UTF-8. Invalid bytes become U+FFFD."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # half a surrogate pair, which no terminal sends
        return readable(text)


def _without_echo(settings: list[Any]) -> list[Any]:
    """Terminal settings without echo or line editing, so that the next prompt gets all keys as typed. Ctrl-C still
    interrupts."""
    input_flags, output_flags, control_flags, local_flags, *rest = settings
    local_flags &= ~(termios.ECHO | termios.ICANON)
    return [input_flags & ~termios.ICRNL, output_flags, control_flags, local_flags, *rest]


class CommandCompleter(Completer):
    """Completes slash commands and their arguments."""

    def __init__(self, commands: Mapping[str, Arguments]) -> None:
        self.commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        word, space, argument = document.text_before_cursor.partition(" ")
        if not word.startswith("/"):
            return
        begun = argument if space else word
        known = self.commands.get(word, tuple)() if space else self.commands
        for name in known:
            if name.startswith(begun.lower()):
                yield Completion(name, start_position=-len(begun))


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
