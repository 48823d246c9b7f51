"""A model behind a real server of the protocol: complete replies, streams, and everything that can go wrong."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import listenwell
from listenwell import cli, loading
from listenwell.contract import Controls
from listenwell.data.dialogue import Dialogue, Example, Turn
from listenwell.decoding import Decoding
from listenwell.systems.remote.endpoint import PROMPT, SPOKEN, Clock, Endpoint, Patience, RemoteError, Server, endpoint
from listenwell.systems.safety import SafetyWrapper, is_care
from listenwell.weights import find

KEY = "sk-a-secret-1234567890"
WORDS = ["That ", "sounds ", "hard", "."]
SAID = "".join(WORDS)


class Handler(BaseHTTPRequestHandler):
    """Answers /v1/chat/completions, or first fails with the next scheduled fault."""

    server: Protocol
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append(body)
            self.server.headers.append(dict(self.headers))
            fault = self.server.faults.pop(0) if self.server.faults else self.server.always
        if self.path.partition("?")[0] != "/v1/chat/completions":
            fail(404, "no such path")(self, body)
        elif fault is not None:
            fault(self, body)
        elif body.get("stream"):
            stream(*WORDS)(self, body)
        else:
            answer(*[SAID] * body.get("n", 1))(self, body)

    def send(self, status: int, data: bytes, kind: str = "application/json", length: int | None = None, **more: str):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True

    def log_message(self, *_: object) -> None: ...


Fault = Callable[[Handler, dict], None]


def answer(*texts: str | None) -> Fault:
    choices = [{"index": i, "message": {"role": "assistant", "content": text}} for i, text in enumerate(texts)]
    return lambda handler, body: handler.send(200, json.dumps({"choices": choices}).encode())


def fail(status: int, message: str = "", **headers: str) -> Fault:
    return lambda handler, body: handler.send(
        status, json.dumps({"error": {"message": message}}).encode(), **{name: str(v) for name, v in headers.items()}
    )


def raw(data: bytes, kind: str = "application/json", length: int | None = None) -> Fault:
    return lambda handler, body: handler.send(200, data, kind, length)


def event(word: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": word}}]}).encode() + b"\n\n"


def stream(*words: str, end: bytes = b"data: [DONE]\n\n") -> Fault:
    """Send chunks, as servers stream; without the last chunk, the connection is cut."""

    def write(handler: Handler, body: dict) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for data in (b": waking up\n\n", *map(event, words), end):
            handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n" if data else b"")
        handler.wfile.write(b"" if end == CUT else b"0\r\n\r\n")
        handler.close_connection = True

    return write


CUT = b""
NOT_DONE = b": and no more\n\n"


def silent(handler: Handler, body: dict) -> None:
    """Send nothing until the test is over."""
    handler.server.over.wait(30)
    handler.close_connection = True


def hangs_up(handler: Handler, body: dict) -> None:
    handler.close_connection = True


class Protocol(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults: list[Fault | None] = []
        self.always: Fault | None = None
        self.bodies: list[dict] = []
        self.headers: list[dict] = []
        self.lock, self.over = threading.Lock(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *_: object) -> None: ...

    def __enter__(self) -> Protocol:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()


class Watch(Clock):
    """A clock that advances only by sleeping; random draws always give the maximum."""

    def __init__(self) -> None:
        self.time, self.pauses = 0.0, []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    def draw(self) -> float:
        return 1.0

    def date(self) -> datetime:
        return datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BASE_URL", "API_KEY", "PROMPT"):
        monkeypatch.delenv(f"LISTENWELL_{name}", raising=False)
        monkeypatch.delenv(f"OPENAI_{name}", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _no_house(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here an endpoint works alone, even if the house system is available."""
    at_hand = loading.shipped
    monkeypatch.setattr(loading, "shipped", lambda: {name: p for name, p in at_hand().items() if name != loading.HOUSE})


@pytest.fixture
def protocol() -> Iterator[Protocol]:
    with Protocol() as server:
        yield server


def connect(protocol: Protocol, key: str | None = KEY, **patience: float) -> tuple[Endpoint, Watch]:
    watch = Watch()
    return Endpoint("small", Server(protocol.url, key, Patience(**patience), watch)), watch  # type: ignore[arg-type]


