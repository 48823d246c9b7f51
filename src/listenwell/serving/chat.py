"""POST /v1/chat/completions: from a request to a response, complete or streamed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from listenwell.data.dialogue import Turn
from listenwell.serving.care import CarePool, care_record
from listenwell.serving.engine import Ticket
from listenwell.serving.errors import ApiError
from listenwell.serving.metrics import Metrics
from listenwell.serving.schema import ChatRequest, check_limits, turns_of
from listenwell.serving.served import Served, explanation
from listenwell.serving.settings import Limits
from listenwell.serving.streaming import DONE, KEEP_ALIVE, Pieces, cut, event
from listenwell.systems.reply import Reply
from listenwell.systems.together import Job
from listenwell.web.rates import Buckets, over_rate
from listenwell.web.refusals import openai_error

LEFT = 499
"""The status that the counters record when the client has disconnected."""

QUIET = 15.0
"""Seconds of silence after which a stream sends a keep-alive comment."""


@dataclass(slots=True)
class Answer:
    """The state of a response while it is being produced."""

    request: ChatRequest
    served: Served
    turns: tuple[Turn, ...]
    care: dict[str, Any] | None = None
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))
    begun: float = field(default_factory=time.monotonic)
    read: int | None = None
    """Tokens in the conversation, once they have been counted."""

    def record(self, kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        common = {"id": self.id, "object": kind, "created": self.created, "model": self.served.name}
        return {**common, "choices": choices, **more}

    def own(self, reply: Reply) -> dict[str, Any]:
        """The part of the response that goes beyond the OpenAI protocol."""
        explained = explanation(reply) if self.request.wishes.explain and self.care is None else {}
        return {**explained, "care": self.care}

    def usage(self, texts: Sequence[str]) -> dict[str, int]:
        if self.read is None:  # needed twice: by the counters and by the response
            self.read = self.served.count_tokens([turn.text for turn in self.turns])
        read, written = self.read, self.served.count_tokens(texts)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


class Chat:
    """Answers requests: care first, then the key's bucket, then the queue."""

    def __init__(self, care: CarePool, limits: Limits, metrics: Metrics, buckets: Buckets | None) -> None:
        self.care, self.limits, self.metrics, self.buckets = care, limits, metrics, buckets

    async def respond(self, body: ChatRequest, served: Served, request: Request) -> Response:
        check_limits(body, self.limits)
        turns = turns_of(body.messages, self.limits)
        controls = served.controls(body.wishes)
        answer = Answer(body, served, turns)
        # A sign of a crisis is answered even if the queue is full or the key's bucket is empty.
        asking: asyncio.Future[Any] = asyncio.ensure_future(self.care.ask(served.wrapper, turns, controls))
        if not await _stays(request, asking):
            return Response(status_code=LEFT)
        fixed: Reply | None = asking.result()
        if fixed is not None:
            answer.care = care_record(fixed, served.wrapper.resources)
            self.metrics.care.labels(served.name, answer.care["kind"]).inc()
            return self._fixed(answer, fixed)
        refusal = None if self.buckets is None else over_rate(self.buckets, request.scope)
        if refusal is not None:
            raise ApiError(refusal)
        tickets = [Ticket(job) for job in served.jobs(body, turns, self.limits)]
        served.engine.submit(tickets)
        if body.stream:
            return _stream(self._streamed(answer, tickets))
        return await self._whole(answer, tickets, request)

    def _fixed(self, answer: Answer, reply: Reply) -> Response:
        count = answer.request.n or 1
        self._note(answer, [reply.text] * count)
        if not answer.request.stream:
            return _json(_completion(answer, [(reply.text, "stop")] * count, reply))

        async def events() -> AsyncIterator[bytes]:
            for index in range(count):
                yield event(_delta(answer, index, {"role": "assistant", "content": reply.text}))
            for last in self._ends(answer, [(reply.text, "stop")] * count, reply):
                yield last

        return _stream(events())

    # Complete

    async def _whole(self, answer: Answer, tickets: list[Ticket], request: Request) -> Response:
        written: asyncio.Future[Any] = asyncio.ensure_future(_all(tickets))
        try:
            if not await _stays(request, written):
                return Response(status_code=LEFT)
            replies = written.result()
        finally:
            _give_up(answer, tickets)
        finished = [_finished(answer, ticket) for ticket in tickets]
        self._note(answer, [text for text, _ in finished])
        return _json(_completion(answer, finished, replies[0]))

    # Streamed

    async def _streamed(self, answer: Answer, tickets: list[Ticket]) -> AsyncIterator[bytes]:
        news: asyncio.Queue[tuple[int, str | None]] = asyncio.Queue()
        watchers = [asyncio.ensure_future(_watch(index, ticket, news)) for index, ticket in enumerate(tickets)]
        pieces = [Pieces(answer.request.stops) for _ in tickets]
        try:
            for index in range(len(tickets)):
                yield event(_delta(answer, index, {"role": "assistant", "content": ""}))
            left = len(tickets)
            while left:
                try:
                    index, text = await asyncio.wait_for(news.get(), QUIET)
                except TimeoutError:
                    yield KEEP_ALIVE
                    continue
                ticket = tickets[index]
                if text is None and ticket.error is not None:
                    yield event({"error": openai_error(ticket.error.refusal)})
                    return
                left -= text is None
                said = ticket.text if text is None else text
                if piece := pieces[index].more(said, final=text is None):
                    self._note_first(answer, pieces[index], piece)
                    yield event(_delta(answer, index, {"content": piece}))
            finished = [_finished(answer, ticket) for ticket in tickets]
            self._note(answer, [text for text, _ in finished])
            for last in self._ends(answer, finished, tickets[0].result):
                yield last
        finally:
            for watcher in watchers:
                watcher.cancel()
            _give_up(answer, tickets)

    def _ends(self, answer: Answer, finished: list[tuple[str, str]], reply: Reply) -> list[bytes]:
        """The end of a stream. The last record carries what goes beyond the OpenAI protocol."""
        records = [_delta(answer, index, {}, reason) for index, (_, reason) in enumerate(finished)]
        options = answer.request.stream_options
        if options is not None and options.include_usage:
            usage = answer.usage([text for text, _ in finished])
            records.append(answer.record("chat.completion.chunk", [], usage=usage))
        records[-1]["listenwell"] = answer.own(reply)
        return [*map(event, records), DONE]

    # Counts

    def _note_first(self, answer: Answer, pieces: Pieces, piece: str) -> None:
        if pieces.sent == piece:
            self.metrics.first.labels(answer.served.name).observe(time.monotonic() - answer.begun)

    def _note(self, answer: Answer, texts: list[str]) -> None:
        name, usage = answer.served.name, answer.usage(texts)
        self.metrics.tokens.labels(name, "read").inc(usage["prompt_tokens"])
        self.metrics.tokens.labels(name, "written").inc(usage["completion_tokens"])
        self.metrics.whole.labels(name).observe(time.monotonic() - answer.begun)


