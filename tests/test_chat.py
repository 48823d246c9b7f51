"""The terminal conversation, through a real pseudo-terminal and through its functions."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
import traceback
from collections.abc import Callable
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from rich.console import Console

from listenwell import checkpoint, cli, loading
from listenwell.commands import history
from listenwell.commands.chat_session import Session
from listenwell.commands.explain import why
from listenwell.commands.prompt import CommandCompleter
from listenwell.commands.slash_commands import COMMANDS, Command, run_command
from listenwell.commands.terminal import make_streams_robust
from listenwell.contract import Controls
from listenwell.data.dialogue import Label
from listenwell.data.sources import jsonl
from listenwell.labels.taxonomy import INTENT_MEANINGS
from listenwell.loading import load, talking
from listenwell.systems.conversation import Conversation, Exchange
from listenwell.systems.remote.endpoint import Endpoint, Server
from listenwell.systems.reply import Candidate, Reply
from listenwell.systems.safety import SafetyWrapper
from test_conversation import SIGN, Scripted, Streaming
from test_remote import SAID, Protocol, fail, stream
from test_system import made_bot

UP = "\x1b[A"
PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
on_terminals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")


def _own_terminal() -> None:
    """In the child: take control of the terminal, so that Ctrl-C works even if the tests run in the background."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Forked:
    """A copy of this process that runs a function in a terminal; it has imported what a new one would import."""

    def __init__(self, terminal: int, environment: dict[str, str], function: Callable[[], object]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                self._become(terminal, environment)
                function()
                code = 0
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)

    @staticmethod
    def _become(terminal: int, environment: dict[str, str]) -> None:
        """Take on the streams, signals and settings of a process started in the terminal."""
        os.setsid()
        for number in range(3):
            os.dup2(terminal, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        _own_terminal()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.update(environment)
        encoding = environment.get("PYTHONIOENCODING", "utf-8")
        sys.stdin, sys.stdout = os.fdopen(0, "r", encoding=encoding), os.fdopen(1, "w", encoding=encoding)
        sys.stderr = os.fdopen(2, "w", buffering=1, encoding=encoding, errors="backslashreplace")
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr

    def wait(self, timeout: float) -> int:
        limit = time.monotonic() + timeout
        while not (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
            assert time.monotonic() < limit, "the program does not end"
            time.sleep(0.01)
        return os.waitstatus_to_exitcode(ended[1])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class Terminal:
    """`listenwell chat` in a pseudo-terminal: type, and read what it shows."""

    process: Forked | subprocess.Popen[bytes]

    def __init__(self, *words: str, function: Callable[[], object] | None = None, **settings: str):
        self.here, there = pty.openpty()
        environment = {"TERM": "dumb", "OMP_NUM_THREADS": "1", "LISTENWELL_HISTORY": "off", **settings}
        environment["PROMPT_TOOLKIT_NO_CPR"] = "1"  # nobody here reports the cursor position
        environment["TOKENIZERS_PARALLELISM"] = "false"  # otherwise the library warns about the fork
        self.process = self._start(there, environment, function or (lambda: cli.main(["chat", *words])))
        os.close(there)
        self.shown = ""

    def _start(self, terminal: int, environment: dict[str, str], function: Callable[[], object]) -> Any:
        return Forked(terminal, environment, function)

    def until(self, text: str) -> str:
        """All output since the last call, up to and including this text."""
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

    def type(self, text: str, end: str = "\r") -> None:
        os.write(self.here, (text + end).encode())

    def close(self) -> int:
        code = self.process.wait(timeout=60)
        os.close(self.here)
        return code


class StartedTerminal(Terminal):
    """The same in a newly started process, which needs seconds to import everything."""

    def __init__(self, *words: str, **settings: str) -> None:
        self.words = words
        super().__init__(**settings)

    def _start(self, terminal: int, environment: dict[str, str], function: Callable[[], object]) -> Any:
        return subprocess.Popen(
            [sys.executable, "-m", "listenwell.cli", "chat", *self.words],
            stdin=terminal, stdout=terminal, stderr=terminal, close_fds=True,
            env={**os.environ, **environment}, start_new_session=True, preexec_fn=_own_terminal,
        )  # fmt: skip


def without_classifier(cache: Path) -> str:
    """A cache folder in which the classifier that labels turns for other systems, slow to load, cannot be loaded."""
    (cache / "emotion-intent").mkdir(parents=True)
    (cache / "emotion-intent" / "config.json").write_text("{}")
    return str(cache)


@on_terminals
def test_a_person_talks_asks_why_saves_and_leaves(tmp_path: Path):
    checkpoint.save(made_bot(method="beam", beams=3, candidates=2).checkpoint, tmp_path / "bot")
    terminal = StartedTerminal("--model", str(tmp_path / "bot"))
    assert "program" in terminal.until("you  >")  # it says what it is
    terminal.type("i lost my job today")
    terminal.until("multi-trs > ")
    terminal.until("you  >")
    terminal.type("/why")
    assert "considered" in terminal.until("you  >")
    terminal.type(f"/save {tmp_path / 'talk.jsonl'}")
    terminal.until("saved")
    terminal.type("/nonsense")
    assert "unknown command /nonsense" in terminal.until("/help lists")
    terminal.type("/retry")
    terminal.until("multi-trs > ")
    terminal.until("you  >")
    terminal.type("/undo")
    terminal.until("nothing is left")
    terminal.type("/reset")
    terminal.until("a new conversation")
    terminal.type("/quit")
    terminal.until("Take care.")
    assert terminal.close() == 0
    assert "i lost my job today" in (tmp_path / "talk.jsonl").read_text()


@on_terminals
def test_a_person_asks_for_an_intent(tmp_path: Path):
    checkpoint.save(made_bot(name="meed2").checkpoint, tmp_path / "bot")
    cache = without_classifier(tmp_path / "cache")
    terminal = Terminal("--model", str(tmp_path / "bot"), "--intent", "Consoling", LISTENWELL_CACHE=cache)
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
    assert "likeliest labels" in terminal.until("you  >")
    terminal.type("/intent off")
    terminal.until("the system chooses again")
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
    terminal.type(UP + " so")  # messages answered with care do not come back
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
    terminal.type("\x03", end="")  # Ctrl-C discards the line
    terminal.until("Ctrl-D to leave")
    terminal.until("you  >")
    terminal.type("/why")
    terminal.until("nothing has been said yet")
    terminal.until("you  >")
    terminal.type("\x04", end="")  # Ctrl-D ends the conversation
    terminal.until("Take care.")
    assert terminal.close() == 0


@on_terminals
def test_a_person_goes_on_with_another_system(tmp_path: Path):
    checkpoint.save(made_bot().checkpoint, tmp_path / "cache" / "first")
    checkpoint.save(made_bot(name="meed2").checkpoint, tmp_path / "cache" / "second")
    terminal = Terminal("--model", "first", LISTENWELL_CACHE=without_classifier(tmp_path / "cache"))
    terminal.until("you  >")
    terminal.type("i lost my job today")
    terminal.until("multi-trs > ")
    terminal.until("you  >")
    terminal.type("/model secnod")
    assert "did you mean 'second'?" in terminal.until("you  >")
    terminal.type("/model")
    assert "*  first" in terminal.until("you  >")
    terminal.type("/model second")
    assert "meed2 replies from now on" in terminal.until("you  >")
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
        assert "That sounds " in terminal.until(SAID)
        terminal.until("you  >")
        terminal.type("they closed the office")
        assert "no reply, your message was not sent: " in terminal.until("[too]")
        terminal.until("you  >")
        terminal.type("it hurts")
        assert SAID not in terminal.until("heard:"), "the same sentence is not said twice"
        terminal.until("you  >")
        terminal.type("/quit")
        terminal.until("Take care.")
        assert terminal.close() == 0
        said = [message["content"] for message in protocol.bodies[-1]["messages"][1:]]
        assert said == ["i lost my job today", SAID, "it hurts"]  # an unanswered message does not count as said


class Waiting:
    """A system that replies once the test has opened and closed a named pipe."""

    name = "waiting"

    def __init__(self, gate: Path) -> None:
        self.gate = gate

    def reply(self, talk: list[str], controls: Controls | None = None) -> Reply:
        self.gate.read_text()
        return Reply(f"read {talk[-1]!r} ’…", emotion="sad", system=self.name)


def waiting_terminal(folder: Path, **settings: str) -> tuple[Terminal, Path]:
    gate = folder / "gate"
    os.mkfifo(gate)

    def wait() -> None:
        loading.load = lambda name, **_: Waiting(gate)
        cli.main(["chat", "--model", "waiting"])

    return Terminal(function=wait, **{"TERM": "xterm", **settings}), gate


def leave(terminal: Terminal) -> None:
    terminal.type("\x04", end="")
    terminal.until("Take care.")
    assert terminal.close() == 0


@on_terminals
def test_pasted_lines_are_one_message(tmp_path: Path):
    terminal, gate = waiting_terminal(tmp_path)
    terminal.until("you  >")
    terminal.type("\x1b[200~one\rtwo\r\rthree\x1b[201~")
    gate.open("w").close()
    terminal.until(r"read 'one\ntwo\n\nthree'")
    terminal.until("you  >")
    leave(terminal)


@on_terminals
def test_what_is_typed_or_pasted_while_it_thinks_waits_for_the_next_prompt(tmp_path: Path):
    terminal, gate = waiting_terminal(tmp_path)
    terminal.until("you  >")
    terminal.type("hello")
    with gate.open("w"):  # it thinks
        terminal.type("and \x1b[200~then\rmore\x1b[201~", end="")
    thinking = terminal.until("read 'hello'") + terminal.until("you  >")
    assert "then" not in thinking
    assert thinking.rindex(PASTE_ON) > thinking.index(PASTE_OFF)  # the terminal marks what is pasted in the meantime
    terminal.until("more")
    terminal.type("")
    gate.open("w").close()
    terminal.until(r"read 'and then\nmore'")
    terminal.until("you  >")
    leave(terminal)


@on_terminals
def test_ctrl_c_stops_the_reply_and_not_the_program(tmp_path: Path):
    terminal, gate = waiting_terminal(tmp_path)
    terminal.until("you  >")
    terminal.type("hello")
    with gate.open("w"):  # it thinks
        terminal.type("\x03", end="")
        terminal.until("stopped; your message was not sent")
    terminal.until("you  >")
    terminal.type(UP)  # it can be sent again
    gate.open("w").close()
    terminal.until("read 'hello'")
    terminal.until("you  >")
    leave(terminal)


@on_terminals
def test_ctrl_d_while_it_thinks_leaves_once_it_has_replied(tmp_path: Path):
    terminal, gate = waiting_terminal(tmp_path)
    terminal.until("you  >")
    terminal.type("hello")
    with gate.open("w"):
        terminal.type("\x04", end="")
    terminal.until("read 'hello'")
    terminal.until("Take care.")
    assert terminal.close() == 0


@on_terminals
@pytest.mark.parametrize("kind", ["dumb", "xterm"])
def test_an_ascii_terminal_shows_plain_symbols_and_loses_no_letters(tmp_path: Path, kind: str):
    terminal, gate = waiting_terminal(tmp_path, PYTHONIOENCODING="ascii", LANG="C", LC_ALL="C", TERM=kind)
    terminal.until("you  >")
    terminal.type("café")
    gate.open("w").close()
    terminal.until("read 'cafe' '...")
    terminal.until("you  >")
    terminal.type("/why")
    terminal.until("heard: sad")
    terminal.type("/intent")
    terminal.until("neutral")
    terminal.until("you  >")
    leave(terminal)


def test_a_pipe_of_ascii_is_answered_line_by_line(tmp_path: Path):
    checkpoint.save(made_bot().checkpoint, tmp_path / "bot")
    words = [sys.executable, "-m", "listenwell.cli", "chat", "--model", str(tmp_path / "bot")]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "ascii", "LANG": "C", "LC_ALL": "C"}
    done = subprocess.run(words, input="café …\n\nagain\n".encode() + b"\xff\n", capture_output=True, env=settings)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3


def test_a_symbol_that_the_terminal_lacks_becomes_one_like_it(monkeypatch):
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, encoding="ascii"))
    make_streams_robust()
    print("heard · 50 % █ … ’é 你 \udcff", flush=True)
    assert written.getvalue().decode() == "heard - 50 % # ... 'e ? ?\n"