def test_a_conversation_becomes_messages_after_the_prompt(protocol: Protocol):
    bot, _ = connect(protocol)
    reply = bot.reply(["I lost my job", "Oh no, how?", "They closed"])
    assert reply.text == SAID
    assert reply.system == bot.name == "openai:small"
    (body,) = protocol.bodies
    assert body["messages"] == [
        {"role": "system", "content": PROMPT},
        {"role": "user", "content": "I lost my job"},
        {"role": "assistant", "content": "Oh no, how?"},
        {"role": "user", "content": "They closed"},
    ]
    assert body["model"] == "small"
    assert "n" not in body
    assert protocol.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_turns_of_one_person_in_a_row_are_one_message_and_empty_ones_none(protocol: Protocol):
    turns = (Turn("speaker", "hello"), Turn("speaker", "are you there?"), Turn("listener", " "), Turn("speaker", "hm"))
    connect(protocol)[0].reply(Dialogue("d", turns))
    assert [m["content"] for m in protocol.bodies[0]["messages"][1:]] == ["hello\nare you there?\nhm"]


def test_of_a_long_conversation_the_newest_turns_are_sent(protocol: Protocol):
    bot, _ = connect(protocol)
    bot.history = 12

    def sent(*texts: str) -> list[tuple[str, str]]:
        bot.reply(list(texts))
        return [(message["role"], message["content"]) for message in protocol.bodies[-1]["messages"][1:]]

    whole = [("user", "one"), ("assistant", "two"), ("user", "three")]
    assert sent("one", "two", "three") == whole
    assert sent("an older turn", "too", "one", "two", "three") == whole
    assert sent("a longer one", "two", "three") == [("user", "three")]  # it starts with the speaker
    assert sent("one", "two", "a very long last one") == [("user", "ong last one")]


def test_decoding_says_how_it_speaks(protocol: Protocol):
    bot, _ = connect(protocol)
    assert bot.decoding == SPOKEN
    bot.reply("hi")
    bot.decoding = Decoding(method="greedy", max_length=9)
    bot.reply("hi")
    bot.with_decoding(method="sample", temperature=1.3, top_p=0.5, seed=7).reply("hi")
    options = [{k: v for k, v in body.items() if k not in ("model", "messages")} for body in protocol.bodies]
    assert options == [
        {"max_tokens": 120, "temperature": 0.7, "top_p": 0.95},
        {"max_tokens": 9, "temperature": 0},
        {"max_tokens": 9, "temperature": 1.3, "top_p": 0.5, "seed": 7},
    ]


def test_one_reply_can_be_written_another_way_and_what_was_learned_of_the_server_stays(protocol: Protocol):
    bot, _ = connect(protocol)
    protocol.faults = [fail(400, "Unsupported parameter: max_tokens; use max_completion_tokens")]
    bot.reply("hi", temperature=1.3, max_length=9)
    bot.replies(["hi"], seed=7)
    assert bot.decoding == SPOKEN
    options = [{k: v for k, v in body.items() if k not in ("model", "messages")} for body in protocol.bodies]
    assert options == [
        {"max_tokens": 9, "temperature": 1.3, "top_p": 0.95},
        {"max_completion_tokens": 9, "temperature": 1.3, "top_p": 0.95},
        {"max_completion_tokens": 120, "temperature": 0.7, "top_p": 0.95, "seed": 7},
    ]
    with pytest.raises(ValueError, match="the protocol has no such option"):
        bot.reply("hi", top_k=5)


@pytest.mark.parametrize(
    "option", [{"method": "beam"}, {"top_k": 5}, {"min_length": 4}, {"block_ngrams": 3}, {"guidance": 1.0}]
)
def test_what_the_protocol_has_no_word_for_is_refused_and_not_ignored(protocol: Protocol, option: dict):
    with pytest.raises(ValueError, match=r"has no beams|the protocol has no such option"):
        connect(protocol)[0].decoding = Decoding(**option)


