"""The application: routes and middleware."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Query
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from listenwell import __version__
from listenwell.configuration import ConfigError
from listenwell.serving.care import CarePool, care_record, resource_list
from listenwell.serving.chat import Chat
from listenwell.serving.engine import Ticket
from listenwell.serving.errors import ApiError, bad_request, on_api_error, on_http_error, on_invalid
from listenwell.serving.metrics import Metrics
from listenwell.serving.schema import ChatRequest, UnderstandRequest, model_name, turns_of
from listenwell.serving.served import Served, load_served
from listenwell.serving.settings import ENVIRONMENT, Settings
from listenwell.systems.safety import load_resources
from listenwell.systems.safety.resources import LANGUAGES
from listenwell.web.body import BodyLimit
from listenwell.web.headers import SecurityHeaders
from listenwell.web.keys import KeyCheck, Keys
from listenwell.web.origin import HostAndOrigin
from listenwell.web.rates import Buckets, RateLimit
from listenwell.web.refusals import refuse_as_openai

HERE = Path(__file__).parent
SHARED = HERE.parent / "web" / "static"
CHAT = "/v1/chat/completions"

SWITCH = 0.0005
"""Thread switch interval in seconds. The engine thread takes the GIL hundreds of times per decoding step; with Python's
default of 0.005 it would wait ten times as long for the safety rules."""


def is_page(path: str) -> bool:
    """Whether the path is the page or one of its files. They hold no secrets; the page asks for the key itself."""
    return path == "/" or path.startswith("/static/")


def is_open(scope: Scope) -> bool:
    """Whether the request needs no key: the health check and the page."""
    return scope["method"] in ("GET", "HEAD") and (scope["path"] == "/health" or is_page(scope["path"]))


def create_app(settings: Settings, served: Mapping[str, Served], metrics: Metrics | None = None) -> FastAPI:
    """Build the server's application from loaded systems. It starts their engines and stops them on shutdown."""
    metrics = metrics or Metrics()
    care = CarePool()
    keys = None if settings.api_key_file is None else Keys.load(settings.api_key_file)
    buckets = None if keys is None else Buckets(settings.rate, settings.burst)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        for one in served.values():
            one.start()
        yield
        for one in served.values():  # in a thread: the loop still has to notify waiting clients
            await asyncio.to_thread(one.engine.stop)
        care.close()

    app = FastAPI(title="listenwell", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.metrics, app.state.served = metrics, served
    app.add_exception_handler(ApiError, on_api_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    _add_api(app, served, Chat(care, settings.limits, metrics, buckets), settings)
    _add_page(app)
    # The last middleware added is the first to see a request.
    app.add_middleware(BodyLimit, refuse=refuse_as_openai, most=settings.limits.body_bytes)
    if keys is not None and buckets is not None:
        app.add_middleware(RateLimit, refuse=refuse_as_openai, buckets=buckets, skipped=lambda path: path == CHAT)
        app.add_middleware(KeyCheck, refuse=refuse_as_openai, keys=keys, is_open=is_open)
    if settings.allow_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.allow_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    app.add_middleware(
        HostAndOrigin, refuse=refuse_as_openai, hosts=settings.allowed_hosts, origins=settings.allow_origins
    )
    app.add_middleware(Counted, metrics=metrics)
    app.add_middleware(SecurityHeaders, may_be_kept=is_page)
    return app


def _add_api(app: FastAPI, served: Mapping[str, Served], chat: Chat, settings: Settings) -> None:
    started = int(time.time())
    names = list(served)

    @app.post(CHAT, responses=_ERRORS)
    async def complete(body: ChatRequest, request: Request) -> Response:
        """Create a reply in the OpenAI protocol, complete or as a stream of events."""
        return await chat.respond(body, served[model_name(body.model, names)], request)

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """List the served models; the first is the default."""
        return {"object": "list", "data": [_model(one, started) for one in served.values()]}

    @app.get("/v1/models/{name:path}", responses=_ERRORS)
    async def model(name: str) -> dict[str, Any]:
        """Describe one served model."""
        return _model(served[model_name(name, names)], started)

    @app.post("/v1/understand", responses=_ERRORS)
    async def understand(body: UnderstandRequest) -> dict[str, Any]:
        """Analyze a conversation without replying: the emotion, a label for each turn, a plan."""
        one = served[model_name(body.model, names)]
        turns = turns_of(body.messages, settings.limits)
        fixed = await chat.care.ask(one.wrapper, turns, None)
        ticket = Ticket(None, call=lambda: one.understand(turns))
        one.engine.submit([ticket])
        try:
            heard = await ticket.wait()
        finally:
            one.engine.cancel(ticket)
        record = None if fixed is None else care_record(fixed, one.wrapper.resources)
        return {"model": one.name, **heard, "care": record}

    @app.get("/v1/resources", responses=_ERRORS)
    async def resources(
        region: str | None = Query(None, max_length=40), language: str = Query("en", max_length=10)
    ) -> dict[str, Any]:
        """List crisis resources; for the server's region if none is given."""
        if language not in LANGUAGES:
            raise bad_request(f"language: one of {', '.join(LANGUAGES)}", "language")
        try:
            found = load_resources(region=region)
        except ConfigError as problem:
            raise bad_request(f"region: {problem}", "region") from problem
        lines = resource_list(found, language)[1:]
        return {"region": region, "language": language, "emergency": found.emergency[language], "resources": lines}

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """Report that the server is up; needs no key."""
        waiting = {one.name: one.engine.held for one in served.values()}
        return {"status": "ok", "version": __version__, "models": names, "held": waiting, "pid": os.getpid()}

    @app.get("/metrics")
    async def numbers() -> Response:
        """Return the counters for Prometheus."""
        return Response(chat.metrics.page(), media_type=chat.metrics.content_type)


_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": about}
    for status, about in {
        400: "The request is refused; the error names the field.",
        401: "A key is missing or wrong.",
        404: "There is no such model.",
        429: "There is no room, or the key has used up its requests; Retry-After says how long.",
    }.items()
}


def _model(one: Served, started: int) -> dict[str, Any]:
    record = {"id": one.name, "object": "model", "created": started, "owned_by": "listenwell"}
    return {**record, "listenwell": one.describe()}


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(HERE / "templates" / "index.html", media_type="text/html")

    app.mount("/static", PageFiles(directory=HERE / "static", check_dir=False), name="static")


class PageFiles(StaticFiles):
    """The page's own static files, and those it shares with other pages."""

    def get_directories(self, directory: Any = None, packages: Any = None) -> list[Any]:
        return [*super().get_directories(directory, packages), SHARED]


class Counted:
    """Middleware that counts requests by route and status."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_and_count(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", None) or "other"
                self.metrics.requests.labels(route, str(message["status"])).inc()
            await send(message)

        await self.app(scope, receive, send_and_count)


def from_environment() -> FastAPI:
    """Build the application for a worker process, from settings in the environment."""
    sys.setswitchinterval(SWITCH)
    settings = Settings.from_json(os.environ[ENVIRONMENT])
    metrics = Metrics()
    return create_app(settings, load_served(settings, metrics), metrics)
