"""Raters who send answers to a real server that is killed again and again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import select
from study_raters import some_values

from listenwell.studies.rating import Ratings
from listenwell.studies.schema import answers, assignments
from listenwell.studies.store import Store, Study

PATIENCE = 120
"""Seconds after which a campaign that does not get on is given up."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`listenwell study serve` in a separate process, always on the same port."""

    def __init__(self, store: str, study: str) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "listenwell", "study", "serve", study, "--store", store]
        self.command = [*command, "--port", str(self.port)]
        self.process: subprocess.Popen[str] | None = None
        self.starts = 0

    def start(self) -> None:
        source = Path(__file__).resolve().parents[2] / "src"
        environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self.starts += 1
        said = []
        for line in self.process.stdout:  # type: ignore[union-attr]
            said.append(line)
            if line.startswith("report"):
                return
        raise RuntimeError("the server did not start: " + "".join(said))

    def kill(self) -> None:
        """Like a power cut: no chance to clean up."""
        self.process.send_signal(signal.SIGKILL)  # type: ignore[union-attr]
        self.process.wait()  # type: ignore[union-attr]
        self.process.stdout.close()  # type: ignore[union-attr]


class Campaign:
    """Every rater sends `each` answers, retrying until acknowledged; some connections are cut on purpose."""

    def __init__(self, store: Store, study: Study, raters: int, each: int) -> None:
        self.store, self.study, self.each = store, study, each
        self.ratings = Ratings(store, study)
        self.raters = [self.ratings.join(f"rater-{number}") for number in range(raters)]
        self.server = Server(store.url, study.name)
        self.acknowledged: dict[str, str] = {}
        """Client ids, with the item of each."""
        self.problems: list[str] = []
        self._progress = threading.Condition()

    def run(self, kills: int) -> None:
        total = self.each * len(self.raters)
        self.server.start()
        threads = [threading.Thread(target=self._guarded, args=(rater.token, n)) for n, rater in enumerate(self.raters)]
        for thread in threads:
            thread.start()
        for number in range(kills):
            self._wait_for(total * (number + 1) // (kills + 1))
            self.server.kill()
            self.server.start()
        for thread in threads:
            thread.join(PATIENCE * 10)
        self.server.kill()

    def _wait_for(self, number: int) -> None:
        with self._progress:
            done = self._progress.wait_for(
                lambda: len(self.acknowledged) >= number or self.problems, timeout=PATIENCE * 10
            )
            assert done, f"{len(self.acknowledged)} of {number} answers acknowledged in time"

    def _guarded(self, token: str, number: int) -> None:
        try:
            self._rate(token, number)
        except Exception as problem:
            with self._progress:
                self.problems.append(f"rater {number}: {problem!r}")
                self._progress.notify_all()

    def _rate(self, token: str, number: int) -> None:
        base = f"http://127.0.0.1:{self.server.port}/api/{token}"
        with httpx2.Client(timeout=20) as client:
            sent = 0
            while sent < self.each:
                state = self._until_answered(lambda: client.get(base))
                for item in state["task"]["items"]:
                    letters = [reply["key"] for reply in item["replies"]]
                    answer = {"id": str(uuid.uuid4()), "item": item["id"], "seconds": 1.0}
                    answer["values"] = some_values(self.ratings, letters, sent)
                    body = {"answers": [answer]}
                    if (sent + number) % 7 == 0:
                        self._send_and_hang_up(token, body)
                    stored = self._until_answered(lambda body=body: client.post(f"{base}/answers", json=body))
                    assert stored == {"stored": [answer["id"]]}, stored
                    self._note(answer["id"], item["id"])
                    sent += 1
                self._until_answered(lambda task=state["task"]["id"]: client.post(f"{base}/task/{task}/done"))

    def _until_answered(self, request: Any) -> dict[str, Any]:
        """Retry with the same answer under the same id while the server is down or going down."""
        pause = threading.Event()
        for _ in range(PATIENCE * 20):
            try:
                response = request()
            except httpx2.TransportError:
                pause.wait(0.05)
                continue
            if response.status_code >= 500:
                pause.wait(0.05)
                continue
            assert response.status_code == 200, response.text
            return response.json()
        raise RuntimeError("the server did not come back")

    def _send_and_hang_up(self, token: str, body: dict[str, Any]) -> None:
        """Send the answer and do not wait for the response."""
        content = json.dumps(body).encode()
        head = (
            f"POST /api/{token}/answers HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        try:
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=5) as connection:
                connection.sendall(head.encode() + content)
        except OSError:
            return

    def _note(self, client_id: str, item: str) -> None:
        with self._progress:
            self.acknowledged[client_id] = item
            self._progress.notify_all()

    def check(self) -> None:
        """Every acknowledged answer is stored exactly once, nothing else is stored, and no slot has two raters."""
        assert not self.problems, self.problems
        with self.store.read() as connection:
            stored = connection.execute(select(answers.c.client_id, answers.c.item_id)).all()
            places = (
                connection.execute(select(assignments.c.slot_id).where(assignments.c.state == "done")).scalars().all()
            )
        assert len(stored) == len(self.raters) * self.each
        assert {row.client_id: row.item_id for row in stored} == self.acknowledged
        assert len(set(places)) == len(places)