def test_an_intent_becomes_a_part_of_the_prompt(protocol: Protocol):
    bot, _ = connect(protocol)
    reply = bot.reply("hi", Controls(label="consoling"))
    assert reply.label == "consoling"
    assert protocol.bodies[0]["messages"][0]["content"].startswith(PROMPT + "\n\nFor this reply: ")
    assert "consoling" in protocol.bodies[0]["messages"][0]["content"]
    with pytest.raises(ValueError, match="did you mean 'consoling'"):
        bot.reply("hi", Controls(label="consolin"))


def test_candidates_come_by_one_request_where_the_server_gives_several(protocol: Protocol):
    protocol.faults = [answer("one", "two", "three")]
    bot, _ = connect(protocol)
    candidates = bot.candidates((Turn("speaker", "hi"),), 3, plan="ask about the weekend")
    assert [candidate.text for candidate in candidates] == ["one", "two", "three"]
    (body,) = protocol.bodies
    assert body["n"] == 3
    assert body["messages"][0]["content"] == f"{PROMPT}\n\nFor this reply: ask about the weekend"


@pytest.mark.parametrize("refusal", [fail(400, "n must be 1"), fail(422, "extra field n"), answer("one")])
def test_candidates_come_by_several_requests_where_it_does_not(protocol: Protocol, refusal: Fault):
    bot, _ = connect(protocol)
    bot.decoding = Decoding(method="sample", candidates=3, seed=5)
    protocol.faults = [refusal]
    assert len(bot.reply("hi").candidates) == 3
    bodies = protocol.bodies[1:]
    assert not any("n" in body for body in bodies)
    assert len({body["seed"] for body in protocol.bodies[-len(bodies) :]}) == len(bodies)  # or they would be equal
    protocol.bodies.clear()
    assert len(bot.reply("hi").candidates) == 3
    assert [body.get("n") for body in protocol.bodies] == [None] * 3  # it is not requested again


def test_a_refusal_that_is_not_about_n_is_told_and_n_is_asked_for_again(protocol: Protocol):
    bot, _ = connect(protocol)
    protocol.always = fail(400, "too long")
    with pytest.raises(RemoteError, match=r"refused the request .HTTP 400.: too long"):
        bot.candidates((Turn("speaker", "hi"),), 2)
    protocol.always = None
    protocol.bodies.clear()
    bot.candidates((Turn("speaker", "hi"),), 2)
    assert 2 in [body.get("n") for body in protocol.bodies]


def test_empty_candidates_are_left_out_and_an_empty_reply_is_an_error(protocol: Protocol):
    bot, _ = connect(protocol)
    protocol.faults = [answer("one", "", None), answer(None)]
    assert [c.text for c in bot.candidates((Turn("speaker", "hi"),), 3)] == ["one"]
    with pytest.raises(RemoteError, match=r"empty reply; 120 tokens may be too few .*--decoding.max_length"):
        bot.reply("hi")
    with pytest.raises(ValueError, match="drawn by sampling"):
        bot.with_decoding(method="greedy").candidates((Turn("speaker", "hi"),), 2)


def test_a_server_that_wants_the_newer_name_of_the_limit_gets_it(protocol: Protocol):
    bot, _ = connect(protocol)
    protocol.faults = [fail(400, "Unsupported parameter: max_tokens; use max_completion_tokens")]
    assert bot.reply("hi").text == SAID
    bot.reply("hi")
    assert ["max_tokens" in body for body in protocol.bodies] == [True, False, False]
    assert protocol.bodies[2]["max_completion_tokens"] == 120


def test_many_replies_come_in_order_a_few_at_once(protocol: Protocol):
    bot, _ = connect(protocol, at_once=3)
    meeting, under_way, most = threading.Barrier(3), [0], [0]

    def echo(handler: Handler, body: dict) -> None:
        with protocol.lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        meeting.wait(30)  # passes only when three requests are here together
        with protocol.lock:
            under_way[0] -= 1
        answer(body["messages"][-1]["content"])(handler, body)

    protocol.always = echo
    texts, ready = [f"message {number}" for number in range(12)], []
    assert [reply.text for reply in bot.replies(texts, done=ready.append)] == texts
    assert sum(ready) == 12
    assert most[0] == 3
    assert bot.replies([]) == []


def test_one_failure_ends_the_batch(protocol: Protocol):
    protocol.always = fail(403)
    with pytest.raises(RemoteError, match="may not use this model"):
        connect(protocol, at_once=2)[0].replies(["hi"] * 50)
    assert len(protocol.bodies) < 10


