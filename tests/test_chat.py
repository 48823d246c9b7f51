"""The conversation in a terminal: with a real pseudo-terminal, and by its functions."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from listenwell import checkpoint, cli
from listenwell.care import Cared
from listenwell.commands import chat, history
from listenwell.commands.chat import Conversation
from listenwell.commands.why import why
from listenwell.finding import load
from listenwell.labelling import Labeller
from listenwell.models.contract import Controls
from listenwell.remote import Endpoint, Server
from listenwell.reply import Candidate, Reply
from listenwell.sources import jsonl
from listenwell.system import Bot
from test_remote import SAID, Protocol, fail, stream
from test_system import made_bot

UP = "\x1b[A"
SIGN = "I want to kill myself"
on_terminals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")


class Terminal:
    """`listenwell chat` in a pseudo-terminal: type, and read what shows."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.here, there = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "listenwell.cli", "chat", *words],
            stdin=there, stdout=there, stderr=there, close_fds=True,
            env={**os.environ, "TERM": "dumb", "OMP_NUM_THREADS": "1", "LISTENWELL_HISTORY": "off", **environment},
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(there)
        self.shown = ""

    def until(self, text: str) -> str:
        """All that shows up to and with this text, since the last call."""
        limit = time.monotonic() + 120  # a busy machine
        while text not in self.shown:
            ready, _, _ = select.select([self.here], [], [], 1)
            if ready:
                self.shown += os.read(self.here, 4096).decode(errors="replace")
            if time.monotonic() > limit:
                self.process.kill()
                self.close()
                raise AssertionError(f"{text!r} did not show; shown: {self.shown!r}")
        before, _, self.shown = self.shown.partition(text)
        return before + text

    def settle(self, seconds: float = 0.5) -> None:
        """Until no more shows."""
        while select.select([self.here], [], [], seconds)[0]:
            self.shown += os.read(self.here, 4096).decode(errors="replace")

    def interrupt(self, text: str) -> None:
        """Ctrl-C until this shows. One that comes while readline is about to read takes the waiting keys away, and is
        seen only after the next key: so a key that changes nothing, to the end of the line, goes before it."""
        self.settle()
        for _ in range(20):
            self.type("\x05", end="")
            self.settle()
            self.type("\x03", end="")
            self.settle(3)
            if text in self.shown:
                break
        self.until(text)

    def type(self, text: str, end: str = "\n") -> None:
        os.write(self.here, (text + end).encode())

    def close(self) -> int:
        code = self.process.wait(timeout=60)
        os.close(self.here)
        return code


@on_terminals
def test_a_person_talks_asks_why_saves_and_leaves(tmp_path: Path):
    checkpoint.save(made_bot(method="beam", beams=3, candidates=2).checkpoint, tmp_path / "bot")
    terminal = Terminal("--model", str(tmp_path / "bot"))
    assert "program" in terminal.until("you  >")  # it says what it is
    terminal.type("i lost my job today")
    terminal.until("multi-trs > ")
    terminal.until("you  >")
    terminal.type("/why")
    assert "considered" in terminal.until("you  >")
    terminal.type(f"/save {tmp_path / 'talk.jsonl'}")
    terminal.until("saved")
    terminal.type("/nonsense")
    assert "no command /nonsense" in terminal.until("/quit")
    terminal.type("/reset")
    terminal.until("a new conversation")
    terminal.type("/quit")
    terminal.until("Take care.")
    assert terminal.close() == 0
    assert "i lost my job today" in (tmp_path / "talk.jsonl").read_text()


@on_terminals
def test_a_person_asks_for_an_intent(tmp_path: Path):
    checkpoint.save(made_bot(name="meed2").checkpoint, tmp_path / "bot")
    terminal = Terminal("--model", str(tmp_path / "bot"), "--intent", "Consoling")
    terminal.until("you  >")
    terminal.type("i lost my job today")
    assert "does: consoling (" in terminal.until("you  >")
    terminal.type("/intent questionning")
    assert "did you mean 'questioning'?" in terminal.until("you  >")
    terminal.type("/intent questioning")
    assert "replies are questioning from now on" in terminal.until("you  >")
    terminal.type("they closed the office")
    assert "does: questioning (" in terminal.until("you  >")
    terminal.type("/why")
    assert "found likeliest" in terminal.until("you  >")
    terminal.type("/intent")
    terminal.until("I choose again")
    terminal.type("/quit")
    terminal.until("Take care.")
    assert terminal.close() == 0