@pytest.fixture
def console() -> Console:
    return Console(record=True, width=100, highlight=False)


def session(conversation: Conversation, console: Console, model: str = "scripted") -> Session:
    return Session(conversation, console, load, model)


def explained(reply: Reply, *context: str, label: Label | None = None) -> str:
    console = Console(record=True, width=100, file=StringIO())
    for part in why(Exchange(context[-1], reply, label), context):
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
    reasons = explained(reply, "hello", "hi", "I lost my job", "how?", "they closed")
    lines = [" ".join(line.split()) for line in reasons.splitlines()]
    for line in ("sad 50 % ██████████", "lonely 25 % █████", "afraid 12 % ██"):
        assert line in lines
    assert "angry" not in reasons  # the three most likely
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
    reasons = explained(Reply("I see", system="written"), "hello", label=Label("sad", "machine"))
    assert "written does not name emotions" in reasons
    assert "classifier labels your message: sad" in reasons
    assert explained(Reply("I see", emotion="sad"), "hello").strip() == "heard: sad"
    unscored = Reply("one", label="wishing", candidates=(Candidate("one", 0.0), Candidate("", 0.0)), system="far")
    reasons = explained(unscored, "hello")
    assert "does: wishing" in reasons
    assert "score" not in reasons
    assert "(nothing)" in reasons