def test_no_likelihoods_are_to_be_had(protocol: Protocol):
    assert connect(protocol)[0].likelihoods([Example("a", (Turn("speaker", "hi"),))]) is None


def test_what_may_pass_is_tried_again_after_growing_pauses(protocol: Protocol):
    bot, watch = connect(protocol, tries=5)
    protocol.faults = [fail(500), fail(503), hangs_up]
    assert bot.reply("hi").text == SAID
    assert watch.pauses == [0.5, 1.0, 2.0]
    assert len(protocol.bodies) == 4


def test_pauses_are_cut_at_random_by_no_more_than_half(protocol: Protocol):
    bot, watch = connect(protocol)
    watch.draw = lambda: 0.0  # type: ignore[method-assign]
    protocol.faults = [fail(500), fail(500)]
    bot.reply("hi")
    assert watch.pauses == [0.25, 0.5]


@pytest.mark.parametrize("retry_after", ["7", "Wed, 01 May 2024 12:00:07 GMT", " 7.0 "])
def test_a_server_that_asks_for_time_gets_it(protocol: Protocol, retry_after: str):
    bot, watch = connect(protocol)
    protocol.faults = [fail(429, Retry_After=retry_after)]
    assert bot.reply("hi").text == SAID
    assert watch.pauses == [7.5]  # the delay it asked for, plus the random part


@pytest.mark.parametrize("retry_after", ["soon", "nan", "-3", "Wed, 01 May 2024 11:00:00 GMT"])
def test_a_retry_after_that_says_nothing_useful_does_no_harm(protocol: Protocol, retry_after: str):
    bot, watch = connect(protocol)
    protocol.faults = [fail(429, Retry_After=retry_after)]
    assert bot.reply("hi").text == SAID
    assert watch.pauses == [0.5]


def test_a_server_that_asks_for_too_much_time_is_not_waited_for(protocol: Protocol):
    bot, watch = connect(protocol, total=60)
    protocol.faults = [fail(429, "quota", Retry_After="3600")]
    with pytest.raises(RemoteError, match=r"is rate-limited .HTTP 429.: quota .*beyond the 60 s that a reply may take"):
        bot.reply("hi")
    assert watch.pauses == []


def test_tries_end_by_their_number_and_by_the_time_for_all(protocol: Protocol):
    protocol.always = fail(500, "overloaded")
    bot, watch = connect(protocol, tries=3)
    with pytest.raises(RemoteError, match=r"in trouble .HTTP 500.: overloaded .tried 3 times") as caught:
        bot.reply("hi")
    assert caught.value.status == 500
    assert len(protocol.bodies) == 3
    bot, watch = connect(protocol, tries=100, total=10, longest_pause=4)
    with pytest.raises(RemoteError, match="beyond the 10 s"):
        bot.reply("hi")
    assert watch.pauses == [0.5, 1.0, 2.0, 4.0]


def test_a_server_without_a_word_is_given_up_and_asked_again(protocol: Protocol):
    bot, watch = connect(protocol, silence=0.2)
    protocol.faults = [silent]
    assert bot.reply("hi").text == SAID
    assert len(watch.pauses) == 1
    protocol.faults = [silent]
    assert [*bot.stream("hi")][-1] == SAID
    protocol.always = silent
    with pytest.raises(RemoteError, match=r"no answer in time .tried 2 times"):
        connect(protocol, silence=0.1, tries=2)[0].reply("hi")


def test_an_answer_that_drips_ends_with_the_time_for_all(protocol: Protocol):
    bot, watch = connect(protocol, total=5)

    def drip(handler: Handler, body: dict) -> None:
        handler.send(200, b'{"choices":', length=1000)
        watch.time += 6
        handler.wfile.write(b" ")
        silent(handler, body)

    protocol.always = drip
    with pytest.raises(RemoteError, match="no whole answer within 5 s"):
        bot.reply("hi")


@pytest.mark.parametrize(
    "broken",
    [
        raw(b'{"choices": [{"mess', length=500),
        raw(b'{"choices": [{"mess'),
        raw(b"[]"),
        raw(b'{"error": {"message": "try later"}}'),
    ],
)
def test_a_broken_answer_is_asked_for_again(protocol: Protocol, broken: Fault):
    bot, watch = connect(protocol)
    protocol.faults = [broken]
    assert bot.reply("hi").text == SAID
    assert len(watch.pauses) == 1