@on_terminals
def test_the_arrow_keys_bring_back_what_was_typed_also_another_day(tmp_path: Path):
    checkpoint.save(made_bot().checkpoint, tmp_path / "bot")
    settings = {"XDG_STATE_HOME": str(tmp_path / "state"), "LISTENWELL_HISTORY": "", "TERM": "xterm"}
    terminal = Terminal("--model", str(tmp_path / "bot"), **settings)
    terminal.until("you  >")
    terminal.type("i lost my job today")
    terminal.until("multi-trs")
    terminal.until("you  >")
    terminal.type(UP + ", really")
    terminal.until("i lost my job today, really")
    terminal.until("you  >")
    terminal.type(SIGN)
    terminal.until("program")
    terminal.until("you  >")
    terminal.type(UP + " so")  # what was answered with care does not come back
    terminal.until("i lost my job today, really so")
    terminal.until("you  >")
    terminal.type("/quit")
    terminal.until("Take care.")
    assert terminal.close() == 0
    kept = tmp_path / "state" / "listenwell" / "history"
    assert kept.read_text().splitlines() == ["i lost my job today", "i lost my job today, really"]
    assert kept.stat().st_mode & 0o777 == 0o600
    terminal = Terminal("--model", str(tmp_path / "bot"), **settings)
    terminal.until("you  >")
    terminal.type(UP + UP, end="")
    terminal.until("i lost my job today")
    terminal.interrupt("Ctrl-D to leave")  # it leaves the line
    terminal.until("you  >")
    terminal.type("/why")
    terminal.until("nothing was said yet")
    terminal.until("you  >")
    terminal.type("\x04", end="")  # Ctrl-D leaves the conversation
    terminal.until("Take care.")
    assert terminal.close() == 0


@on_terminals
def test_a_person_goes_on_with_another_system(tmp_path: Path):
    checkpoint.save(made_bot().checkpoint, tmp_path / "cache" / "first")
    checkpoint.save(made_bot(name="meed2").checkpoint, tmp_path / "cache" / "second")
    terminal = Terminal("--model", "first", LISTENWELL_CACHE=str(tmp_path / "cache"))
    terminal.until("you  >")
    terminal.type("i lost my job today")
    terminal.until("multi-trs > ")
    terminal.until("you  >")
    terminal.type("/model secnod")
    assert "did you mean 'second'?" in terminal.until("you  >")
    terminal.type("/model")
    assert "this is multi-trs; at hand: first, second" in terminal.until("you  >")
    terminal.type("/model second")
    assert "meed2 goes on from here" in terminal.until("you  >")
    terminal.type("they closed the office")
    assert "meed2 > " in terminal.until("you  >")
    terminal.type("/intent wishing")
    terminal.until("replies are wishing from now on")
    terminal.type("/model first")
    terminal.until("takes no intent and chooses itself")
    terminal.type("/quit")
    terminal.until("Take care.")
    assert terminal.close() == 0


@on_terminals
def test_a_person_talks_with_a_model_behind_a_server_as_it_writes():
    with Protocol() as protocol:
        protocol.faults = [None, fail(400, "[too] long")]
        words = ("--model", "openai:small", "--base-url", protocol.url, "--mode", "stream")
        terminal = Terminal(*words, TERM="xterm")
        terminal.until("you  >")
        terminal.type("i lost my job today")
        shown = terminal.until("you  >")
        assert "That sounds " in shown
        assert SAID in shown
        terminal.type("they closed the office")
        assert "not answered: " in terminal.until("[too]")
        terminal.until("you  >")
        terminal.type("it hurts")
        terminal.until("you  >")
        terminal.type("/quit")
        terminal.until("Take care.")
        assert terminal.close() == 0
        said = [message["content"] for message in protocol.bodies[-1]["messages"][1:]]
        assert said == ["i lost my job today", SAID, "it hurts"]  # what was not answered was not said


class Written:
    """A system that says what it is given to say, and tells what it is given to tell."""

    name = "written"

    def __init__(self, **told: object) -> None:
        self.told, self.asked = told, []

    def reply(self, talk: object, controls: Controls | None = None) -> Reply:
        self.asked.append((talk, controls))
        return Reply("I see", system=self.name, **self.told)  # type: ignore[arg-type]


