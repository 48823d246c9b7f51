"""Server: one server of the OpenAI protocol, asked patiently. No host is known here: the URL is the user's.

What it is asked and what is made of its answers is in `remote.py`. The standard library is enough: urllib verifies
certificates and knows proxies, and what it lacks, a time-out of its own for silences, is a few lines.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from math import isfinite
from threading import BoundedSemaphore
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from listenwell import __version__
from listenwell.weights import REMOTE

KEYS = ("LISTENWELL_API_KEY", "OPENAI_API_KEY")

HIDDEN = "[key]"
SHORTEST_KEY = 8
"""A shorter "key" is a placeholder such as "none": a word that a reply may well contain."""
LARGEST = 8 << 20
"""Bytes of one answer; nothing that a listener says is near it."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server is waited for, how often it is asked again, and how much is asked at once. Seconds."""

    connect: float = 10.0
    silence: float = 60.0
    """Between two bytes, the first of the answer included."""
    total: float = 180.0
    """For a reply: all tries and the pauses between them."""
    tries: int = 5
    pause: float = 0.5
    """Before the second try; doubled for each further one, and cut at random so that many askers do not come back
    together."""
    longest_pause: float = 20.0
    at_once: int = 4
    """Requests under way at the same time."""


class Clock:
    """Time and chance, to be replaced in tests."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def date(self) -> datetime:
        return datetime.now(UTC)

    def draw(self) -> float:
        """From 0 to 1."""
        return random.random()


class RemoteError(RuntimeError):
    """A server that did not answer as it should. The message says what to do; it never holds the key."""

    def __init__(
        self, message: str, status: int | None = None, passing: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.passing = passing
        """Whether it may pass: the same request may be answered when it is sent again."""
        self.wait = wait
        """How many seconds the server asked to be left alone for."""


class Server:
    """One server of the protocol: where it is, the key it wants, and how patiently it is asked."""

    def __init__(
        self, base_url: str, key: str | None = None, patience: Patience | None = None, clock: Clock | None = None
    ) -> None:
        self.place, self._url = _addresses(base_url)
        """The base URL without its query, which may hold secrets: what messages and reports name."""
        self._key = _Secret(_checked_key(key or ""))
        self.patience = patience or Patience()
        self.clock = clock or Clock()
        self._places = BoundedSemaphore(self.patience.at_once)
        self._opener = build_opener(_Plain, _Secure(context=ssl.create_default_context()), _Stay)

    def __repr__(self) -> str:
        return f"Server({self.place!r})"

    def __reduce__(self) -> str:
        raise TypeError(
            f"the connection to {self.place} cannot be pickled, since it holds its key: load the system in the other "
            "process, with listenwell.load('openai:NAME', base_url=…)"
        )

    def deadline(self) -> float:
        return self.clock.now() + self.patience.total

    def ask(self, body: dict[str, Any], ends: float) -> dict[str, Any]:
        """The answer to one request, as one record."""
        with self._places, self._open(body, ends) as opened:
            return self._record(b"".join(self._pieces(opened, ends)))

    def listen(self, body: dict[str, Any], ends: float) -> Iterator[dict[str, Any]]:
        """The records of a streamed answer as they come; of a server that does not stream, its one record."""
        with self._open(body, ends) as opened:
            if opened.kind != "text/event-stream":
                yield self._record(b"".join(self._pieces(opened, ends)))
                return
            for line in _lines(self._pieces(opened, ends)):
                if not line.startswith(b"data:"):
                    continue
                data = line.removeprefix(b"data:").strip()
                if data == b"[DONE]":
                    return
                yield self._record(data)
            raise RemoteError(f"{self.place}: the stream was cut before its end", passing=True)

    def persist(self, attempt: Callable[[], Result], ends: float) -> Result:
        """What the attempt returns, made again while what went wrong may pass and there is time."""
        for number in count(1):
            try:
                return attempt()
            except RemoteError as problem:
                found = problem
            # Raised here and not while the other is handled: what that one holds is not carried along.
            if not found.passing:
                raise found
            pause = self._pause(number, found.wait)
            if number >= self.patience.tries:
                raise RemoteError(f"{found} (tried {number} times)", found.status)
            if self.clock.now() + pause >= ends:
                raise RemoteError(
                    f"{found} (tried {number} times; the next in {pause:.0f} s would be beyond the "
                    f"{self.patience.total:g} s that a reply may take)",
                    found.status,
                )
            self.clock.sleep(pause)
        raise AssertionError("unreachable")

    def together(self, jobs: Sequence[Callable[[], Result]], done: Callable[[int], None] | None = None) -> list[Result]:
        """The results of the jobs in their order, a few at once. After the first that fails, no further one begins."""
        if len(jobs) == 1:  # in this thread, where Ctrl-C ends it
            results = [jobs[0]()]
            if done is not None:
                done(1)
            return results
        pool = ThreadPoolExecutor(self.patience.at_once)
        try:
            futures = [pool.submit(job) for job in jobs]
            for future in as_completed(futures):
                future.result()
                if done is not None:
                    done(1)
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def hide(self, text: str, growing: bool = False) -> str:
        """A reply without the key, should the server say it; of a growing one also without the key's beginning."""
        key = self._key.value
        if len(key) < SHORTEST_KEY:
            return text
        text = text.replace(key, HIDDEN)
        if growing:
            for size in range(min(len(key) - 1, len(text)), 0, -1):
                if text.endswith(key[:size]):
                    return text[:-size]
        return text

    def _open(self, body: dict[str, Any], ends: float) -> _Opened:
        left = self._left(ends)
        request = _Request(self._url, json.dumps(body).encode(), method="POST")
        request.silence = min(self.patience.silence, left)
        request.add_header("Content-Type", "application/json")
        request.add_header("Accept", "application/json, text/event-stream")
        request.add_header("User-Agent", f"listenwell/{__version__}")
        if self._key.value:
            request.add_unredirected_header("Authorization", f"Bearer {self._key.value}")
        try:
            response = self._opener.open(request, timeout=min(self.patience.connect, left))
        except HTTPError as error:
            with error:
                problem = self._refused(error, ends, request)
        except (OSError, http.client.HTTPException) as error:
            problem = self._lost(error)
        else:
            opened = _Opened(response, request)
            if opened.kind in ("application/json", "text/event-stream", ""):
                return opened
            opened.close()
            problem = RemoteError(
                f"{self.place}: answered {self._told(opened.kind)}, not JSON; is the base URL right? "
                "Most end in /v1 (--base-url)",
                response.status,
            )
        raise problem

    def _pieces(self, opened: _Opened, ends: float) -> Iterator[bytes]:
        """The body as it comes. Each wait is no longer than the silence allowed and the time left."""
        response, problem, taken = opened.response, None, 0
        expected = response.length
        while problem is None:
            opened.wait_at_most(min(self.patience.silence, self._left(ends)))
            try:
                piece = response.read1(1 << 16)
            except (OSError, http.client.HTTPException) as error:
                problem = self._lost(error)
                break
            taken += len(piece)
            if taken > LARGEST:
                problem = RemoteError(f"{self.place}: answered more than {LARGEST >> 20} MB")
            elif piece:
                yield piece
            elif expected is not None and taken < expected:
                problem = RemoteError(f"{self.place}: the answer was cut before its end", passing=True)
            else:
                return
        if problem is not None:
            raise problem

    def _record(self, data: bytes) -> dict[str, Any]:
        try:
            record = json.loads(data)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise RemoteError(f"{self.place}: answered what is no JSON object: {self._told(_text(data))}", passing=True)
        if record.get("error"):
            raise RemoteError(f"{self.place}: reports an error{self._complaint(record)}", passing=True)
        return record

    def _left(self, ends: float) -> float:
        left = ends - self.clock.now()
        if left <= 0:
            raise RemoteError(f"{self.place}: no whole answer within {self.patience.total:g} s")
        return left

    def _pause(self, number: int, wait: float | None) -> float:
        pause = min(self.patience.pause * 2 ** (number - 1), self.patience.longest_pause)
        # At least what the server asked for; what is random comes on top.
        return pause * (0.5 + self.clock.draw() / 2) if wait is None else wait + pause * self.clock.draw()

    def _refused(self, error: HTTPError, ends: float, request: _Request) -> RemoteError:
        status = error.code
        try:
            body = b"".join(self._pieces(_Opened(error, request), ends))
        except RemoteError:  # the status alone says enough
            body = b""
        try:
            record = json.loads(body)
        except (ValueError, RecursionError):
            record = None if b"<" in body else _text(body)  # a page of HTML says nothing here
        complaint = self._complaint(record)
        if status in (408, 429) or status >= 500:
            what = "is asked too much" if status == 429 else "is in trouble"
            wait = self._wait(error.headers.get("Retry-After"))
            return RemoteError(f"{self.place}: {what} (HTTP {status}){complaint}", status, passing=True, wait=wait)
        if 300 <= status < 400:
            target = self._told(error.headers.get("Location") or "nowhere")
            return RemoteError(f"{self.place}: has moved to {target}; give --base-url the new place", status)
        lacking = f"refused the key; is {KEYS[0]} (or {KEYS[1]}) right?"
        ways_out = {
            401: lacking if self._key.value else f"wants a key; put it in {KEYS[0]} (or {KEYS[1]})",
            403: f"the key in {KEYS[0]} (or {KEYS[1]}) may not use this model",
            404: f"no such model or no such URL; check the name after {REMOTE} and --base-url (most end in /v1)",
        }
        return RemoteError(
            f"{self.place}: {ways_out.get(status, 'refused the request')} (HTTP {status}){complaint}", status
        )

    def _lost(self, error: Exception) -> RemoteError:
        reason = error.reason if isinstance(error, URLError) else error
        told = self._told(str(reason) or type(reason).__name__)
        if isinstance(reason, TimeoutError):
            return RemoteError(f"{self.place}: no answer in time", passing=True)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return RemoteError(
                f"{self.place}: its certificate is not trusted ({told}); SSL_CERT_FILE may name your own authorities"
            )
        if isinstance(reason, socket.gaierror) and reason.errno != socket.EAI_AGAIN:
            return RemoteError(f"{self.place}: no such host; check --base-url")
        if isinstance(reason, ConnectionRefusedError):
            return RemoteError(f"{self.place}: nobody listens there; is the server running?", passing=True)
        return RemoteError(f"{self.place}: the connection was lost ({told})", passing=True)

    def _wait(self, told: str | None) -> float | None:
        """The seconds of a Retry-After header, which is a number or a date."""
        if told is None:
            return None
        try:
            seconds = float(told)
        except ValueError:
            try:
                date = parsedate_to_datetime(told)
            except ValueError:
                return None
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - self.clock.date().timestamp()
        return max(0.0, seconds) if isfinite(seconds) else None

    def _complaint(self, record: Any) -> str:
        """What the server itself says is wrong, in any of the usual forms, as the end of a message."""
        for key in ("error", "message", "detail"):
            if isinstance(record, dict) and record.get(key):
                record = record[key]
        told = record if isinstance(record, str) else json.dumps(record) if record else ""
        return f": {self._told(told)}" if told.strip() else ""

    def _told(self, text: str, width: int = 300) -> str:
        """A server's words, safe to show: without the key, control characters, or end."""
        key = self._key.value
        text = clean(text)
        text = " ".join((text.replace(key, HIDDEN) if key else text).split())
        return text if len(text) <= width else text[: width - 1] + "…"