@pytest.mark.parametrize(
    ("status", "key", "expected"),
    [
        (401, KEY, "refused the key; is LISTENWELL_API_KEY"),
        (401, None, "requires a key; put it in LISTENWELL_API_KEY"),
        (403, KEY, "may not use this model"),
        (404, KEY, "check the name after openai: and --base-url"),
        (400, KEY, "refused the request"),
        (413, KEY, "refused the request"),
    ],
)
def test_what_will_not_pass_is_told_at_once_with_the_way_out(protocol: Protocol, status, key, expected):
    protocol.always = fail(status, "the server's own words")
    bot, watch = connect(protocol, key)
    for ask in (bot.reply, lambda talk: [*bot.stream(talk)]):
        protocol.bodies.clear()
        with pytest.raises(RemoteError, match=expected) as caught:
            ask("hi")
        assert f"(HTTP {status}): the server's own words" in str(caught.value)
        assert protocol.url in str(caught.value)
        assert len(protocol.bodies) == 1
    assert watch.pauses == []


def test_a_page_instead_of_an_answer_points_to_the_base_url(protocol: Protocol):
    protocol.always = raw(b"<html>Log in</html>", "text/html")
    with pytest.raises(RemoteError, match="answered text/html, not JSON; is the base URL right"):
        connect(protocol)[0].reply("hi")
    protocol.always = raw(b'{"object": "list"}')
    with pytest.raises(RemoteError, match="answered without choices"):
        connect(protocol)[0].reply("hi")
    assert len(protocol.bodies) == 2


def test_neither_key_nor_words_follow_a_redirection(protocol: Protocol):
    with Protocol() as other:
        protocol.always = fail(307, Location=f"{other.url}/chat/completions")
        with pytest.raises(RemoteError, match=f"has moved to {other.url}.*--base-url"):
            connect(protocol)[0].reply("hi")
        assert other.bodies == []


def test_nobody_there_is_told(protocol: Protocol):
    with Protocol() as gone:
        bot, watch = connect(gone, tries=2)
    with pytest.raises(RemoteError, match="connection refused; is the server running"):
        bot.reply("hi")
    assert len(watch.pauses) == 1


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_a_certificate_that_nobody_vouches_for_ends_it(protocol: Protocol, tmp_path: Path):
    own = [*("-keyout", tmp_path / "key.pem"), *("-out", tmp_path / "certificate.pem"), *("-subj", "/CN=127.0.0.1")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *own], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    protocol.socket = context.wrap_socket(protocol.socket, server_side=True)
    watch = Watch()
    bot = Endpoint("small", Server(protocol.url.replace("http:", "https:"), KEY, clock=watch))
    with pytest.raises(RemoteError, match=r"its certificate is not trusted .*SSL_CERT_FILE"):
        bot.reply("hi")
    assert protocol.bodies == []
    assert watch.pauses == []


def test_nothing_goes_in_the_clear_to_a_server_that_should_have_a_certificate(protocol: Protocol):
    bot = Endpoint("small", Server(protocol.url.replace("http:", "https:"), KEY, Patience(tries=1), Watch()))
    with pytest.raises(RemoteError, match="connection was lost"):
        bot.reply("hi")
    assert protocol.bodies == []


def test_a_stream_grows_and_ends_with_its_reply(protocol: Protocol):
    bot, _ = connect(protocol)
    growing, shown = bot.stream(["hi"], Controls(label="wishing")), []
    try:
        while True:
            shown.append(next(growing))
    except StopIteration as end:
        reply = end.value
    assert shown == ["That", "That sounds", "That sounds hard", SAID]
    assert (reply.text, reply.label, reply.system) == (SAID, "wishing", "openai:small")
    assert protocol.bodies[0]["stream"] is True


