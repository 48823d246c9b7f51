"""A server for tests of the page: it has the same HTTP interface as the real one, echoes, and fails on request.

`FakeApi.next` has what happens to the next requests for a reply, one entry each; without one, the reply is streamed:

    cut       a few words, then the connection breaks        busy      429, Retry-After: 1
    short     a few words, then the stream ends too early    broken    500
    hold      a few words, then it waits for `release`       refused   400 with `refusal`
    silent    waits for `release` before the first word
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import listenwell

PACKAGE = Path(listenwell.__file__).parent
PAGE = PACKAGE / "serving/templates/index.html"
STATIC = (PACKAGE / "serving/static", PACKAGE / "web/static")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
RESOURCES = {
    "en": {
        "emergency": "911",
        "resources": [
            {"name": "988 Suicide & Crisis Lifeline", "contact": "call or text 988", "note": "day and night"},
            {"name": "A helpline in your country", "contact": "findahelpline.com", "note": None},
        ],
    },
    "zh": {"emergency": "120", "resources": [{"name": "心理援助热线", "contact": "拨打 12356", "note": None}]},
}
CARD = """I'm glad you told me, and I'm so sorry that it hurts this much. You don't have to carry this alone. If you \
might act on it, or already have, please call 911 now.

People who can help:
- 988 Suicide & Crisis Lifeline: call or text 988

I am a program: I cannot see you or call anyone for you. But I stay here, and you can go on writing to me."""
QUESTION = """That sounds like a lot to carry. I may be wrong, and I would rather ask: are you thinking of hurting \
yourself?

988 Suicide & Crisis Lifeline: call or text 988. If it is urgent: 911."""
INTENTS = ["agreeing", "consoling", "questioning", "wishing"]
EMOTIONS = ["afraid", "joyful", "lonely", "sad"]


def model(name: str, **about: Any) -> dict[str, Any]:
    """An item of /v1/models."""
    fields = {"languages": ["en"], "takes_intent": False, "intents": [], "takes_positivity": False, "about": ""}
    return {"id": name, "object": "model", "owned_by": "listenwell", "listenwell": {**fields, **about}}


class FakeApi:
    def __init__(self) -> None:
        self.key: str | None = None
        self.models = [
            model(
                "house",
                takes_intent=True,
                intents=[*EMOTIONS, *INTENTS],
                takes_positivity=True,
                about="Plans what to do, writes several replies and picks the best.",
            ),
            model("mime", about="mimics your emotion"),
            model("strategy-memory", languages=["zh"]),
        ]
        self.resources: dict[str, Any] = RESOURCES
        self.refusal = "messages: too long, at most 100 turns"
        self.reply = "I hear you: {said} ({seed})"
        self.details: dict[str, Any] = {
            "emotion": {"name": "lonely", "probability": 0.62},
            "emotions": {"lonely": 0.62, "sad": 0.21, "afraid": 0.1, "joyful": 0.05, "proud": 0.02},
            "label": {"name": "consoling", "probability": 0.48},
            "candidates": ["That must be hard.", "Tell me more about it.", "How nice!"],
            "reasons": {
                "heard": ["lonely", None, "sad"],
                "now": "lonely",
                "plan": "consoles where somebody is alone",
                "positivity": 0.25,
                "likeliest": {"consoling": 0.48, "questioning": 0.31},
                "vetoed": ["How nice! (cheers at bad news)"],
            },
        }
        self.next: deque[str] = deque()
        self.release = threading.Event()
        self.asked: list[dict[str, Any]] = []
        """The bodies of all requests for a reply."""
        self.app = Starlette(
            routes=[
                Route("/", self._page),
                Route("/static/{name}", self._static),
                Route("/v1/models", self._models),
                Route("/v1/resources", self._resources),
                Route("/v1/chat/completions", self._completions, methods=["POST"]),
            ]
        )

    @property
    def said(self) -> list[str]:
        """The last message of each request."""
        return [body["messages"][-1]["content"] for body in self.asked]

    async def _page(self, request: Request) -> Response:
        return FileResponse(PAGE, headers={"Content-Security-Policy": POLICY})

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        path = next((folder / name for folder in STATIC if (folder / name).is_file()), None)
        if path is None:
            return Response(status_code=404)
        headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
        if path.suffix == ".js":
            return FileResponse(path, media_type="text/javascript", headers=headers)
        return FileResponse(path, headers=headers)

    def _locked(self, request: Request) -> Response | None:
        if self.key is None or request.headers.get("Authorization") == f"Bearer {self.key}":
            return None
        return problem(401, "a key is needed: Authorization: Bearer KEY", "invalid_api_key")

    async def _models(self, request: Request) -> Response:
        return self._locked(request) or JSONResponse({"object": "list", "data": self.models})

    async def _resources(self, request: Request) -> Response:
        language = request.query_params.get("language", "en")
        return self._locked(request) or JSONResponse(self.resources[language])

    async def _completions(self, request: Request) -> Response:
        if locked := self._locked(request):
            return locked
        body = await request.json()
        self.asked.append(body)
        way = self.next.popleft() if self.next else "whole"
        if way == "busy":
            return problem(429, "no room for another request", "rate_limit_exceeded", {"Retry-After": "1"})
        if way == "broken":
            return problem(500, "something broke", "internal_error")
        if way == "refused":
            return problem(400, self.refusal, "invalid_value")
        return StreamingResponse(self._stream(body, way), media_type="text/event-stream")

    async def _stream(self, body: dict[str, Any], way: str) -> AsyncIterator[str]:
        text, care = self._answer(body["messages"][-1]["content"], body.get("seed", 0))
        if way == "silent":
            await self._held()
        yield chunk(body, {"role": "assistant", "content": ""})
        for number, word in enumerate(text.split(" ")):
            if number == 3 and way == "cut":
                raise ConnectionError("the connection is cut here, on purpose")
            if number == 3 and way == "short":
                return
            if number == 3 and way == "hold":
                await self._held()
            yield chunk(body, {"content": word if number == 0 else f" {word}"})
        details = {"emotion": None, "emotions": {}, "label": None, "candidates": [], "reasons": {}, "care": care}
        if not care:
            details |= self.details
        if body["listenwell"].get("mode") != "rerank":
            details["candidates"] = []  # a streamed reply is the only candidate
        yield chunk(body, {}, finish="stop", listenwell=details)
        yield "data: [DONE]\n\n"

    async def _held(self) -> None:
        await asyncio.to_thread(self.release.wait, 20)

    def _answer(self, said: str, seed: int) -> tuple[str, dict[str, Any] | None]:
        if "crisis" in said:
            return CARD, {"kind": "card", "resources": self.resources["en"]["resources"]}
        if "hint" in said:
            return QUESTION, {"kind": "question", "resources": self.resources["en"]["resources"]}
        if "bonjour" in said:
            return "I understand English only.", {"kind": "language", "resources": []}
        return self.reply.format(said=said, seed=seed), None


def problem(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return JSONResponse({"error": error}, status, headers)


def chunk(body: dict[str, Any], delta: dict[str, str], finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    record = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": body["model"],
        "choices": [choice],
        **more,
    }
    return f"data: {json.dumps({**record, **more})}\n\n"
