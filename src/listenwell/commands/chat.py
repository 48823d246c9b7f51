from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal

from listenwell.systems.house.options import HouseDecoding

if TYPE_CHECKING:
    from listenwell.commands.chat_session import Session
    from listenwell.commands.history import History
    from listenwell.systems.conversation import Conversation


def chat(
    model: str | None = None,
    mode: Literal["rerank", "stream"] = "rerank",
    decoding: HouseDecoding | None = None,
    intent: str | None = None,
    positivity: float | None = None,
    situation: str | None = None,
    base_url: str | None = None,
    language: str | None = None,
) -> None:
    """Talk with a system in the terminal.

    It is a program that was trained on conversations between people; it can be wrong, and it is not a therapist.
    Signs of a crisis are answered with a fixed text and crisis resources; SAFETY.md says how to name your own.

    In the conversation, /why explains the last reply, /retry asks for another one, /intent and /model change how the
    system replies, /save saves the conversation and /help lists the rest. Pasted text is one message, even if it has
    several lines. The arrow keys bring back what you typed, also in later conversations: it is saved in a file that
    only you can read (~/.local/state/listenwell/history), except messages that were answered as a crisis.
    LISTENWELL_HISTORY=off saves nothing.

    When standard input is not a terminal, each input line is a message and each output line is the reply to it.

    Args:
        model: A trained system by name (`listenwell models`), the folder of a run, or openai:NAME, a model behind an
            OpenAI-compatible server. If not given, house if it is available, else multi-trs.
        mode: rerank lets a system that writes several replies choose the best; stream shows a single reply word by
            word, which starts sooner.
        decoding: How replies are written; options not given keep the system's own values.
        intent: What every reply should do or express, one of the 41 labels, such as consoling or joyful; the system
            chooses if not given.
        positivity: How strongly replies should lift the mood, from 0 to 1, for a system that plans; the system's own
            setting if not given.
        situation: What happened, given in advance; it is read as your first message.
        base_url: Where the server of openai:NAME is, such as http://localhost:8000/v1; LISTENWELL_BASE_URL or
            OPENAI_BASE_URL if not given. Its key is read from LISTENWELL_API_KEY or OPENAI_API_KEY.
        language: The language to talk in, such as en or zh; chooses the system of that name that speaks it.
    """
    from rich.console import Console

    from listenwell.commands.chat_session import Session
    from listenwell.loading import default_system, load
    from listenwell.systems.conversation import Conversation, default_labeller
    from listenwell.weights import in_language, is_remote

    first = default_system(language) if model is None else str(in_language(model, language))

    def wake(name: str) -> Any:
        bot = load(name, base_url=base_url if name == first or is_remote(name) else None)
        if decoding is not None:
            bot.decoding = decoding.over(bot.decoding)
        if mode == "stream":
            bot.decoding = bot.decoding.streamed()
        return bot

    console = Console(highlight=False)
    interactive = sys.stdin.isatty()
    _warn_of_weaker_safety(console if interactive else Console(stderr=True, highlight=False))
    with console.status("loading …", spinner="line") if interactive and console.is_terminal else nullcontext():
        system = wake(first)
    # In a pipe nobody sees the labels, so no labeller is loaded.
    labeller = {"labeller": default_labeller} if interactive else {}
    conversation = Conversation(system, intent, positivity, situation, **labeller)
    if interactive:
        _talk(Session(conversation, console, wake, first))
    else:
        _answer_lines(conversation)


def _warn_of_weaker_safety(console: Any) -> None:
    """Print the safety warning where the user sees it: in the conversation, or on stderr when replies are piped."""
    from listenwell.notices import SafetyWarning, mark_as_shown
    from listenwell.systems.safety.status import classifier_status

    status = classifier_status()
    if not status.active:
        mark_as_shown(status.warning, SafetyWarning)
        console.print(f"warning: {status.warning}", markup=False, style="yellow", soft_wrap=True)


def _answer_lines(conversation: Conversation) -> None:
    """Read one message per line and print one reply per line."""
    from listenwell.commands.prompt import recovered

    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="surrogateescape")
    for line in sys.stdin:
        if line.strip():
            reply = conversation.say(recovered(line).strip())
            print(" ".join(reply.text.split()), flush=True)  # care replies have several lines


def _talk(session: Session) -> None:
    from rich.markup import escape

    from listenwell.commands.chat_session import LeaveChat
    from listenwell.commands.history import History, history_file
    from listenwell.commands.prompt import Prompt
    from listenwell.commands.slash_commands import COMMANDS

    console = session.console
    name = escape(session.conversation.system.name)
    console.print(f"[bold]{name}[/] is listening. It is a program, not a person and no therapist.")
    console.print("Tell it how you are. [dim]/help for more, Ctrl-D to leave.[/]\n")
    history = History(history_file())
    with Prompt(history, {command.name: command.choices for command in COMMANDS.values()}) as prompt:
        while True:
            try:
                if text := prompt.read():
                    _handle(text, session, history)
                    console.print()
            except KeyboardInterrupt:
                session.note("Ctrl-D to leave\n")
            except (EOFError, LeaveChat):
                console.print("Take care.")
                return


def _handle(text: str, session: Session, history: History) -> None:
    from listenwell.commands.slash_commands import COMMANDS, run_command

    if text.startswith("/"):
        run_command(session, text)
        command = text.split()[0].lower()
        # That someone looked up helplines is private.
        history.add(text, keep=command in COMMANDS and command != "/helplines")
        return
    answered = session.say(text)
    last = session.conversation.last
    # Messages answered with care are not remembered at all; unanswered ones can be brought back and sent again.
    if not answered or (last is not None and not last.is_care):
        history.add(text, keep=answered)
