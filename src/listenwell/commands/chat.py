from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from listenwell.decoding import Decoding

HELP = """\
/why           what I heard, what I chose to do, the reasons, and what else I could have said
/intent NAME   I reply so from now on (consoling, questioning, joyful … one of 41); off: as I choose
/model NAME    go on with another system; alone: which there are
/reset         begin a new conversation
/save [FILE]   keep this conversation in a new file, as a line of JSON
/help          this
/quit          leave (also Ctrl-D; Ctrl-C leaves the line)"""

PROBLEMS = (ValueError, OSError, RuntimeError, ImportError)
"""What goes wrong with a system or a file: told, and the conversation goes on."""


def chat(
    model: str | None = None,
    mode: Literal["rerank", "stream"] = "rerank",
    decoding: Decoding | None = None,
    intent: str | None = None,
    positivity: float | None = None,
    situation: str | None = None,
    base_url: str | None = None,
) -> None:
    """Talk with a system in the terminal.

    It is a program that was trained on conversations between people; it can be wrong, and it is no therapist.
    Signs of a crisis are answered by fixed words with places to turn to; SAFETY.md says how to name your own.

    In the conversation, /why explains the last reply, /intent and /model change how it goes on, /save keeps it and
    /help lists the rest. The arrow keys bring back what you typed, also another day: it is kept in a file that only
    you can read (~/.local/state/listenwell/history), without what was answered as a crisis. LISTENWELL_HISTORY=off
    keeps none.

    When standard input is not a terminal, each line is a message and each line of output the reply to it.

    Args:
        model: A trained system by name (`listenwell models`), the folder of a run, or openai:NAME, a model behind a
            server of that protocol. If not given, house where it is at hand, else multi-trs.
        mode: rerank lets a system that writes several replies choose the best; stream shows one, word by word as it
            comes, which is sooner there.
        decoding: How replies are written; the system's own way in all that is not given.
        intent: What every reply should do or express, one of the 41 labels, such as consoling or joyful; the system
            chooses if not given.
        positivity: How far replies lean towards lifting the mood, from 0 to 1, of a system that plans; its own way if
            not given.
        situation: What happened, told beforehand; it is heard as the first words that you say.
        base_url: Where the server of openai:NAME is, such as http://localhost:8000/v1; LISTENWELL_BASE_URL or
            OPENAI_BASE_URL if not given. Its key is read from LISTENWELL_API_KEY or OPENAI_API_KEY.
    """
    from rich.console import Console

    from listenwell.finding import default_system, is_remote, load

    first = model or default_system()

    def wake(name: str) -> Any:
        bot = load(name, base_url=base_url if name == first or is_remote(name) else None)
        if decoding is not None:
            bot.decoding = decoding.over(bot.decoding)
        if mode == "stream":
            bot.decoding = bot.decoding.streamed()
        return bot

    console = Console(highlight=False)
    interactive = sys.stdin.isatty()
    with console.status("waking up …") if interactive and console.is_terminal else nullcontext():
        conversation = Conversation(wake(first), wake)
    conversation.positivity, conversation.situation = positivity, situation
    conversation.ask(intent)
    if interactive:
        _talk(conversation, console)
    else:
        for line in sys.stdin:
            if line.strip():
                reply = conversation.hear(line.strip())
                print(" ".join(reply.text.split()), flush=True)  # a reply of care has several lines


