"""Starting and stopping the server as a user does, with real processes and signals."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

pytest.importorskip("fastapi")

from serving_helpers import Echo, body, running, until

from listenwell import checkpoint, cli
from listenwell.checkpoint import Checkpoint
from listenwell.data.batching import EncodingConfig
from listenwell.decoding import Decoding

PATH = "/v1/chat/completions"
START = 120.0
"""Seconds that a process has to start: all of torch is imported, on a machine that may be busy."""


@pytest.fixture(scope="module")
def tiny_system(tmp_path_factory, tiny_model, tokenizer) -> Path:
    """A system with slow replies: each takes at least 200 tokens."""
    folder = tmp_path_factory.mktemp("systems") / "slow"
    decoding = Decoding(method="sample", min_length=200, max_length=250)
    checkpoint.save(Checkpoint("multi-trs", tiny_model(), tokenizer, EncodingConfig(), decoding), folder)
    return folder


@contextmanager
def serving(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`listenwell serve` in a separate process, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "listenwell.cli", "serve", *words, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    try:
        url = next(found[1] for line in process.stderr if (found := re.search(r"for (http://\S+)/ ", line)))
        yield process, url
    finally:
        process.kill()
        process.wait(START)
        process.stderr.close()


def slow(**more) -> dict:
    return {"messages": [{"role": "user", "content": "it rained"}], "stream": True, "n": 8, "max_tokens": 250, **more}


def test_sigterm_lets_begun_replies_end(tiny_system):
    with serving(str(tiny_system)) as (process, url):
        with httpx2.stream("POST", f"{url}{PATH}", json=slow(), timeout=START) as answer:
            lines = answer.iter_lines()
            assert "chat.completion.chunk" in next(lines)
            process.send_signal(signal.SIGTERM)
            assert [line for line in lines if line][-1] == "data: [DONE]"
        assert process.wait(START) in (0, -signal.SIGTERM)
        with pytest.raises(httpx2.TransportError):
            httpx2.get(f"{url}/health")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="child processes are looked up in /proc")
def test_a_worker_that_dies_is_replaced_and_its_clients_are_told(tiny_system):
    with serving(str(tiny_system), "--workers", "2") as (process, url):
        first = until(lambda: len(found := workers(process)) == 2 and found)
        with httpx2.Client(base_url=url, timeout=START) as client:
            pid = client.get("/health").json()["pid"]  # the next request goes to the same worker
            with client.stream("POST", PATH, json=slow()) as answer:
                lines = answer.iter_lines()
                assert "chat.completion.chunk" in next(lines)
                os.kill(pid, signal.SIGKILL)
                assert_cut(lines)
        (other,) = first - {pid}
        until(lambda: workers(process) - first)
        os.kill(other, signal.SIGKILL)
        assert httpx2.get(f"{url}/health", timeout=START).json()["pid"] not in first
        assert "listenwell_requests_total" in httpx2.get(f"{url}/metrics", timeout=START).text
        process.send_signal(signal.SIGTERM)
        assert process.wait(START) == 0


def workers(process: subprocess.Popen[str]) -> set[int]:
    """The ids of the worker processes."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    commands = {int(child): Path(f"/proc/{child}/cmdline") for child in children}
    return {child for child, command in commands.items() if command.is_file() and b"spawn_main" in command.read_bytes()}


def assert_cut(lines: Iterator[str]) -> None:
    """The rest of a stream ends with an error, not as if it were complete."""
    with pytest.raises(httpx2.TransportError):
        list(lines)


def test_a_server_that_stops_ends_what_was_begun_and_takes_nothing_new():
    gate = threading.Semaphore(0)
    with running(Echo(gate)) as server:
        with server.client.stream("POST", PATH, json=body("one two three", stream=True)) as answer:
            until(lambda: server.engine().held == 1)
            server.server.should_exit = True
            gate.release(1000)
            assert "[DONE]" in answer.read().decode()
        until(lambda: not server.engine()._threads[0].is_alive())


def test_what_outlives_the_grace_is_given_up():
    gate = threading.Semaphore(0)
    with running(Echo(gate)) as server:
        server.server.config.timeout_graceful_shutdown = 0
        with server.client.stream("POST", PATH, json=body("one two three", stream=True)) as answer:
            until(lambda: server.engine().held == 1)
            server.server.should_exit = True
            until(lambda: server.count("cancelled", "echo") == 1)
            gate.release(1000)
            assert_cut(answer.iter_lines())


# Errors are reported at startup


def problem(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", *words])
    return f"{ended.value.code}{capsys.readouterr().err}"


def test_another_address_without_a_key_is_refused(capsys):
    for host in ("0.0.0.0", "192.168.7.7", "::", "example.org"):
        said = problem(capsys, "multi-trs", "--host", host)
        assert f"{host} can be reached from other machines" in said
        assert "--api-key-file" in said


def test_a_missing_key_file_says_how_to_make_one(capsys, tmp_path):
    said = problem(capsys, "multi-trs", "--api-key-file", str(tmp_path / "none"))
    assert "cannot be read: No such file" in said
    assert "secrets.token_urlsafe" in said


def test_a_port_in_use_is_said_with_another(capsys, tiny_system):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = problem(capsys, str(tiny_system), "--port", str(port))
    assert f"127.0.0.1:{port} is in use by another program" in said
    assert f"--port {port + 1}" in said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["hosue"], "did you mean 'house'"),
        (["multi-trs", "--port", "70000"], "--port is 70000, expected a number from 0 to 65535"),
        (["multi-trs", "--host", "300.1.1.1", "--api-key-file", "{keys}"], "cannot be listened at"),
        (["multi-trs", "--workers", "0"], "--workers is 0"),
        (["multi-trs", "--room", "0"], "--room is 0, expected 1 or more"),
        (["multi-trs", "--rate", "0"], "rate is 0"),
        (["multi-trs", "--limits.turns", "0"], "limits.turns is 0"),
        ([","], "no model"),
    ],
)
def test_what_cannot_be_served_is_said_at_the_start(capsys, tmp_path, words, expected):
    (tmp_path / "keys").write_text("lw-0123456789abcdef\n", encoding="utf-8")
    assert expected in problem(capsys, *(word.format(keys=tmp_path / "keys") for word in words))


def test_settings_travel_to_workers_as_they_are():
    from listenwell.serving.settings import Limits, Settings

    settings = Settings(("house", "mime"), api_key_file="keys", limits=Limits(turns=3), allowed_hosts=("a.example",))
    assert Settings.from_json(settings.to_json()) == settings
    assert "lw-" not in json.dumps(settings.to_json())
