"""The middleware of every web application: host, origin, keys, rates, bodies, headers."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

pytest.importorskip("starlette")

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from listenwell.web.body import BodyLimit
from listenwell.web.headers import CONTENT_SECURITY_POLICY, SecurityHeaders
from listenwell.web.keys import KeyCheck, Keys, readable_by_others
from listenwell.web.origin import HostAndOrigin
from listenwell.web.rates import Buckets, RateLimit
from listenwell.web.refusals import refuse_as_openai, refuse_plainly

KEY, OTHER = "lw-0123456789abcdef", "lw-fedcba9876543210"


async def _length(request: Request) -> JSONResponse:
    return JSONResponse({"length": len(await request.body()), "key": request.scope.get("key")})


def app() -> Starlette:
    async def hello(request: Request) -> PlainTextResponse:
        return PlainTextResponse("hello")

    return Starlette(routes=[Route("/", hello), Route("/echo", _length, methods=["GET", "POST"])])


def request(application, method: str = "GET", path: str = "/", **options) -> httpx2.Response:
    async def send() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=application)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            return await client.request(method, path, **options)

    return asyncio.run(send())


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("localhost", True),
        ("localhost:8000", True),
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("192.168.1.5", True),
        ("chat.example.org", True),
        ("CHAT.example.org:443", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("chat.example.org.evil", False),
        ("", False),
        ("[::1", True),
        (":8000", False),
    ],
)
def test_a_server_answers_to_its_names_alone(host, known):
    check = HostAndOrigin(app(), refuse_plainly, hosts=["chat.example.org"])
    refusal = check.check(Headers({"host": host}))
    assert (refusal is None) == known
    if refusal is not None:
        assert refusal.status == 403


def test_two_hosts_are_none():
    check = HostAndOrigin(app(), refuse_plainly)
    twice = Headers(raw=[(b"host", b"localhost"), (b"host", b"localhost")])
    assert check.check(twice) is not None


@pytest.mark.parametrize(
    ("origin", "own"),
    [
        (None, True),
        ("http://127.0.0.1:8000", True),
        ("https://127.0.0.1:8000", True),
        ("https://app.example.org", True),
        ("null", False),
        ("", False),
        ("http://127.0.0.1:9000", False),
        ("http://localhost:8000", False),
        ("https://evil.example", False),
        ("file://127.0.0.1:8000", False),
        ("https://app.example.org.evil", False),
    ],
)
def test_only_its_own_page_may_use_it_from_a_browser(origin, own):
    guarded = HostAndOrigin(app(), refuse_as_openai, origins=["https://app.example.org/"])
    headers = {} if origin is None else {"origin": origin}
    answer = request(guarded, "POST" if origin else "GET", "/echo", headers=headers)
    assert answer.status_code == (200 if own else 403)
    if not own:
        assert answer.json()["error"]["code"] == "foreign_origin"


def test_a_key_is_asked_for_and_its_name_is_known_behind_it():
    keys = Keys.of([f"kitchen {KEY}  # the page", "", "# a comment", OTHER])
    guarded = KeyCheck(app(), refuse_as_openai, keys, is_open=lambda scope: scope["path"] == "/")
    assert request(guarded).status_code == 200
    without = request(guarded, path="/echo")
    assert without.status_code == 401
    assert without.json()["error"]["code"] == "invalid_api_key"
    assert without.headers["www-authenticate"] == "Bearer"
    for given in (f"Bearer {KEY}x", f"Basic {KEY}", "Bearer", f"Bearer{KEY}", "Bearer \xff\xfe"):
        assert request(guarded, path="/echo", headers={"authorization": given.encode("latin-1")}).status_code == 401
    answer = request(guarded, path="/echo", headers={"authorization": f"bearer  {KEY}"})
    assert answer.json()["key"] == "kitchen"
    assert request(guarded, path="/echo", headers={"authorization": f"Bearer {OTHER}"}).json()["key"] == "key-2"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], "has no key"),
        (["short"], "line 1: the key has 5 characters"),
        (["", "a b c"], "line 2: expected a key.* found 3 words"),
    ],
)
def test_a_key_file_says_what_is_wrong_with_it(lines, expected):
    with pytest.raises(ValueError, match=expected):
        Keys.of(lines)


def test_a_missing_key_file_says_how_to_make_one(tmp_path):
    with pytest.raises(ValueError, match=r"cannot be read: No such file.*secrets"):
        Keys.load(tmp_path / "none")
    (tmp_path / "keys").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(ValueError, match="not UTF-8"):
        Keys.load(tmp_path / "keys")
    (tmp_path / "keys").chmod(0o644)
    assert readable_by_others(tmp_path / "keys")
    (tmp_path / "keys").chmod(0o600)
    assert not readable_by_others(tmp_path / "keys")


def test_keys_are_not_kept_in_memory_as_they_are():
    assert KEY not in repr(Keys.of([KEY]))


def test_a_bucket_empties_and_fills_again():
    now = [0.0]
    buckets = Buckets(per_minute=60, burst=2, clock=lambda: now[0])
    assert [buckets.take("a"), buckets.take("a")] == [0, 0]
    assert buckets.take("a") == pytest.approx(1)
    assert buckets.take("b") == 0
    now[0] = 0.5
    assert buckets.take("a") == pytest.approx(0.5)
    now[0] = 1.0
    assert buckets.take("a") == 0
    now[0] = 1_000.0
    assert [buckets.take("a"), buckets.take("a")] == [0, 0]
    assert buckets.take("a") > 0


def test_a_key_over_its_rate_is_told_when_to_come_back_and_others_are_not():
    keys = Keys.of([f"one {KEY}", f"two {OTHER}"])
    limited = RateLimit(app(), refuse_as_openai, Buckets(60, 2, clock=lambda: 0.0), skipped=lambda path: path == "/")
    guarded = KeyCheck(limited, refuse_as_openai, keys, is_open=lambda scope: False)
    one, two = ({"authorization": f"Bearer {key}"} for key in (KEY, OTHER))
    statuses = [request(guarded, path="/echo", headers=one) for _ in range(3)]
    assert [answer.status_code for answer in statuses] == [200, 200, 429]
    assert statuses[2].headers["retry-after"] == "1"
    assert statuses[2].json()["error"]["type"] == "rate_limit_error"
    assert request(guarded, path="/echo", headers=two).status_code == 200
    assert request(guarded, path="/", headers=one).status_code == 200


def test_a_body_is_read_up_to_its_limit_whether_or_not_it_says_its_length():
    limited = BodyLimit(app(), refuse_as_openai, most=100)

    async def pieces():
        for _ in range(30):
            yield b"12345"

    assert request(limited, "POST", "/echo", content=b"x" * 100).json()["length"] == 100
    for content in (b"x" * 101, pieces()):
        answer = request(limited, "POST", "/echo", content=content)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "body"
    declared = request(limited, "POST", "/echo", content=b"x", headers={"content-length": "9" * 30})
    assert declared.status_code == 400


def test_a_body_that_does_not_come_is_not_waited_for():
    limited = BodyLimit(app(), refuse_as_openai, most=100, seconds=0.01)
    sent = []

    async def call() -> None:
        scope = {"type": "http", "method": "POST", "path": "/echo", "headers": [], "query_string": b""}

        async def receive():
            await asyncio.Event().wait()

        async def send(message) -> None:
            sent.append(message)

        await limited(scope, receive, send)

    asyncio.run(call())
    assert sent[0]["status"] == 408


def test_headers_keep_a_browser_from_what_the_page_does_not_need():
    kept = SecurityHeaders(app(), may_be_kept=lambda path: path == "/")
    page, other = request(kept), request(kept, path="/echo")
    assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert (page.headers["cache-control"], other.headers["cache-control"]) == ("no-cache", "no-store")


def test_a_refusal_may_be_a_plain_line():
    answer = request(HostAndOrigin(app(), refuse_plainly), headers={"host": "evil.example"})
    assert answer.headers["content-type"].startswith("text/plain")
    assert "'evil.example'" in answer.text
