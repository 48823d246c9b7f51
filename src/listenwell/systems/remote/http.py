"""Server: one server that speaks the OpenAI protocol, with retries. No host is built in; users give the URL.

`endpoint.py` builds the requests and interprets the responses. httpx2 makes the connections; this module adds retries,
limits on time and size, and error messages that never contain the key.
"""

from __future__ import annotations

import json
import random
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from math import isfinite
from threading import BoundedSemaphore
from typing import Any, TypeVar

import httpx2

from listenwell import __version__
from listenwell.systems.remote.address import HIDDEN, KEYS, Secret, addresses, checked_key
from listenwell.weights import REMOTE

SHORTEST_KEY = 8
"""A shorter "key" is a placeholder such as "none", a word that a reply may well contain."""
LARGEST = 8 << 20
"""Maximum bytes of one response; no reply comes near it."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a server (in seconds), how often to retry, and how many requests to send at once."""

    connect: float = 10.0
    silence: float = 60.0
    """Longest wait between two bytes, or for the first byte of the response."""
    total: float = 180.0
    """Longest time for a reply: all tries and the pauses between them."""
    tries: int = 5
    pause: float = 0.5
    """Pause before the second try; doubled for each further one, and shortened at random so that many clients do not
    retry at the same time."""
    longest_pause: float = 20.0
    at_once: int = 4
    """Maximum number of concurrent requests."""