class Growing(Written):
    def stream(self, talk: object, controls: Controls | None = None) -> Iterator[str]:
        yield "I"
        yield "I see"
        return self.reply(talk, controls)


@pytest.fixture
def console() -> Console:
    return Console(record=True, width=100, highlight=False)


def explained(reply: Reply, *context: str) -> str:
    console = Console(record=True, width=100, file=StringIO())
    for part in why(reply, context):
        console.print(part)
    return console.export_text()


def test_why_tells_what_was_heard_chosen_considered_and_why():
    reply = Reply(
        "Oh [no]",
        emotion="sad",
        emotions={"sad": 0.5, "lonely": 0.25, "afraid": 0.125, "angry": 0.0625},
        label="consoling",
        reasons={
            "heard": ["sad", "questioning", None],
            "does": "consoling",
            "probability": 0.5,
            "likeliest": {"consoling": 0.5, "wishing": 0.25},
            "plan": "console, then ask",
            "listeners": {"sad": 0.75},
            "gates": [0.5, 1],
        },
        candidates=(
            Candidate("Oh [no]", -1.25, {"fluency": -2.0, "fit": 0.75}),
            Candidate("I see", -2.5, {"fit": 0.5}),
        ),
        system="house",
    )
    told = explained(reply, "hello", "hi", "I lost my job", "how?", "they closed")
    lines = [" ".join(line.split()) for line in told.splitlines()]
    for line in ("sad 50 % ██████████", "lonely 25 % █████", "afraid 12 % ██"):
        assert line in lines
    assert "angry" not in told  # the three likeliest
    for line in ("you I lost my job sad", "I how? questioning", "you they closed nothing named"):
        assert line in lines
    assert "does: consoling (50 %)" in lines
    assert "wishing 25 % █████" in lines
    for line in ("plan console, then ask", "listeners sad 0.75", "gates 0.50, 1"):
        assert line in lines
    assert "score fluency fit reply" in lines
    assert "-1.25 -2.00 0.75 Oh [no] said" in lines
    assert "-2.50 0.50 I see" in lines


def test_why_of_a_system_that_tells_little():
    assert "written does not name emotions" in explained(Reply("I see", system="written"), "hello")
    assert explained(Reply("I see", emotion="sad"), "hello").strip() == "heard: sad"
    unscored = Reply("one", label="wishing", candidates=(Candidate("one", 0.0), Candidate("", 0.0)), system="far")
    told = explained(unscored, "hello")
    assert "does: wishing" in told
    assert "score" not in told
    assert "(nothing)" in told


def test_why_of_a_reply_of_care_says_that_no_model_wrote_it():
    reply = Cared(Written()).reply(SIGN)
    told = explained(reply, SIGN)
    assert "a sign of danger was heard (self-harm, direct)" in " ".join(told.split())
    assert "no model wrote them" in told
    assert "does not name emotions" not in told


def test_a_reply_is_shown_as_it_grows_where_it_can(console: Console):
    conversation = Conversation(Growing())
    assert conversation.grows
    assert [*conversation.growing("hello")] == ["I", "I see"]
    assert conversation.texts == ["hello", "I see"]
    assert conversation.last.text == "I see"
    assert not Conversation(Written()).grows
    assert not Conversation(made_bot(method="beam")).grows
    assert not Conversation(made_bot(method="sample", candidates=2)).grows
    assert chat._answer("again", conversation, console)
    assert "written > I see" in console.export_text()


def test_the_mode_says_whether_the_best_of_several_is_awaited(tmp_path: Path, monkeypatch):
    checkpoint.save(made_bot(method="beam", beams=3, candidates=2).checkpoint, tmp_path / "bot")
    grows: list[bool] = []
    monkeypatch.setattr(Conversation, "hear", lambda self, text: grows.append(self.grows) or Reply("I see"))
    for mode in ((), ("--mode", "rerank"), ("--mode", "stream")):
        monkeypatch.setattr(sys, "stdin", StringIO("hello\n"))
        cli.main(["chat", "--model", str(tmp_path / "bot"), *mode])
    assert grows == [False, False, True]


