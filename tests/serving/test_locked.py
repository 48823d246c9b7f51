"""Locked by default: keys on every route, host and origin checks, no CORS, and no conversation text in the logs."""

from __future__ import annotations

import logging
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi")

from serving_helpers import KEY, PATIENCE, Echo, body, key_file, running

CHAT = "/v1/chat/completions"
OPEN = {"/", "/health", "/static"}


@pytest.fixture
def locked(tmp_path):
    with running(Echo(), api_key_file=key_file(tmp_path), rate=60, burst=3) as server:
        yield server


def test_every_route_but_the_page_and_health_wants_a_key(locked):
    walked = set()
    for route in locked.app.routes:
        for method in getattr(route, "methods", None) or {"GET"}:
            path = route.path.replace("{name:path}", "echo")
            wanted = 401 if path not in OPEN or method not in ("GET", "HEAD") else 200
            address = f"{path}/base.css" if path == "/static" else path
            answer = locked.client.request(method, address)
            assert answer.status_code == wanted, (method, address)
            walked.add(path)
    assert {
        CHAT,
        "/v1/models",
        "/v1/understand",
        "/v1/resources",
        "/metrics",
        "/health",
        "/",
        "/openapi.json",
    } <= walked
    for path in ("/nothing", "/v1/models/../metrics", "//metrics", "/health/", "/static/../metrics", "/Health"):
        assert raw_status(locked.url, path) in (401, 404), path
    assert locked.client.post("/health").status_code == 401


def raw_status(url: str, path: str) -> int:
    """The status for a path sent as is, since clients normalize paths."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    connection.request("GET", path)
    with closing(connection):
        return connection.getresponse().status


def test_a_key_opens_it_and_is_counted(locked):
    locked.client.headers["authorization"] = f"Bearer {KEY}"
    assert locked.client.get("/v1/models").status_code == 200
    answers = [locked.chat("hello") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert int(answers[2].headers["retry-after"]) >= 1
    assert answers[2].json()["error"]["code"] == "rate_limit_exceeded"


def test_a_sign_of_a_crisis_is_answered_though_the_bucket_is_empty(locked):
    locked.client.headers["authorization"] = f"Bearer {KEY}"
    while locked.chat("hello").status_code == 200:
        pass
    assert locked.chat("I want to die").json()["listenwell"]["care"]["kind"] == "card"


def test_other_hosts_and_origins_are_refused_and_there_is_no_cors():
    with running(Echo()) as server:
        assert server.client.get("/health", headers={"host": "evil.example"}).status_code == 403
        foreign = {"origin": "https://evil.example"}
        assert server.client.post(CHAT, json=body("hello"), headers=foreign).status_code == 403
        own = {"origin": server.url}
        answer = server.client.post(CHAT, json=body("hello"), headers=own)
        assert answer.status_code == 200
        assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_page_elsewhere_may_be_named():
    page = {"origin": "https://app.example.org"}
    with running(Echo(), allow_origins=("https://app.example.org",)) as server:
        ask = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
        before = server.client.options(CHAT, headers={**page, **ask})
        assert before.headers["access-control-allow-origin"] == "https://app.example.org"
        answer = server.client.post(CHAT, json=body("hello"), headers=page)
        assert answer.headers["access-control-allow-origin"] == "https://app.example.org"
        assert "access-control-allow-credentials" not in answer.headers
        assert server.client.get("/health", headers={"origin": "https://evil.example"}).status_code == 403


def test_the_page_and_its_files_come_with_a_strict_policy():
    with running(Echo()) as server:
        page = server.client.get("/")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert "'unsafe" not in page.headers["content-security-policy"]
        shared = server.client.get("/static/base.css")
        assert shared.headers["content-type"].startswith("text/css")
        assert server.client.get("/static/app.js").headers["content-type"].startswith("text/javascript")
        again = server.client.get("/static/base.css", headers={"if-none-match": shared.headers["etag"]})
        assert again.status_code == 304
        for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py"):
            assert server.client.get(path).status_code == 404


def test_nothing_of_a_conversation_is_logged(caplog, capfd):
    echo = Echo()
    echo.broken = "pomegranate"
    with caplog.at_level(logging.DEBUG), running(echo) as server:
        assert server.chat("pomegranate").status_code == 500
        assert server.chat("apricot").status_code == 200
        assert server.chat("apricot " * 10_000).status_code == 400
        assert server.client.post(CHAT, content=b"{apricot", headers={"content-type": "application/json"}).is_error
        page = server.client.get("/metrics").text
    said = caplog.text + "".join(capfd.readouterr()) + page
    assert "apricot" not in said
    assert "pomegranate" not in said
