"""A real server on a free port of this machine, and systems that a test controls."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from listenwell.data.dialogue import Dialogue
from listenwell.decoding import Decoding
from listenwell.serving.app import create_app
from listenwell.serving.metrics import Metrics
from listenwell.serving.served import serve_system
from listenwell.serving.settings import Settings
from listenwell.systems.reply import Reply
from listenwell.systems.safety import SafetyWrapper
from listenwell.systems.together import Job

KEY = "lw-a-key-for-tests-0123456789"
PATIENCE = 60.0
"""Seconds after which a test that waits for something gives up."""


class Echo:
    """Repeats the last message, one word per step. With a gate, each step waits until the test lets it go on."""

    name = "echo"
    languages = ("en", "zh")

    def __init__(self, gate: threading.Semaphore | None = None) -> None:
        self.gate = gate
        self.decoding = Decoding(max_length=64)
        self.largest = 0
        self.broken = ""
        """A word at which it fails."""

    def reply(self, talk: Any, controls: Any = None) -> Reply:
        return self._reply(Dialogue.from_talk(talk).turns[-1].text)

    def _reply(self, said: str) -> Reply:
        return Reply(f"You said: {said}", emotion="sad", emotions={"sad": 0.75, "lonely": 0.25}, system=self.name)

    def write_together(self, jobs: Sequence[Job]) -> Iterator[None]:
        live = list(jobs)
        self.largest = max(self.largest, len(live))
        for step in range(1_000):
            if self.gate is not None:
                self.gate.acquire()
            for job in list(live):
                job.steps += 1
                words = self._reply(job.context[-1].text).text.split(" ")
                if self.broken and self.broken in words:
                    raise RuntimeError("broken, as the test wanted")
                length = min(len(words), job.decoding.max_length)
                job.text = " ".join(words[: min(step + 1, length)])
                if step + 1 >= length or job.stops_at(job.text):
                    job.finished = length == len(words)
                    job.reply = self._reply(job.context[-1].text)
                    job.reply = Reply(job.text, job.reply.emotion, job.reply.emotions, system=self.name)
                if job.reply is not None or job.dropped:
                    live.remove(job)
            yield
            if not live:
                return


@dataclass
class Running:
    url: str
    app: Any
    server: uvicorn.Server
    client: httpx2.Client

    @property
    def metrics(self) -> Metrics:
        return self.app.state.metrics

    def engine(self, name: str = "echo") -> Any:
        return self.app.state.served[name].engine

    def count(self, name: str, *labels: str) -> float:
        return getattr(self.metrics, name).labels(*labels)._value.get()

    def chat(self, text: str, **more: Any) -> httpx2.Response:
        return self.client.post("/v1/chat/completions", json=body(text, **more))


def body(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "echo", "messages": [{"role": "user", "content": text}], **more}


def bind() -> socket.socket:
    """A socket that is already listening: a client that connects before the server accepts just waits."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen(2048)
    return bound


@contextmanager
def running(*systems: Any, headers: dict[str, str] | None = None, **settings: Any) -> Iterator[Running]:
    """A server for these systems, each behind care."""
    names = tuple(system.name for system in systems)
    chosen = Settings(models=names, **settings)
    metrics = Metrics()
    served = {system.name: serve_system(system.name, SafetyWrapper(system), chosen, metrics) for system in systems}
    app = create_app(chosen, served, metrics)
    bound = bind()
    url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        with httpx2.Client(base_url=url, timeout=PATIENCE, headers=headers or {}) as client:
            yield Running(url, app, server, client)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        bound.close()


def until(holds: Callable[[], Any]) -> Any:
    """Wait for something that another thread is about to do."""
    ends = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.005)
    return found


def key_file(folder: Path, *lines: str) -> str:
    path = folder / "keys"
    path.write_text("\n".join(lines or [KEY]) + "\n", encoding="utf-8")
    path.chmod(0o600)
    return str(path)
