"""deploy/nginx.conf in front of a real server: streams stay streams, and disconnecting clients are noticed.

Needs nginx and openssl (`apt-get install nginx-light openssl`); skipped with this reason if they are missing.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

import httpx2
from serving_helpers import KEY, PATIENCE, Echo, body, key_file, running, until

CONFIGURATION = Path(__file__).parents[2] / "deploy" / "nginx.conf"
NAME = "chat.example.org"
CHAT = "/v1/chat/completions"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.skipif(
    NGINX is None or shutil.which("openssl") is None,
    reason="nginx or openssl is missing: apt-get install nginx-light openssl",
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def configured(folder: Path, server_url: str, tls: int, plain: int) -> Path:
    """The shipped configuration, except for ports, the certificate, and folders that only root may write to."""
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    words += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(words, check=True, capture_output=True)
    site = CONFIGURATION.read_text(encoding="utf-8")
    for found, put in {
        r"/etc/letsencrypt/live/\S+/fullchain.pem": str(folder / "cert.pem"),
        r"/etc/letsencrypt/live/\S+/privkey.pem": str(folder / "key.pem"),
        r"listen 443": f"listen 127.0.0.1:{tls}",
        r"listen 80;": f"listen 127.0.0.1:{plain};",
        r"127\.0\.0\.1:8000": server_url.removeprefix("http://"),
    }.items():
        site, count = re.subn(found, put, site)
        assert count == 1, found
    (folder / "site.conf").write_text(site, encoding="utf-8")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    main = folder / "nginx.conf"
    main.write_text(
        f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; events {{}} "
        f"http {{ {places} include {folder}/site.conf; }}",
        encoding="utf-8",
    )
    return main


@contextmanager
def proxied(folder: Path, server_url: str) -> Iterator[httpx2.Client]:
    """A client that connects to a server through nginx, by its public host name."""
    tls, plain = free_port(), free_port()
    main = configured(folder, server_url, tls, plain)
    with subprocess.Popen([str(NGINX), "-c", str(main), "-e", str(folder / "error.log")]) as process:
        try:
            until(lambda: process.poll() is not None or _listens(tls))
            assert process.poll() is None, (folder / "error.log").read_text(encoding="utf-8")
            headers = {"host": NAME, "authorization": f"Bearer {KEY}"}
            client = httpx2.Client(base_url=f"https://127.0.0.1:{tls}", headers=headers, verify=False, timeout=PATIENCE)
            with client:
                yield client
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def behind_proxy(tmp_path):
    gate = threading.Semaphore(0)
    options = {"api_key_file": key_file(tmp_path), "allowed_hosts": (NAME,), "rate": 600, "burst": 600}
    with running(Echo(gate), **options) as server, proxied(tmp_path, server.url) as client:
        yield server, client, gate
        gate.release(10_000)


def first_piece(lines: Iterator[str]) -> str:
    return next(line for line in lines if '"content":"You' in line)


def test_a_stream_comes_through_the_proxy_as_it_grows(behind_proxy):
    server, client, gate = behind_proxy
    with client.stream("POST", CHAT, json=body("one two three four", stream=True)) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        gate.release(3)  # the rest is not written before the first piece has arrived
        assert first_piece(lines)
        assert server.engine().held == 1
        gate.release(100)
        assert [line for line in lines if line][-1] == "data: [DONE]"


def test_who_leaves_the_proxy_frees_the_work_behind_it(behind_proxy):
    server, client, gate = behind_proxy
    with client.stream("POST", CHAT, json=body("word " * 60, stream=True, max_tokens=60)) as answer:
        gate.release(4)
        assert first_piece(answer.iter_lines())
    until(lambda: server.count("cancelled", "echo"))
    gate.release(10_000)
    until(lambda: server.engine().held == 0)
    assert server.count("late_steps", "echo") <= 2
    assert server.count("replies", "echo") == 0


def test_the_proxy_passes_on_names_and_keys_and_keeps_the_counters_to_itself(behind_proxy):
    _, client, gate = behind_proxy
    gate.release(10_000)
    assert client.get("/").status_code == 200
    assert client.get("/health").json()["status"] == "ok"
    assert client.post(CHAT, json=body("hello")).status_code == 200
    assert client.post(CHAT, json=body("hello"), headers={"origin": f"https://{NAME}"}).status_code == 200
    assert client.post(CHAT, json=body("hello"), headers={"origin": "https://evil.example"}).status_code == 403
    assert client.post(CHAT, json=body("hello"), headers={"authorization": "Bearer no"}).status_code == 401
    assert client.get("/metrics").status_code == 403
    assert client.post(CHAT, content=b"x" * 300_000).status_code == 413
    assert "strict-transport-security" in client.get("/health").headers
