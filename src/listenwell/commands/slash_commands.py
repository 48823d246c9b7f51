"""The commands inside a conversation, such as /why. To add one, write a function and a line in COMMANDS."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches

from rich.markup import escape
from rich.padding import Padding

from listenwell.commands.chat_session import PROBLEMS, LeaveChat, Session
from listenwell.commands.display import grid
from listenwell.labels.sets import EMOTION_INTENT
from listenwell.labels.taxonomy import EMOTIONS, INTENT_MEANINGS, LABELS, NEUTRAL
from listenwell.loading import talking
from listenwell.systems.capabilities import Capabilities
from listenwell.weights import shipped

NOTHING_SAID = "nothing has been said yet"
KEYS = (
    "Type what you want to say and press Enter. Alt-Enter starts a new line; pasted text is one message. The arrow "
    "keys bring back what you typed, Tab completes a command. Ctrl-C stops a reply, or clears the line."
)


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name, its argument, a one-line description, and the function that runs it."""

    name: str
    argument: str
    about: str
    run: Callable[[Session, str], None]
    choices: Callable[[], Iterable[str]] = tuple
    """Possible arguments, for completion."""


def run_command(session: Session, text: str) -> None:
    """Run a command. For an unknown one, suggest what was likely meant."""
    word, _, argument = text.partition(" ")
    command = COMMANDS.get(word.lower())
    if command is not None:
        command.run(session, argument.strip())
        return
    near = [name for name in COMMANDS if name.startswith(word.lower())] or get_close_matches(word.lower(), COMMANDS, 1)
    hint = f"did you mean {near[0]}? " if near and len(word) > 1 else ""
    session.problem(f"unknown command {word}; {hint}/help lists the commands")


def _why(session: Session, _: str) -> None:
    from listenwell.commands.explain import why

    if session.conversation.last is None:
        session.note(NOTHING_SAID)
        return
    for part in why(session.conversation.last, session.conversation.texts[:-1]):
        session.console.print(part)


def _retry(session: Session, _: str) -> None:
    last = session.conversation.last
    if last is None:
        session.note(NOTHING_SAID)
    elif last.is_care:
        session.note("these words are fixed; there is no other reply")
    elif session.retry() and session.conversation.exchanges[-1].repeats:
        session.note("the same as before: the system has no other reply")


def _undo(session: Session, _: str) -> None:
    if session.conversation.last is None:
        session.note(NOTHING_SAID)
        return
    session.conversation.undo()
    last = session.conversation.last
    session.note("took back your last message and the reply" + (_after(last.message) if last else "; nothing is left"))


def _after(message: str) -> str:
    line = " ".join(message.split())
    return f"; the last one is now: {line if len(line) <= 60 else line[:59] + '…'}"


def _intent(session: Session, name: str) -> None:
    if not name:
        _list_intents(session)
        return
    intent = None if name.lower() == "off" else name.lower()
    try:
        session.conversation.set_intent(intent)
    except ValueError as problem:
        session.problem(problem)
        return
    session.note(f"replies are {intent} from now on" if intent else "the system chooses again")


def _intents() -> Iterable[str]:
    return ("off", *LABELS)


def _list_intents(session: Session) -> None:
    present, can = session.conversation.intent, Capabilities.of(session.conversation.system)
    if can.label_set == EMOTION_INTENT:
        session.console.print(grid(((_mark(name, present), name, about) for name, about in INTENT_MEANINGS.items())))
        session.console.print("or a feeling that the reply expresses:")
        session.console.print(Padding(", ".join((*EMOTIONS, NEUTRAL)), (0, 2)))
    else:
        session.console.print(Padding(", ".join(can.label_set), (0, 2)))
    if not can.takes_label:
        session.note(f"{session.conversation.system.name} does not take an intent; house and meed2 do")
    else:
        session.note(f"now: {present}; /intent off ends it" if present else "now: the system chooses")


def _model(session: Session, name: str) -> None:
    if not name:
        _list_models(session)
    elif name in shipped() and name not in talking():
        session.problem(f"{name} is a classifier: it labels texts and does not reply; /model lists what does")
    else:
        _switch(session, name)


def _list_models(session: Session) -> None:
    rows = [(_mark(name, session.model), name, about) for name, about in talking().items()]
    if session.model not in talking():
        rows.insert(0, ("*", session.model, session.conversation.system.name))
    session.console.print(grid(rows))
    session.note("or the folder of a run, or openai:NAME")


def _switch(session: Session, name: str) -> None:
    try:
        with session.busy("loading …"):
            dropped = session.conversation.switch(session.load(name))
    except KeyboardInterrupt:
        session.note("stopped; nothing changed")
        return
    except PROBLEMS as problem:
        session.problem(problem)
        return
    session.model = name
    limits = f"; it takes no {' and no '.join(dropped)} and chooses itself" if dropped else ""
    session.note(f"{session.conversation.system.name} replies from now on{limits}")


def _save(session: Session, name: str) -> None:
    from listenwell.commands.saving import free, save, target

    if session.conversation.last is None:
        session.note(NOTHING_SAID)
        return
    now = datetime.now()
    try:
        path = target(name, now)
        save(session.conversation, path, now)
    except FileExistsError as problem:
        other = os.path.join(os.path.dirname(name), free(path).name)  # as typed
        hint = f"; /save {other} would be a new file" if path.exists() else ""
        session.problem(f"not saved: {problem.filename} exists already{hint}")
    except OSError as problem:
        session.problem(f"not saved: {problem}")
    else:
        session.note(f"saved to {path.absolute()}")


def _reset(session: Session, _: str) -> None:
    session.conversation.reset()
    session.note("a new conversation")


def _helplines(session: Session, _: str) -> None:
    from listenwell.systems.safety import help_lines, load_resources

    resources = getattr(session.conversation.system, "resources", None) or load_resources()
    session.console.print(f"in an emergency: {resources.emergency['en']}", markup=False)
    for line in help_lines(resources, "en"):
        session.console.print(line, markup=False)


def _help(session: Session, _: str) -> None:
    session.console.print(f"{KEYS}\n")
    session.console.print(
        grid((escape(f"{command.name} {command.argument}"), command.about) for command in COMMANDS.values())
    )


def _quit(session: Session, _: str) -> None:
    raise LeaveChat


def _mark(name: str, present: str | None) -> str:
    return "*" if name == present else " "


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("/why", "", "why it replied so: what it recognised, chose and considered", _why),
        Command("/retry", "", "another reply to your last message", _retry),
        Command("/undo", "", "take back your last message and the reply", _undo),
        Command("/intent", "[NAME]", "what replies should do; off: its own choice; alone: the list", _intent, _intents),
        Command("/model", "[NAME]", "continue with another system; alone: the list", _model, talking),
        Command("/save", "[FILE]", "save the conversation: .md to read, .jsonl as data", _save),
        Command("/reset", "", "start a new conversation", _reset),
        Command("/helplines", "", "people to call when things are too much", _helplines),
        Command("/help", "", "this list", _help),
        Command("/quit", "", "leave (also Ctrl-D)", _quit),
    )
}
"""By name, in the order of /help."""