def clean(text: str) -> str:
    """Without control characters, which could act on a terminal; line breaks and tabs stay."""
    return "".join(letter for letter in text if letter in "\n\t" or (letter >= " " and not "\x7f" <= letter <= "\x9f"))


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines; what stands after the last line break was cut."""
    kept = b""
    for piece in pieces:
        *whole, kept = (kept + piece).split(b"\n")
        yield from whole


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _checked_key(key: str) -> str:
    # http.client would quote a key that cannot be sent in its complaint.
    if not all("!" <= letter <= "~" for letter in key):
        raise ValueError(f"the key ({' or '.join(KEYS)}) holds spaces or letters that no key can have; copy it again")
    return key


def _addresses(base_url: str) -> tuple[str, str]:
    """The base URL as it is shown, and where requests go."""
    wrong = "the base URL (--base-url) is expected as http://HOST:PORT/v1 or https://…"
    try:
        parts = urlsplit(base_url.strip())
        _ = parts.port
    except ValueError:
        raise ValueError(wrong) from None
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"{wrong}, without a user name or password: a key belongs in {KEYS[0]}")
    if parts.scheme not in ("http", "https") or not parts.hostname or not base_url.strip().isascii():
        raise ValueError(f"{wrong}, found {base_url!r}")
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    shown = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    return shown, urlunsplit((parts.scheme, parts.netloc, f"{path}/chat/completions", parts.query, ""))


class _Secret:
    """A value that does not show itself in a repr or a traceback's locals."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return HIDDEN