@pytest.mark.parametrize("name", ["multi-trs", "meed2"])
def test_a_streamed_reply_is_explained_like_one_that_is_not(name: str):
    bot = made_bot(name=name)
    streamed, whole = Conversation(Cared(bot)), Conversation(bot)
    assert streamed.grows
    shown = [*streamed.growing("i lost my job")]
    reply = whole.hear("i lost my job")
    assert shown[-1] == reply.text
    for part in ("text", "emotion", "emotions", "label", "reasons", "system"):
        assert getattr(streamed.last, part) == getattr(reply, part)
    assert streamed.last.candidates == ()


def test_what_was_heard_in_the_whole_dialogue_comes_before_what_its_last_turn_expresses():
    reasons = {"heard": ["sad", "questioning", "faithful"], "probability": 0.3}
    reply = Reply("I hope so", emotion="sad", emotions={"sad": 0.7, "afraid": 0.3}, label="consoling", reasons=reasons)
    assert chat._summary(reply) == "heard: sad (70 %) · does: consoling (30 %)"


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_under_each_reply_stands_what_was_heard_and_what_it_does(method: str, tiny_classifier, console: Console):
    made = made_bot(name="meed2", method=method).checkpoint
    made.parts = {"labeller": tiny_classifier()}
    conversation = Conversation(Bot(made))
    for text in ("i lost my job today", "they closed the office"):
        assert chat._answer(text, conversation, console)
        (heard,) = Labeller(made.parts["labeller"]).label([text])
        reply = conversation.last
        chance = 100 * reply.reasons["probability"]
        assert f"heard: {heard.name} · does: {reply.label} ({chance:.0f} %)" in console.export_text()
    conversation.ask("consoling")
    assert chat._answer("yes", conversation, console)
    assert "· does: consoling (" in console.export_text()


def test_a_crisis_is_answered_with_care_in_a_stream_too():
    conversation = Conversation(Cared(Growing()))
    [*conversation.growing(SIGN)]
    assert "care" in conversation.last.reasons


def test_a_reply_that_breaks_off_was_not_said(console: Console):
    with Protocol() as protocol:
        protocol.always = stream("That ", end=b"data: nonsense\n\n")
        conversation = Conversation(Endpoint("small", Server(protocol.url)))
        assert not chat._answer("hello", conversation, console)
    assert conversation.texts == []
    assert "not answered" in console.export_text()


def test_a_reply_that_ctrl_c_stops_was_not_said(console: Console):
    class Stopped(Written):
        def reply(self, talk: object, controls: Controls | None = None) -> Reply:
            raise KeyboardInterrupt

    conversation = Conversation(Stopped())
    assert not chat._answer("hello", conversation, console)
    assert conversation.texts == []
    assert "counts as not said" in console.export_text()


def test_a_conversation_is_saved_as_a_dialogue_and_never_over_another(tmp_path: Path, monkeypatch, console: Console):
    monkeypatch.chdir(tmp_path)
    conversation = Conversation(Written(label="wishing"))
    chat._command("/save", conversation, console)
    assert "nothing was said yet" in console.export_text()
    conversation.hear("hello [you]")
    conversation.bot = Written()
    conversation.bot.name = "other"
    conversation.hear("again")
    for command in ("/save", "/save", "/save mine", "/save deep/er.jsonl.gz"):
        chat._command(command, conversation, console)
    assert "saved to chat-2.jsonl" in console.export_text()
    for name in ("chat-1.jsonl", "chat-2.jsonl", "mine.jsonl", "deep/er.jsonl.gz"):
        (dialogue,) = jsonl.read(tmp_path / name)
        assert [turn.text for turn in dialogue.turns] == ["hello [you]", "I see", "again", "I see"]
        assert [turn.speaker for turn in dialogue.turns] == ["speaker", "listener"] * 2
        assert dialogue.turns[1].label.by == "machine"
        assert dialogue.source == "chat with written and other"
    before = (tmp_path / "mine.jsonl").read_bytes()
    conversation.hear("more")
    chat._command("/save mine.jsonl", conversation, console)
    assert "mine.jsonl is there already" in console.export_text()
    assert (tmp_path / "mine.jsonl").read_bytes() == before
    chat._command("/save mine.jsonl/within", conversation, console)
    assert "not saved" in console.export_text()