class Conversation:
    """The turns so far, and the system that listens."""

    def __init__(self, bot: Any, wake: Callable[[str], Any] | None = None) -> None:
        self.bot = bot
        self.wake = wake
        """Makes a system of a name."""
        self.controls: Any = None
        self.positivity: float | None = None
        """How far replies lean, where it was said."""
        self.situation: str | None = None
        """What was told beforehand."""
        self.reset()

    def ask(self, intent: str | None) -> None:
        """From now on replies are to have this label; None leaves the choice to the system."""
        from listenwell.asking import asked

        self.controls = asked(self.bot, intent, self.positivity, self.situation)

    def reset(self) -> None:
        self.texts: list[str] = []
        self.replies: list[Any] = []

    @property
    def last(self) -> Any:
        return self.replies[-1] if self.replies else None

    def hear(self, text: str) -> Any:
        """The reply to this message. The message counts as said only once it is answered."""
        return self._said(text, self.bot.reply([*self.texts, text], self.controls))

    @property
    def grows(self) -> bool:
        """Whether the reply can be shown as it is written: a beam, or the best of several, is not known before."""
        decoding = getattr(self.bot, "decoding", None)
        alone = decoding is None or (decoding.method != "beam" and decoding.candidates == 1)
        return alone and hasattr(self.bot, "stream")

    def growing(self, text: str) -> Iterator[str]:
        """The reply to this message as it grows, each time whole. It is said once it is whole."""
        from listenwell.reply import Reply

        so_far = ""
        pieces = self.bot.stream([*self.texts, text], self.controls)
        with closing(pieces):
            while True:
                try:
                    so_far = next(pieces)
                except StopIteration as end:
                    self._said(text, end.value or Reply(so_far, system=self.bot.name))
                    return
                yield so_far

    def switch(self, name: str) -> list[str]:
        """Goes on with another system, if there is one of this name. What was asked for that this one cannot heed is
        forgotten, and named."""
        assert self.wake is not None
        self.bot = self.wake(name)
        intent = None if self.controls is None else self.controls.label
        forgotten = []
        if intent is not None and not getattr(self.bot, "takes_label", False):
            intent = None
            forgotten.append("intent")
        if self.positivity is not None and not getattr(self.bot, "takes_positivity", False):
            self.positivity = None
            forgotten.append("positivity")
        self.ask(intent)
        return forgotten

    def save(self, path: Path) -> None:
        """As a dialogue in a new file; one that is there is never written over."""
        import gzip
        import json

        opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
        record = json.dumps(self.dialogue(path.name.split(".")[0]).to_json(), ensure_ascii=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        with opener(path, "xt", encoding="utf-8", errors="replace") as lines:
            lines.write(record + "\n")

    def dialogue(self, id: str) -> Any:
        from listenwell.dialogue import Dialogue, Label, Turn

        turns = []
        for message, reply in zip(self.texts[::2], self.replies, strict=True):
            label = None if reply.label is None else Label(reply.label, by="machine")
            # A turn of a file has a text, though a model may once say nothing.
            turns += [Turn("speaker", message), Turn("listener", reply.text.strip() or "…", label)]
        names = dict.fromkeys(reply.system or self.bot.name for reply in self.replies)
        return Dialogue(id, tuple(turns), situation=self.situation, source=f"chat with {' and '.join(names)}")

    def _said(self, text: str, reply: Any) -> Any:
        self.texts += [text, reply.text]
        self.replies.append(reply)
        return reply


def _talk(conversation: Conversation, console: Any) -> None:
    from rich.markup import escape

    from listenwell.commands.history import History, history_file

    history = History(history_file())
    console.print(
        f"[bold]{escape(conversation.bot.name)}[/] is listening. It is a program, not a person and no therapist."
    )
    console.print("Tell it how you are. [dim]/help for more, Ctrl-D to leave.[/]\n")
    while True:
        try:
            text = input("you  > ").strip()
        except KeyboardInterrupt:
            console.print("\n[dim]Ctrl-D to leave[/]")
            continue
        except EOFError:
            console.print("\nTake care.")
            return
        if text in ("/quit", "/exit"):
            console.print("Take care.")
            return
        if not text:
            continue
        if text.startswith("/"):
            history.add(text, keep=text.split()[0] in COMMANDS)
            _command(text, conversation, console)
        else:
            answered = _answer(text, conversation, console)
            # What was answered with care is remembered nowhere; what was not answered can be sent again.
            if not answered or "care" not in conversation.last.reasons:
                history.add(text, keep=answered)
        console.print()


def _answer(text: str, conversation: Conversation, console: Any) -> bool:
    """Shows the reply to a message. False if there is none: then the message was not said."""
    try:
        if conversation.grows:
            _show_growing(conversation.growing(text), conversation.bot.name, console)
        else:
            with console.status("…"):
                reply = conversation.hear(text)
            console.print(_line(conversation.bot.name, reply.text))
    except KeyboardInterrupt:
        console.print("[dim]not answered; it counts as not said[/]")
        return False
    except PROBLEMS as problem:
        console.print(f"not answered: {problem}", markup=False, style="red")
        return False
    if summary := _summary(conversation.last):
        console.print(summary, markup=False, style="dim")
    return True


def _show_growing(texts: Iterator[str], name: str, console: Any) -> None:
    from rich.live import Live

    with console.status("…"):
        text = next(texts, "")
    # Redrawn each time: words that come may join or change those before them.
    with Live(_line(name, text), console=console, auto_refresh=False, vertical_overflow="visible") as live:
        for text in texts:
            live.update(_line(name, text), refresh=True)


def _line(name: str, text: str) -> Any:
    from rich.text import Text

    return Text.assemble((name, "bold cyan"), " > ", text)


def _summary(reply: Any) -> str:
    """What was heard, in the dialogue or else in the last message, and what the reply does, of a system that tells."""
    if reply.label is None:
        return ""
    heard = (reply.reasons.get("heard") or [reply.emotion])[-1]
    if reply.emotions:
        heard = f"{reply.emotion} ({100 * reply.emotions[reply.emotion]:.0f} %)"
    parts = [f"heard: {heard}"] if heard else []
    chance = reply.reasons.get("probability")
    return " · ".join([*parts, f"does: {reply.label}" + (f" ({100 * chance:.0f} %)" if chance is not None else "")])


def _command(text: str, conversation: Conversation, console: Any) -> None:
    word, _, rest = text.partition(" ")
    if word in COMMANDS:
        COMMANDS[word](conversation, rest.strip(), console)
        return
    near = get_close_matches(word, COMMANDS, n=1)
    console.print(f"no command {word}" + (f"; did you mean {near[0]}?" if near else ""), markup=False)
    console.print(HELP, markup=False)


def _why(conversation: Conversation, _: str, console: Any) -> None:
    from listenwell.commands.why import why

    if conversation.last is None:
        console.print("[dim]nothing was said yet[/]")
        return
    for part in why(conversation.last, conversation.texts[:-1]):
        console.print(part)


def _intent(conversation: Conversation, name: str, console: Any) -> None:
    intent = None if name.lower() in ("", "off") else name.lower()
    try:
        conversation.ask(intent)
    except ValueError as problem:
        console.print(str(problem), markup=False)
        return
    console.print(f"[dim]{f'replies are {intent} from now on' if intent else 'I choose again'}[/]")


def _model(conversation: Conversation, name: str, console: Any) -> None:
    from listenwell.finding import shipped

    if not name:
        console.print(f"this is {conversation.bot.name}; at hand: {', '.join(shipped())}", markup=False)
        console.print("or the folder of a run, or openai:NAME", markup=False, style="dim")
        return
    try:
        with console.status("waking up …"):
            forgotten = conversation.switch(name)
    except KeyboardInterrupt:
        console.print("[dim]nothing changed[/]")
        return
    except PROBLEMS as problem:
        console.print(f"{problem}", markup=False)
        return
    note = f"; it takes no {' and no '.join(forgotten)} and chooses itself" if forgotten else ""
    console.print(f"{conversation.bot.name} goes on from here{note}", markup=False, style="dim")


def _reset(conversation: Conversation, _: str, console: Any) -> None:
    conversation.reset()
    console.print("[dim]a new conversation[/]")


def _save(conversation: Conversation, name: str, console: Any) -> None:
    if not conversation.texts:
        console.print("[dim]nothing was said yet[/]")
        return
    try:
        path = _file(name) if name else _free_file()
        conversation.save(path)
    except FileExistsError:
        console.print(f"not saved: {path} is there already; give another name, or none", markup=False, style="red")
    except OSError as problem:
        console.print(f"not saved: {problem}", markup=False, style="red")
    else:
        console.print(f"saved to {path}", markup=False, style="dim", soft_wrap=True)


def _file(name: str) -> Path:
    """The file of a name. What does not end as JSON lines do could not be read back as such."""
    from listenwell.sources.jsonl import is_jsonl

    return Path(name if is_jsonl(name) else f"{name}.jsonl").expanduser()


def _free_file() -> Path:
    number = 1
    while (path := Path(f"chat-{number}.jsonl")).exists():
        number += 1
    return path


def _help(conversation: Conversation, _: str, console: Any) -> None:
    console.print(HELP, markup=False)


COMMANDS: dict[str, Callable[[Conversation, str, Any], None]] = {
    "/why": _why,
    "/intent": _intent,
    "/model": _model,
    "/reset": _reset,
    "/save": _save,
    "/help": _help,
}
