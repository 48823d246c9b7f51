from __future__ import annotations

import sys
from contextlib import nullcontext, suppress
from pathlib import Path

from listenwell.decoding import Decoding

DEFAULT = "multi-trs"

HELP = """\
/intent I reply so from now on (consoling, questioning, joyful … one of 41); alone: as I choose
/why      what I heard in your last message, and what else I could have said
/reset    begin a new conversation
/save F   keep this conversation as a JSON line at the end of file F
/help     this
/quit     leave (also Ctrl-D)"""


def chat(model: str = DEFAULT, decoding: Decoding | None = None, intent: str | None = None) -> None:
    """Talk with a system in the terminal.

    It is a program that was trained on conversations between people; it can be wrong, and it is no therapist.
    Signs of a crisis are answered by fixed words with places to turn to; SAFETY.md says how to name your own.
    When standard input is not a terminal, each line is a message and each line of output the reply to it.

    Args:
        model: A trained system by name (`listenwell models`), or the folder of a run.
        decoding: How replies are written; the system's own way if not given.
        intent: What every reply should do or express, one of the 41 labels, such as consoling or joyful; the system
            chooses if not given.
    """
    from rich.console import Console

    from listenwell.finding import load

    console = Console(highlight=False)
    interactive = sys.stdin.isatty()
    with console.status("waking up …") if interactive and console.is_terminal else nullcontext():
        bot = load(model)
    if decoding is not None:
        bot.decoding = decoding
    conversation = Conversation(bot)
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

    def __init__(self, bot) -> None:
        self.bot = bot
        self.controls = None
        self.reset()

    def ask(self, intent: str | None) -> None:
        """From now on replies are to have this label; None leaves the choice to the system."""
        from listenwell.commands.asking import asked

        self.controls = asked(self.bot, intent)

    def reset(self) -> None:
        self.texts: list[str] = []
        self.last = None

    def hear(self, text: str):
        """The reply to this message. The message counts as said only once it is answered."""
        reply = self.bot.reply([*self.texts, text], self.controls)
        self.texts += [text, reply.text]
        self.last = reply
        return reply

    def save(self, path: Path) -> None:
        import json

        from listenwell.dialogue import Dialogue, Turn

        turns = tuple(Turn("listener" if i % 2 else "speaker", text) for i, text in enumerate(self.texts))
        record = Dialogue("chat", turns, source=f"chat with {self.bot.name}").to_json()
        with path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")


def _talk(conversation: Conversation, console) -> None:
    with suppress(ImportError):
        import readline  # noqa: F401  arrow keys and history in input()
    name = conversation.bot.name
    console.print(f"[bold]{name}[/] is listening. It is a program, not a person and no therapist.")
    console.print("Tell it how you are. [dim]/help for more, Ctrl-D to leave.[/]\n")
    while True:
        try:
            text = input("you  > ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print("\nTake care.")
            return
        if text in ("/quit", "/exit"):
            console.print("Take care.")
            return
        if text.startswith("/"):
            _command(text, conversation, console)
        elif text:
            with console.status("…"):
                reply = conversation.hear(text)
            console.print(f"[bold cyan]{name}[/] > ", reply.text, sep="", markup=True)
            if summary := _summary(reply):
                console.print(f"[dim]{summary}[/]")
            console.print()


def _summary(reply) -> str:
    """What was heard in the last message and what the reply does, of a system that tells."""
    heard = reply.reasons.get("heard") or [reply.emotion]
    if reply.label is None:
        return ""
    parts = [f"heard: {heard[-1]}"] if heard[-1] else []
    chance = reply.reasons.get("probability")
    return " · ".join([*parts, f"does: {reply.label}" + (f" ({100 * chance:.0f} %)" if chance is not None else "")])


def _command(text: str, conversation: Conversation, console) -> None:
    word, _, rest = text.partition(" ")
    if word == "/reset":
        conversation.reset()
        console.print("[dim]a new conversation[/]\n")
    elif word == "/why":
        _why(conversation, console)
    elif word == "/intent":
        _ask(conversation, rest.strip(), console)
    elif word == "/save":
        _save(conversation, rest.strip(), console)
    else:
        console.print(HELP if word == "/help" else f"no command {word}\n{HELP}", markup=False)
        console.print()


def _ask(conversation: Conversation, intent: str, console) -> None:
    try:
        conversation.ask(intent or None)
    except ValueError as problem:
        console.print(f"{problem}\n", markup=False)
        return
    console.print(f"[dim]{f'replies are {intent} from now on' if intent else 'I choose again'}[/]\n")


def _save(conversation: Conversation, name: str, console) -> None:
    if not name or not conversation.texts:
        console.print("[dim]/save FILE, once something was said[/]\n")
        return
    try:
        conversation.save(Path(name).expanduser())
        console.print(f"[dim]saved to {name}[/]\n")
    except OSError as problem:
        console.print(f"[red]not saved:[/] {problem}\n")


def _why(conversation: Conversation, console) -> None:
    reply = conversation.last
    if reply is None:
        console.print("[dim]nothing was said yet[/]\n")
        return
    if "care" in reply.reasons:
        console.print(
            f"a sign of danger was heard ({reply.reasons['care']}): these words are fixed, no model wrote them."
        )
    elif reply.emotions:
        console.print("heard:")
        for emotion, chance in list(reply.emotions.items())[:5]:
            console.print(f"  {emotion:<14} {'█' * round(chance * 30)} {100 * chance:.0f} %")
    elif "heard" in reply.reasons:
        console.print("heard, turn by turn: " + ", ".join(map(str, reply.reasons["heard"])))
    else:
        console.print(f"{reply.system} does not name emotions: it answers the words alone.")
    if likeliest := reply.reasons.get("likeliest"):
        console.print(f"does: {reply.label}; found likeliest:")
        for label, chance in likeliest.items():
            console.print(f"  {label:<14} {'█' * round(chance * 30)} {100 * chance:.0f} %")
    if len(reply.candidates) > 1:
        console.print("considered:")
        for candidate in reply.candidates:
            console.print(f"  {candidate.score:7.2f}  {candidate.text}", markup=False)
    console.print()
