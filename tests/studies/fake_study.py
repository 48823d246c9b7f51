"""A study in memory behind a real HTTP server that can fail on request: it cuts connections, loses acknowledgements,
returns errors, and stops and restarts on the same port."""

from __future__ import annotations

import json
import mimetypes
import socket
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, select_autoescape

PACKAGE = Path(str(files("listenwell")))
PAGES = PACKAGE / "studies"
STATIC = (PAGES / "static", PACKAGE / "web" / "static")
TEMPLATES = Environment(loader=FileSystemLoader(PAGES / "templates"), autoescape=select_autoescape())
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TOKEN = "tq3kV8sZ"

Fault = Literal["cut", "lose-ack", "error", "refuse", "partial"]
"""cut: the connection closes before anything is stored; lose-ack: after it is stored; error: HTTP 503; refuse: HTTP 422
for the first answer; partial: only the first answer is stored."""


class FakeStudy:
    """One rater's study: practice (if any), then the tasks in order."""

    def __init__(
        self, study: dict[str, Any], tasks: list[list[dict[str, Any]]], practice: dict[str, Any] | None = None
    ) -> None:
        self.study = study
        self.tasks = [{"id": "practice", "practice": True, "items": [practice]}] if practice else []
        self.tasks += [{"id": f"t{n}", "practice": False, "items": items} for n, items in enumerate(tasks, start=1)]
        self.completion_code = "WARM-4821"
        self.code_after_each_task = False
        self.closed = False
        self.answers: dict[str, dict[str, Any]] = {}
        """What is stored, by the answer's id."""
        self.deliveries: list[list[str]] = []
        """The ids of each delivery that arrived, stored or not."""
        self.faults: deque[Fault] = deque()
        """What happens to the next deliveries."""
        self.state_faults: deque[Fault] = deque()
        """What happens to the next questions for the state."""
        self.lock = threading.Lock()
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self._done: set[str] = set()

    # The server

    def start(self) -> FakeStudy:
        self._server = _Server(("127.0.0.1", self._port), self)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def stop(self) -> None:
        """Refuse connections until the next start, which uses the same port again."""
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        self._server = None

    def close(self) -> None:
        if self._server is not None:
            self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/r/{TOKEN}"

    # The study

    def values(self) -> dict[str, Any]:
        """The stored answer for each item. An item that was stored twice would be a bug of the page."""
        stored = [answer["item"] for answer in self.answers.values()]
        assert len(stored) == len(set(stored)), f"stored more than once: {stored}"
        return {answer["item"]: answer["values"] for answer in self.answers.values()}

    def state(self) -> dict[str, Any]:
        task = next((task for task in self.tasks if task["id"] not in self._done), None)
        rated = {answer["item"] for answer in self.answers.values()}
        items = [item["id"] for one in self.tasks if not one["practice"] for item in one["items"]]
        state = "done" if task is None else "practice" if task["practice"] else "rating"
        return {
            "study": self.study,
            "progress": {"done": len(rated & set(items)), "total": len(items)},
            "state": "closed" if self.closed else state,
            "task": None if self.closed or task is None else task | {"answered": self._answered(task)},
            "completion_code": self.completion_code if task is None or (self.code_after_each_task and rated) else None,
        }

    def _answered(self, task: dict[str, Any]) -> list[str]:
        rated = {answer["item"] for answer in self.answers.values()}
        return [item["id"] for item in task["items"] if item["id"] in rated]

    def store(self, answers: list[dict[str, Any]]) -> list[str]:
        for answer in answers:
            self.answers.setdefault(answer["id"], answer)
        return [answer["id"] for answer in answers]

    def finish(self, task_id: str) -> tuple[int, dict[str, Any]]:
        task = next(task for task in self.tasks if task["id"] == task_id)
        missing = len(task["items"]) - len(self._answered(task))
        if missing:
            return 409, {"detail": f"{missing} of {len(task['items'])} items have no answer yet"}
        self._done.add(task_id)
        return 200, {}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], study: FakeStudy) -> None:
        self.study = study
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that disconnects in the middle of a request is not an error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path == f"/r/{TOKEN}":
            return self._send(200, TEMPLATES.get_template("rate.html").render().encode(), "text/html; charset=utf-8")
        if path.startswith("/r/"):
            page = TEMPLATES.get_template("message.html").render(message=path.removeprefix("/r/"), language="en")
            return self._send(200, page.encode(), "text/html; charset=utf-8")
        if path.startswith("/static/"):
            return self._static(path.removeprefix("/static/"))
        if path == f"/api/{TOKEN}":
            return self._state()
        return self._json(404, {"detail": "unknown link"})

    def _static(self, name: str) -> None:
        for folder in STATIC:
            if (folder / name).is_file():
                return self._send(200, (folder / name).read_bytes(), mimetypes.guess_type(name)[0] or "text/plain")
        return self._json(404, {"detail": f"no file {name}"})

    def _state(self) -> None:
        study = self.server.study
        with study.lock:
            fault = study.state_faults.popleft() if study.state_faults else None
            state = study.state()
        if fault == "cut":
            return self._cut()
        return self._json(503, {"detail": "restarting"}) if fault == "error" else self._json(200, state)

    def do_POST(self) -> None:
        study = self.server.study
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/done"):
            with study.lock:
                return self._json(*study.finish(self.path.split("/")[-2]))
        answers = body["answers"]
        with study.lock:
            fault = study.faults.popleft() if study.faults else None
            study.deliveries.append([answer["id"] for answer in answers])
            if fault in (None, "lose-ack"):
                stored = study.store(answers)
            elif fault == "partial":
                stored = study.store(answers[:1])
            elif fault == "refuse":
                stored = study.store(answers[1:])
        if fault in ("cut", "lose-ack"):
            return self._cut()
        if fault == "error":
            return self._json(503, {"detail": "restarting"})
        if fault == "refuse":
            why = "one of the values is out of range"
            return self._json(422, {"detail": why, "stored": stored, "refused": {answers[0]["id"]: why}})
        return self._json(200, {"stored": stored})

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", CSP)
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)