class Clock:
    """Time and randomness, which tests replace."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def date(self) -> datetime:
        return datetime.now(UTC)

    def draw(self) -> float:
        """A random number from 0 to 1."""
        return random.random()


class RemoteError(RuntimeError):
    """A server did not respond as it should. The message says what to do and never contains the key."""

    def __init__(
        self, message: str, status: int | None = None, passing: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.passing = passing
        """Whether the error is transient: the same request may succeed when it is sent again."""
        self.wait = wait
        """How many seconds the server asked to wait."""


class Server:
    """One server that speaks the protocol: its address, its key, and how patiently to retry."""

    def __init__(
        self, base_url: str, key: str | None = None, patience: Patience | None = None, clock: Clock | None = None
    ) -> None:
        self.place, self._url = addresses(base_url)
        """The base URL without its query, which may contain secrets. Messages and reports use this."""
        self._key = Secret(checked_key(key or ""))
        self.patience = patience or Patience()
        self.clock = clock or Clock()
        self._places = BoundedSemaphore(self.patience.at_once)
        self._client = httpx2.Client(
            verify=ssl.create_default_context(),
            # Neither the key nor the conversation may go where the user did not send it.
            follow_redirects=False,
            limits=httpx2.Limits(max_keepalive_connections=0),
            headers={
                "Accept": "application/json, text/event-stream",
                "Accept-Encoding": "identity",
                "User-Agent": f"listenwell/{__version__}",
            },
        )

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
        """Sends one request and returns the response as one record."""
        with self._places, self._open(body, ends) as response:
            return self._record(b"".join(self._pieces(response, ends)))

    def listen(self, body: dict[str, Any], ends: float) -> Iterator[dict[str, Any]]:
        """Yields the records of a streamed response as they arrive; a single one if the server does not stream."""
        with self._open(body, ends) as response:
            if _kind(response) != "text/event-stream":
                yield self._record(b"".join(self._pieces(response, ends)))
                return
            for line in _lines(self._pieces(response, ends)):
                if not line.startswith(b"data:"):
                    continue
                data = line.removeprefix(b"data:").strip()
                if data == b"[DONE]":
                    return
                yield self._record(data)
            raise RemoteError(f"{self.place}: the stream was cut before its end", passing=True)

    def persist(self, attempt: Callable[[], Result], ends: float) -> Result:
        """Returns the result of `attempt`, which is repeated while errors are transient and tries and time are left."""
        for number in count(1):
            try:
                return attempt()
            except RemoteError as problem:
                failure = problem
            # Raised outside of the except block, so that the caught exception and what it holds are not chained.
            if not failure.passing:
                raise failure
            pause = self._pause(number, failure.wait)
            if number >= self.patience.tries:
                raise RemoteError(f"{failure} (tried {number} times)", failure.status)
            if self.clock.now() + pause >= ends:
                raise RemoteError(
                    f"{failure} (tried {number} times; the next in {pause:.0f} s would be beyond the "
                    f"{self.patience.total:g} s that a reply may take)",
                    failure.status,
                )
            self.clock.sleep(pause)
        raise AssertionError("unreachable")

    def together(self, jobs: Sequence[Callable[[], Result]], done: Callable[[int], None] | None = None) -> list[Result]:
        """Runs the jobs, a few at once, and returns their results in order. After a failure, no further job begins."""
        if len(jobs) == 1:  # in this thread, where Ctrl-C interrupts it
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
        """Removes the key from a reply, in case the server repeats it; from a growing one, also a partial key."""
        key = self._key.value
        if len(key) < SHORTEST_KEY:
            return text
        text = text.replace(key, HIDDEN)
        if growing:
            for size in range(min(len(key) - 1, len(text)), 0, -1):
                if text.endswith(key[:size]):
                    return text[:-size]
        return text

    @contextmanager
    def _open(self, body: dict[str, Any], ends: float) -> Iterator[httpx2.Response]:
        """Opens a response that is JSON or a stream; anything else is an error."""
        response, problem = self._send(body, ends)
        if response is None:
            raise problem or AssertionError("neither an answer nor a problem")
        with closing(response):
            if not response.is_success:
                raise self._refused(response, ends)
            if _kind(response) not in ("application/json", "text/event-stream", ""):
                raise RemoteError(
                    f"{self.place}: answered {self._presentable(_kind(response))}, not JSON; is the base URL right? "
                    "Most end in /v1 (--base-url)",
                    response.status_code,
                )
            yield response

    def _send(self, body: dict[str, Any], ends: float) -> tuple[httpx2.Response | None, RemoteError | None]:
        """Returns the error instead of raising it, so that the client's exception and what it holds are not chained."""
        left = self._left(ends)
        timeout = httpx2.Timeout(min(self.patience.silence, left), connect=min(self.patience.connect, left))
        headers = {"Authorization": f"Bearer {self._key.value}"} if self._key.value else {}
        request = self._client.build_request("POST", self._url, json=body, headers=headers, timeout=timeout)
        try:
            return self._client.send(request, stream=True), None
        except httpx2.HTTPError as error:
            return None, self._lost(error)

    def _pieces(self, response: httpx2.Response, ends: float) -> Iterator[bytes]:
        """Yields the body as it arrives."""
        pieces, taken = response.iter_bytes(), 0
        while True:
            self._left(ends)
            try:
                piece, problem = next(pieces, b""), None
            except httpx2.HTTPError as error:
                problem = self._lost(error)
            if problem is not None:
                raise problem
            if not piece:
                return
            taken += len(piece)
            if taken > LARGEST:
                raise RemoteError(f"{self.place}: answered more than {LARGEST >> 20} MB")
            yield piece

    def _record(self, data: bytes) -> dict[str, Any]:
        try:
            record = json.loads(data)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise RemoteError(
                f"{self.place}: the answer is not valid JSON, or not an object: {self._presentable(_text(data))}",
                passing=True,
            )
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
        # At least as long as the server asked for; the random part is added on top.
        return pause * (0.5 + self.clock.draw() / 2) if wait is None else wait + pause * self.clock.draw()

    def _refused(self, response: httpx2.Response, ends: float) -> RemoteError:
        status = response.status_code
        try:
            body = b"".join(self._pieces(response, ends))
        except RemoteError:  # the status alone is enough
            body = b""
        try:
            record = json.loads(body)
        except (ValueError, RecursionError):
            record = None if b"<" in body else _text(body)  # an HTML page is of no use here
        complaint = self._complaint(record)
        if status in (408, 429) or status >= 500:
            what = "is rate-limited" if status == 429 else "is in trouble"
            wait = self._wait(response.headers.get("Retry-After"))
            return RemoteError(f"{self.place}: {what} (HTTP {status}){complaint}", status, passing=True, wait=wait)
        if 300 <= status < 400:
            target = self._presentable(response.headers.get("Location") or "nowhere")
            return RemoteError(f"{self.place}: has moved to {target}; give --base-url the new place", status)
        lacking = f"refused the key; is {KEYS[0]} (or {KEYS[1]}) right?"
        ways_out = {
            401: lacking if self._key.value else f"requires a key; put it in {KEYS[0]} (or {KEYS[1]})",
            403: f"the key in {KEYS[0]} (or {KEYS[1]}) may not use this model",
            404: f"no such model or no such URL; check the name after {REMOTE} and --base-url (most end in /v1)",
        }
        return RemoteError(
            f"{self.place}: {ways_out.get(status, 'refused the request')} (HTTP {status}){complaint}", status
        )

    def _lost(self, error: Exception) -> RemoteError:
        details = self._presentable(str(error) or type(error).__name__)
        if isinstance(error, httpx2.TimeoutException):
            return RemoteError(f"{self.place}: no answer in time", passing=True)
        reason = _cause(error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return RemoteError(
                f"{self.place}: its certificate is not trusted ({details}); SSL_CERT_FILE may name your own authorities"
            )
        if isinstance(reason, socket.gaierror) and reason.errno != socket.EAI_AGAIN:
            return RemoteError(f"{self.place}: no such host; check --base-url")
        if isinstance(reason, ConnectionRefusedError):
            return RemoteError(f"{self.place}: connection refused; is the server running?", passing=True)
        return RemoteError(f"{self.place}: the connection was lost ({details})", passing=True)

    def _wait(self, header: str | None) -> float | None:
        """Returns the seconds of a Retry-After header, which holds a number or a date."""
        if header is None:
            return None
        try:
            seconds = float(header)
        except ValueError:
            try:
                date = parsedate_to_datetime(header)
            except ValueError:
                return None
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - self.clock.date().timestamp()
        return max(0.0, seconds) if isfinite(seconds) else None

    def _complaint(self, record: Any) -> str:
        """Returns the server's own error message, in any of the usual formats, as the end of a message."""
        for key in ("error", "message", "detail"):
            if isinstance(record, dict) and record.get(key):
                record = record[key]
        complaint = record if isinstance(record, str) else json.dumps(record) if record else ""
        return f": {self._presentable(complaint)}" if complaint.strip() else ""

    def _presentable(self, text: str, width: int = 300) -> str:
        """Makes a server's text safe to show: no key, no control characters, limited length."""
        key = self._key.value
        text = clean(text)
        text = " ".join((text.replace(key, HIDDEN) if key else text).split())
        return text if len(text) <= width else text[: width - 1] + "…"


def clean(text: str) -> str:
    """Removes control characters, which could affect a terminal; line breaks and tabs stay."""
    return "".join(letter for letter in text if letter in "\n\t" or (letter >= " " and not "\x7f" <= letter <= "\x9f"))


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields complete lines; anything after the last line break was cut off and is dropped."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole


def _kind(response: httpx2.Response) -> str:
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _cause(error: BaseException) -> BaseException:
    """Returns the operating system's error beneath the exceptions of the HTTP client."""
    while (below := error.__cause__ or error.__context__) is not None:
        error = below
    return error


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