async def _watch(index: int, ticket: Ticket, news: asyncio.Queue[tuple[int, str | None]]) -> None:
    """Put the texts of one reply into the shared queue, and None when it is done."""
    with suppress(ApiError):
        async for text in ticket.texts():
            if not ticket.done:
                news.put_nowait((index, text))
    news.put_nowait((index, None))


async def _all(tickets: Sequence[Ticket]) -> list[Reply]:
    return [await ticket.wait() for ticket in tickets]


async def _stays(request: Request, work: asyncio.Future[Any]) -> bool:
    """Whether the client is still connected when the work is done. If it disconnects first, the work is cancelled."""
    leaving: asyncio.Future[Any] = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
        return work.done()
    finally:
        leaving.cancel()
        if not work.done():
            work.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _give_up(answer: Answer, tickets: Sequence[Ticket]) -> None:
    for ticket in tickets:
        answer.served.engine.cancel(ticket)


def _finished(answer: Answer, ticket: Ticket) -> tuple[str, str]:
    """The text of a reply and its finish reason."""
    job: Job = ticket.job  # type: ignore[assignment]
    text, stopped = cut(ticket.result.text, answer.request.stops)
    return text, "stop" if stopped or job.finished else "length"


def _completion(answer: Answer, finished: list[tuple[str, str]], reply: Reply) -> dict[str, Any]:
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": None,
            "finish_reason": reason,
        }
        for index, (text, reason) in enumerate(finished)
    ]
    usage = answer.usage([text for text, _ in finished])
    return answer.record("chat.completion", choices, usage=usage, listenwell=answer.own(reply))


def _delta(answer: Answer, index: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
    return answer.record("chat.completion.chunk", [choice])


def _json(record: dict[str, Any]) -> Response:
    return JSONResponse(record)


def _stream(events: AsyncIterator[bytes]) -> Response:
    # Some proxies buffer streams unless told not to.
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})