def test_letters_that_are_cut_between_two_chunks_stay_whole(protocol: Protocol):
    whole = event("难过 é") + b"data: [DONE]\n\n"
    whole = whole.replace(b"\\u96be\\u8fc7 \\u00e9", "难过 é".encode())

    def write(handler: Handler, body: dict) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        for byte in whole.replace(b"\n", b"\r\n"):
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
        handler.close_connection = True

    protocol.always = write
    assert [*connect(protocol)[0].stream("hi")] == ["难过 é"]


def test_a_server_that_does_not_stream_is_shown_at_once(protocol: Protocol):
    protocol.always = answer(SAID)
    assert [*connect(protocol)[0].stream("hi")] == [SAID]


BROKEN_ENDS = {
    "cut": (CUT, "connection was lost"),
    "not done": (NOT_DONE, "cut before its end"),
    "half a line": (b'data: {"choi', "cut before its end"),
    "malformed": (b"data: {choices}\n\n", "not valid JSON"),
    "error": (b'data: {"error": {"message": "out of memory"}}\n\n', "out of memory"),
}


@pytest.mark.parametrize("end", BROKEN_ENDS)
def test_a_stream_that_breaks_before_its_first_word_is_begun_again(protocol: Protocol, end: str):
    bot, watch = connect(protocol)
    protocol.faults = [stream(end=BROKEN_ENDS[end][0])]
    assert [*bot.stream("hi")][-1] == SAID
    assert len(watch.pauses) == 1


@pytest.mark.parametrize("end", BROKEN_ENDS)
def test_a_stream_that_breaks_after_its_first_word_is_an_error(protocol: Protocol, end: str):
    bot, watch = connect(protocol)
    data, expected = BROKEN_ENDS[end]
    protocol.faults = [stream("That ", "sounds ", end=data)]
    shown = []
    with pytest.raises(RemoteError, match=expected):
        shown += bot.stream("hi")
    growing = bot.stream("hi")
    protocol.faults = [stream("That ", "sounds ", end=data)]
    assert next(growing) == "That"
    assert next(growing) == "That sounds"
    with pytest.raises(RemoteError, match=expected):
        next(growing)
    assert watch.pauses == []


def test_a_stream_without_a_word_is_an_error(protocol: Protocol):
    protocol.always = stream()
    with pytest.raises(RemoteError, match="empty reply"):
        [*connect(protocol)[0].stream("hi")]


def test_a_stream_that_nobody_wants_any_more_can_be_left(protocol: Protocol):
    growing = connect(protocol)[0].stream("hi")
    next(growing)
    growing.close()


def shown_in(problem: BaseException) -> str:
    return "".join(traceback.format_exception(problem)) + repr(problem) + repr(problem.__context__)


@pytest.mark.parametrize(
    "fault",
    [
        fail(401, f"Incorrect API key provided: {KEY}"),
        fail(400, "x" * 290 + KEY),
        fail(302, Location=f"http://elsewhere/?key={KEY}"),
        fail(500, f"{KEY[:5]}\x00{KEY[5:]}"),
        raw(f"no JSON: {KEY}".encode()),
        raw(KEY.encode(), f"text/{KEY}"),
        raw(json.dumps({"error": {"token": KEY}}).encode()),
        lambda handler, body: handler.wfile.write(f"{KEY} {KEY}\r\n\r\n".encode()),
        lambda handler, body: handler.wfile.write(f"HTTP/1.1 401 {KEY}\r\n\r\n".encode()),
    ],
)
def test_the_key_never_shows_though_the_server_says_it(protocol: Protocol, fault: Fault):
    def once(handler: Handler, body: dict) -> None:
        fault(handler, body)
        handler.close_connection = True

    protocol.always = once
    bot, _ = connect(protocol, tries=2)
    for ask in (bot.reply, lambda talk: [*bot.stream(talk)]):
        with pytest.raises(RemoteError) as caught:
            ask("hi")
        assert KEY not in shown_in(caught.value)
        assert KEY[:5] + KEY[5:] not in str(caught.value)


def test_the_key_is_in_no_repr_and_in_no_reply(protocol: Protocol):
    bot, _ = connect(protocol)
    cared = SafetyWrapper(bot)
    assert KEY not in f"{bot!r} {bot.server!r} {vars(bot)} {vars(bot.server)} {cared!r}"
    protocol.faults = [answer(f"your key is {KEY}."), stream("your key is ", KEY[:9], KEY[9:], ".")]
    assert bot.reply("hi").text == "your key is [key]."
    shown = [*bot.stream("hi")]
    assert shown[-1] == "your key is [key]."
    assert not any(KEY[:4] in text for text in shown)