def test_a_situation_is_told_with_every_turn_and_saved(tmp_path: Path):
    conversation = Conversation(Written())
    conversation.situation = "They closed the office."
    conversation.ask(None)
    conversation.hear("hello")
    conversation.hear("again")
    assert [controls for _, controls in conversation.bot.asked] == [Controls(situation="They closed the office.")] * 2
    assert conversation.texts[0] == "hello"
    conversation.save(tmp_path / "talk.jsonl")
    (dialogue,) = jsonl.read(tmp_path / "talk.jsonl")
    assert dialogue.situation == "They closed the office."


def test_an_intent_is_set_suggested_and_taken_back(console: Console):
    conversation = Conversation(Written())
    chat._command("/intent consoling", conversation, console)
    assert "written chooses no intent for its replies" in console.export_text()
    conversation.bot.takes_label = True
    chat._command("/intent Consoling", conversation, console)
    conversation.hear("hello")
    chat._command("/intent consolin", conversation, console)
    assert "did you mean 'consoling'?" in console.export_text()
    assert conversation.controls == Controls(label="consoling")  # a wrong name changes nothing
    chat._command("/intent off", conversation, console)
    conversation.hear("hello")
    assert [controls for _, controls in conversation.bot.asked] == [Controls(label="consoling"), None]


def test_another_system_hears_the_whole_conversation_and_a_wrong_name_changes_nothing(console: Console):
    first, second = Written(), Written()
    second.name = "second"

    def wake(name: str) -> Written:
        return second if name == "second" else load(name)  # type: ignore[return-value]

    conversation = Conversation(first, wake)
    conversation.hear("hello")
    chat._command("/model multi-tsr", conversation, console)
    assert "did you mean 'multi-trs'?" in console.export_text()
    assert conversation.bot is first
    chat._command("/model openai:", conversation, console)
    assert conversation.bot is first
    chat._command("/model second", conversation, console)
    conversation.hear("again")
    assert second.asked[0][0] == ["hello", "I see", "again"]


def test_another_system_is_not_asked_for_what_it_cannot_heed(console: Console):
    first, second = Written(), Written()
    first.takes_label = first.takes_positivity = second.takes_label = True
    systems = {"first": first, "second": second, "third": Written()}
    conversation = Conversation(first, systems.__getitem__)
    conversation.positivity = 0.8
    conversation.ask("consoling")
    chat._command("/model second", conversation, console)
    assert "it takes no positivity and chooses itself" in console.export_text()
    assert conversation.controls == Controls(label="consoling")
    chat._command("/intent wishing", conversation, console)
    assert "replies are wishing from now on" in console.export_text()
    chat._command("/model third", conversation, console)
    assert "it takes no intent and chooses itself" in console.export_text()
    assert conversation.controls is None
    chat._command("/model first", conversation, console)
    conversation.positivity = 0.3
    conversation.ask("questioning")
    chat._command("/model third", conversation, console)
    assert "it takes no intent and no positivity and chooses itself" in console.export_text()


def test_a_mistyped_command_suggests_the_near_one(console: Console):
    chat._command("/rest", Conversation(Written()), console)
    said = console.export_text()
    assert "no command /rest; did you mean /reset?" in said
    assert all(command in said for command in chat.COMMANDS)


def test_a_long_history_is_cut_and_a_file_for_all_becomes_the_user_s_own(tmp_path: Path, monkeypatch):
    pytest.importorskip("readline")
    path = tmp_path / "listenwell" / "history"
    path.parent.mkdir()
    path.write_text("".join(f"line {number}\n" for number in range(2 * history.KEPT + 1)))
    path.chmod(0o644)
    kept = history.History(path)
    assert len(path.read_text().splitlines()) == history.KEPT
    kept.add("not for later", keep=False)
    kept.add("the last")
    assert path.read_text().splitlines()[-2:] == [f"line {2 * history.KEPT}", "the last"]
    assert path.stat().st_mode & 0o777 == 0o600
    history.History(tmp_path).add("goes nowhere")  # a folder stands in the way: no error
    monkeypatch.setattr(history, "readline", None)
    history.History(tmp_path / "none").add("hello")
    assert not (tmp_path / "none").exists()


def test_the_history_file_is_in_the_state_folder_or_nowhere(monkeypatch, tmp_path: Path):
    monkeypatch.delenv("LISTENWELL_HISTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history.history_file() == tmp_path / "listenwell" / "history"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history.history_file() == tmp_path / ".local" / "state" / "listenwell" / "history"
    monkeypatch.setenv("LISTENWELL_HISTORY", "off")
    assert history.history_file() is None
