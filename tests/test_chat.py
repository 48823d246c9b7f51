"""The conversation in a terminal, with a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from listenwell import checkpoint
from test_system import made_bot


class Terminal:
    """`listenwell chat` in a pseudo-terminal: type, and read what shows."""

    def __init__(self, *words: str) -> None:
        self.here, there = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "listenwell.cli", "chat", *words],
            stdin=there, stdout=there, stderr=there, close_fds=True,
            env={**os.environ, "TERM": "dumb", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        os.close(there)
        self.shown = ""

    def until(self, text: str) -> str:
        """All that shows up to and with this text, since the last call."""
        limit = time.monotonic() + 60
        while text not in self.shown:
            ready, _, _ = select.select([self.here], [], [], 1)
            if ready:
                self.shown += os.read(self.here, 4096).decode(errors="replace")
            if time.monotonic() > limit:
                raise AssertionError(f"{text!r} did not show; shown: {self.shown!r}")
        before, _, self.shown = self.shown.partition(text)
        return before + text

    def type(self, text: str) -> None:
        os.write(self.here, (text + "\n").encode())

    def close(self) -> int:
        code = self.process.wait(timeout=60)
        os.close(self.here)
        return code


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
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


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
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