def test_a_placeholder_for_a_key_is_a_word_like_others(protocol: Protocol):
    protocol.always = answer("none of this is your fault")
    assert connect(protocol, key="none")[0].reply("hi").text == "none of this is your fault"


def test_control_characters_do_not_reach_a_terminal(protocol: Protocol):
    protocol.always = answer("I \x1b[31mhear\x07 you\n\ttruly\x9b")
    assert connect(protocol)[0].reply("hi").text == "I [31mhear you\n\ttruly"


@pytest.mark.parametrize("key", ["sk-with a space", "sk-with\nbreak", "sk-ünïcode"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str):
    with pytest.raises(ValueError, match="holds spaces or letters that no key can have") as caught:
        Server("http://localhost/v1", key)
    assert "sk-" not in shown_in(caught.value)


@pytest.mark.parametrize(
    "url",
    ["localhost:8000", "ftp://host/v1", "http://", "http://host:port/v1", "http://[::1/v1", "http://me:pw@host/v1"],
)
def test_a_base_url_that_is_none_is_told(url: str):
    with pytest.raises(ValueError, match="--base-url") as caught:
        Server(url)
    assert "pw" not in shown_in(caught.value)


@pytest.mark.parametrize("ending", ["", "/", "/chat/completions", "/?version=2"])
def test_the_base_url_is_taken_as_people_write_it(protocol: Protocol, ending: str):
    server = Server(protocol.url + ending)
    assert server.place == protocol.url
    assert Endpoint("small", server).reply("hi").text == SAID
    assert "Authorization" not in protocol.headers[0]


def test_the_environment_says_where_the_server_is_and_what_its_key_is(protocol: Protocol, monkeypatch):
    with pytest.raises(ValueError, match=r"openai:small needs the URL of a server: --base-url .*LISTENWELL_BASE_URL"):
        listenwell.load("openai:small")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "another-key")
    assert endpoint("openai:small").server.place == "http://127.0.0.1:1/v1"
    monkeypatch.setenv("LISTENWELL_BASE_URL", protocol.url)
    monkeypatch.setenv("LISTENWELL_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("LISTENWELL_PROMPT", "Be brief.")
    assert listenwell.load("openai:small", care=False).reply("hi").text == SAID
    assert protocol.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert protocol.bodies[0]["messages"][0]["content"] == "Be brief."


def test_load_gives_an_endpoint_with_care_before_it(protocol: Protocol):
    bot = listenwell.load("openai:small", base_url=protocol.url)
    assert is_care(bot.reply("I want to kill myself").text)
    assert protocol.bodies == []
    assert bot.reply("I lost my job").text == SAID
    with pytest.raises(ValueError, match="needs the name of a model"):
        listenwell.load("openai:", base_url=protocol.url)
    with pytest.raises(ValueError, match="multi-trs is not such a name"):
        listenwell.load("multi-trs", base_url=protocol.url)
    with pytest.raises(ValueError, match="has no checkpoint"):
        find("openai:small")


def test_an_endpoint_is_measured_like_any_system(protocol: Protocol, capsys):
    words = ["--data", "shipped", "--limit", "6", "--resamples", "20", "--json", "--base-url", protocol.url]
    cli.main(["evaluate", "openai:small", *words])
    printed = json.loads(capsys.readouterr().out)
    names = {score["name"] for score in printed["scores"]}
    assert {"bleu-4", "distinct-1", "bland"} <= names
    assert not any("perplexity" in name for name in names)
    assert printed["about"]["server"] == protocol.url
    assert printed["about"]["prompt"] == PROMPT
    assert len(protocol.bodies) == 6


def test_an_endpoint_writes_replies_to_a_corpus(protocol: Protocol, capsys):
    cli.main(["generate", "openai:small", "shipped", "--limit", "3", "--base-url", protocol.url])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["text"] for record in records] == [SAID] * 3
    with pytest.raises(SystemExit, match="--base-url"):
        cli.main(["generate", "openai:small", "shipped", "--limit", "3"])