def test_why_of_a_reply_of_care_says_that_no_model_wrote_it():
    reply = SafetyWrapper(Scripted()).reply(SIGN)
    reasons = explained(reply, SIGN)
    assert "a sign of danger was detected (self-harm, direct)" in " ".join(reasons.split())
    assert "no model wrote them" in reasons
    assert "does not name emotions" not in reasons


def test_a_reply_is_shown_as_it_grows_where_it_can(console: Console):
    assert session(Conversation(Streaming()), console).say("again")
    assert "scripted > I see" in console.export_text()


def test_the_mode_says_whether_the_best_of_several_is_awaited(tmp_path: Path, monkeypatch):
    checkpoint.save(made_bot(method="beam", beams=3, candidates=2).checkpoint, tmp_path / "bot")
    streams: list[bool] = []
    monkeypatch.setattr(Conversation, "say", lambda self, text: streams.append(self.streams) or Reply("I see"))
    for mode in ((), ("--mode", "rerank"), ("--mode", "stream")):
        monkeypatch.setattr(sys, "stdin", StringIO("hello\n"))
        cli.main(["chat", "--model", str(tmp_path / "bot"), *mode])
    assert streams == [False, False, True]


def test_under_a_reply_stands_what_was_heard(console: Console):
    conversation = Conversation(Scripted(emotion="sad", emotions={"sad": 0.5}))
    assert session(conversation, console).say("hello")
    assert "heard: sad (50 %)" in console.export_text()