class _Request(Request):
    """A request that knows how long a silence may be, and the socket it went out on."""

    silence: float
    socket: socket.socket | None = None


class _Opened:
    """An answer that has begun."""

    def __init__(self, response: Any, request: _Request) -> None:
        self.response, self.request = response, request
        self.kind = (response.headers.get("Content-Type") or "").partition(";")[0].strip().lower()

    def wait_at_most(self, seconds: float) -> None:
        if self.request.socket is not None:
            self.request.socket.settimeout(seconds)

    def close(self) -> None:
        self.response.close()

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _patient(kind: type[http.client.HTTPConnection], request: Any) -> type[http.client.HTTPConnection]:
    """Connections that, once made, wait as long as the request says: urllib has one time-out for both."""

    class Patient(kind):  # type: ignore[misc, valid-type]
        def connect(self) -> None:
            super().connect()
            self.sock.settimeout(request.silence)
            request.socket = self.sock

    return Patient


class _Plain(HTTPHandler):
    def http_open(self, request: Any) -> http.client.HTTPResponse:
        return self.do_open(_patient(http.client.HTTPConnection, request), request)


class _Secure(HTTPSHandler):
    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self.context = context

    def https_open(self, request: Any) -> http.client.HTTPResponse:
        return self.do_open(_patient(http.client.HTTPSConnection, request), request, context=self.context)


class _Stay(HTTPRedirectHandler):
    """Follows no redirection: neither the key nor the conversation goes where the user did not send it."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None