def test_a_reply_that_breaks_off_was_not_said(console: Console):
    with Protocol() as protocol:
        protocol.always = stream("That ", end=b"data: nonsense\n\n")
        conversation = Conversation(Endpoint("small", Server(protocol.url)))
        assert not session(conversation, console).say("hello")
    assert conversation.texts == []
    assert "your message was not sent" in console.export_text()


def test_a_reply_that_ctrl_c_stops_was_not_said(console: Console):
    class Stopped(Scripted):
        def reply(self, talk: object, controls: Controls | None = None) -> Reply:
            raise KeyboardInterrupt

    conversation = Conversation(Stopped())
    assert not session(conversation, console).say("hello")
    assert conversation.texts == []
    assert "stopped; your message was not sent" in console.export_text()


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where conversations are saved by default; the program is started from elsewhere."""
    (tmp_path / "repository").mkdir()
    monkeypatch.chdir(tmp_path / "repository")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "listenwell" / "conversations"


def test_a_conversation_is_saved_as_markdown_in_the_user_s_folder(data_folder: Path, console: Console):
    talk = session(Conversation(Scripted()), console)
    run_command(talk, "/save")
    assert "nothing has been said yet" in console.export_text()
    talk.conversation.say("hello [you]")
    for command in ("/save", "/save", "/save mine", "/save notes.md", "/save ./here.md"):
        run_command(talk, command)
    saved = console.export_text(styles=False)
    assert not list(Path().glob("chat*"))
    assert Path("here.md").is_file()
    first, second, *named = sorted(data_folder.iterdir(), key=lambda path: path.stem)
    assert [first.stem + "-2", "mine.md", "notes.md"] == [second.stem, *(path.name for path in named)]
    for path in (first, second, *named, Path("here.md").absolute()):
        assert f"saved to {path}" in saved.replace("\n", "")
        assert r"> hello \[you\]" in path.read_text()
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_conversation_is_saved_as_a_dialogue_record_by_its_ending(data_folder: Path, console: Console):
    talk = session(Conversation(Scripted(label="wishing")), console)
    talk.conversation.say("hello [you]")
    for command in ("/save mine.jsonl", "/save deep/er.jsonl.gz"):
        run_command(talk, command)
    for path in (data_folder / "mine.jsonl", Path("deep/er.jsonl.gz")):
        (dialogue,) = jsonl.read(path)
        assert [turn.text for turn in dialogue.turns] == ["hello [you]", "I see"]


@pytest.mark.parametrize("name", ["mine.md", "mine.jsonl", "mine.jsonl.gz", "./mine.md"])
def test_a_file_is_never_overwritten_and_another_name_is_proposed(name: str, data_folder: Path, console: Console):
    talk = session(Conversation(Scripted()), console)
    talk.conversation.say("hello")
    run_command(talk, f"/save {name}")
    (path,) = (path for place in (data_folder, Path()) for path in place.glob("mine*"))
    before = path.read_bytes()
    talk.conversation.say("more")
    console.export_text()
    run_command(talk, f"/save {name}")
    assert path.read_bytes() == before
    said = console.export_text().replace("\n", "")
    assert "exists already" in said
    run_command(talk, "/save " + said.partition("/save ")[2].partition(" ")[0])
    assert name.replace("./mine", "mine").replace("mine", "mine-2") in console.export_text()
    run_command(talk, f"/save {path}/within.md")
    assert "not saved" in console.export_text()


def test_an_intent_is_set_suggested_and_taken_back(console: Console):
    system = Scripted()
    talk = session(Conversation(system), console)
    run_command(talk, "/intent consoling")
    assert "scripted does not take an intent" in console.export_text()
    system.takes_label = True  # type: ignore[attr-defined]
    run_command(talk, "/intent Consoling")
    talk.conversation.say("hello")
    run_command(talk, "/intent consolin")
    assert "did you mean 'consoling'?" in console.export_text()
    assert talk.conversation.intent == "consoling"  # a wrong name changes nothing
    run_command(talk, "/intent off")
    talk.conversation.say("hello")
    assert [controls for _, controls in system.calls] == [Controls(label="consoling"), None]


def test_intent_alone_lists_the_intents_and_changes_nothing(console: Console):
    system = Scripted()
    system.takes_label = True  # type: ignore[attr-defined]
    talk = session(Conversation(system, intent="wishing"), console)
    run_command(talk, "/intent")
    said = console.export_text()
    lines = [" ".join(line.split()) for line in said.splitlines()]
    for name, about in INTENT_MEANINGS.items():
        assert ("* " if name == "wishing" else "") + f"{name} {about}" in lines
    assert "joyful" in said
    assert "now: wishing" in said
    assert talk.conversation.intent == "wishing"


def test_another_system_hears_the_whole_conversation_and_a_wrong_name_changes_nothing(console: Console):
    first, second = Scripted(), Scripted()
    second.name = "second"
    talk = session(Conversation(first), console)
    talk.load = lambda name: second if name == "second" else load(name)
    talk.conversation.say("hello")
    run_command(talk, "/model multi-tsr")
    assert "did you mean 'multi-trs'?" in console.export_text()
    run_command(talk, "/model openai:")
    assert talk.conversation.system is first
    run_command(talk, "/model second")
    talk.conversation.say("again")
    assert second.calls[0][0] == ["hello", "I see", "again"]
    assert talk.model == "second"


def test_model_alone_lists_what_can_talk_and_marks_the_present_one(console: Console):
    run_command(session(Conversation(Scripted()), console, "trs"), "/model")
    lines = [line.split() for line in console.export_text().splitlines()]
    assert ["*", "trs", "plain", "transformer"] in lines
    names = {word for line in lines for word in line[:2]}
    assert {"house", "multi-trs"} <= names
    assert not {"emotion-intent", "house-listener", "judge", "sentiment"} & names
    run_command(session(Conversation(Scripted()), console, "runs/mine"), "/model")
    assert "*  runs/mine" in console.export_text()


def test_a_classifier_is_not_talked_with(console: Console):
    first = Scripted()
    talk = session(Conversation(first), console)
    talk.load = lambda name: pytest.fail("it need not be loaded")
    run_command(talk, "/model emotion-intent")
    assert "emotion-intent is a classifier: it labels texts and does not reply" in console.export_text()
    assert talk.conversation.system is first


def test_what_another_system_cannot_be_asked_for_is_named(console: Console):
    first = Scripted()
    first.takes_label = first.takes_positivity = True  # type: ignore[attr-defined]
    talk = session(Conversation(first, intent="questioning", positivity=0.3), console)
    talk.load = lambda name: Scripted()
    run_command(talk, "/model other")
    assert "it takes no intent and no positivity and chooses itself" in console.export_text()


def test_another_reply_is_asked_for_and_an_exchange_taken_back(console: Console):
    talk = session(Conversation(SafetyWrapper(Scripted())), console)
    for command in ("/retry", "/undo"):
        run_command(talk, command)
        assert "nothing has been said yet" in console.export_text()
    talk.conversation.say("hello")
    run_command(talk, "/retry")
    assert "the system has no other reply" in console.export_text()
    talk.conversation.say(SIGN)
    run_command(talk, "/retry")
    assert "these words are fixed" in console.export_text()
    run_command(talk, "/undo")
    assert "the last one is now: hello" in console.export_text()
    run_command(talk, "/undo")
    assert "nothing is left" in console.export_text()


@pytest.mark.parametrize(("typed", "meant"), [("/rest", "/reset"), ("/int joyful", "/intent"), ("/HELPP", "/help")])
def test_a_mistyped_command_suggests_the_near_one(typed: str, meant: str, console: Console):
    run_command(session(Conversation(Scripted()), console), typed)
    assert f"unknown command {typed.split()[0]}; did you mean {meant}?" in console.export_text()


def test_a_command_of_the_table_is_run_and_listed(console: Console, monkeypatch):
    added = Command("/hello", "[NAME]", "says hello", lambda session, name: session.note(f"hello {name}"))
    monkeypatch.setitem(COMMANDS, added.name, added)
    talk = session(Conversation(Scripted()), console)
    run_command(talk, "/help")
    said = console.export_text()
    for command in COMMANDS.values():
        assert f"{command.name} {command.argument}".strip() in said
        assert command.about in said
    run_command(talk, "/Hello you")
    assert "hello you" in console.export_text()


def test_commands_and_what_stands_after_them_are_completed():
    completer = CommandCompleter({command.name: command.choices for command in COMMANDS.values()})

    def completed(typed: str) -> list[str]:
        return [actual.text for actual in completer.get_completions(Document(typed), CompleteEvent())]

    assert completed("/re") == ["/retry", "/reset"]
    assert completed("/intent con") == ["confident", "content", "consoling"]
    assert completed("/model ") == [*talking()]
    assert completed("/why ") == completed("I re") == []


def test_a_long_history_is_cut_and_a_file_for_all_becomes_the_user_s_own(tmp_path: Path):
    path = tmp_path / "listenwell" / "history"
    path.parent.mkdir()
    path.write_text("".join(f"line {number}\n" for number in range(2 * history.MAX_MESSAGES + 1)))
    path.chmod(0o644)
    kept = history.History(path)
    assert len(path.read_text().splitlines()) == history.MAX_MESSAGES
    kept.add("not for later", keep=False)
    kept.add("the last")
    assert path.read_text().splitlines()[-2:] == [f"line {2 * history.MAX_MESSAGES}", "the last"]
    assert path.stat().st_mode & 0o777 == 0o600
    history.History(tmp_path).add("goes nowhere")  # a folder is in the way: no error
    history.History(None).add("goes nowhere")


def test_a_message_of_several_lines_comes_back_as_it_was(tmp_path: Path):
    first = history.History(tmp_path / "history")
    for text in ("one\ntwo", "again", "again"):
        first.add(text)
    first.append_string("typed, and not yet answered")
    assert first.get_strings() == ["one\ntwo", "again"]
    assert [*history.History(tmp_path / "history").load_history_strings()] == ["again", "one\ntwo"]


def test_the_history_file_is_in_the_state_folder_or_nowhere(monkeypatch, tmp_path: Path):
    monkeypatch.delenv("LISTENWELL_HISTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history.history_file() == tmp_path / "listenwell" / "history"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history.history_file() == tmp_path / ".local" / "state" / "listenwell" / "history"
    monkeypatch.setenv("LISTENWELL_HISTORY", "off")
    assert history.history_file() is None


def test_helplines_lists_everybody_of_the_region(console: Console, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LISTENWELL_REGION", "gb")
    run_command(session(Conversation(Scripted()), console), "/helplines")
    shown = console.export_text()
    assert "in an emergency: 999" in shown
    assert "Samaritans: 116 123" in shown
