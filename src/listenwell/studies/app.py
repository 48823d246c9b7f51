"""The HTTP app of one study: pages for raters, their answers, and the report for holders of its key."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from jinja2 import Environment, StrictUndefined
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError
from starlette.staticfiles import StaticFiles

from listenwell.studies.payload import Payloads
from listenwell.studies.rating import MAX_ID, Given, Ratings, RefusedError, UnknownLinkError
from listenwell.studies.records import Study
from listenwell.studies.server_lock import ServerLock
from listenwell.studies.store import Store
from listenwell.web.body import BodyLimit
from listenwell.web.headers import SecurityHeaders
from listenwell.web.origin import HostAndOrigin
from listenwell.web.refusals import Refusal

MAX_BODY = 512 * 1024
"""Maximum bytes of a request: room for some hundred answers."""

Token = Annotated[str, PathParameter(max_length=MAX_ID)]


class AnswerIn(BaseModel):
    id: str = Field(min_length=1, max_length=MAX_ID)
    item: str = Field(min_length=1, max_length=MAX_ID)
    values: dict[str, Any]
    seconds: float = Field(ge=0, le=1e7)


class AnswersIn(BaseModel):
    answers: list[AnswerIn] = Field(min_length=1, max_length=200)


def make_app(
    store: Store,
    study: Study,
    lock: ServerLock | None = None,
    report: Callable[[], tuple[str, str]] | None = None,
    hosts: Collection[str] = (),
) -> FastAPI:
    """Build the app of a study. `report` makes the HTML report and its content security policy; `lock` is renewed while
    the app runs; `hosts` are the host names the server accepts besides localhost and IP addresses."""
    ratings = Ratings(store, study)
    payloads = Payloads(ratings, store.design(study))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if lock is not None:
            lock.keep_alive()
        yield
        if lock is not None:
            lock.release()

    app = FastAPI(title="listenwell study", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    pages = Pages(study.spec.language or study.spec.spoken)
    _add_errors(app, lock)
    _add_pages(app, ratings, payloads, pages)
    _add_api(app, ratings, payloads)
    _add_report(app, study, report, pages)
    app.mount("/static", _static())
    app.add_middleware(BodyLimit, refuse=_refuse, most=MAX_BODY)
    app.add_middleware(HostAndOrigin, refuse=_refuse, hosts=hosts)
    app.add_middleware(SecurityHeaders, may_be_kept=lambda path: path.startswith("/static/"))
    return app


def _refuse(refusal: Refusal) -> Response:
    return JSONResponse({"detail": refusal.message}, refusal.status, dict(refusal.headers))


class Pages:
    """The HTML that raters see before any script runs."""

    def __init__(self, language: str) -> None:
        self.language = language
        folder = resources.files("listenwell.studies").joinpath("templates")
        environment = Environment(autoescape=True, undefined=StrictUndefined)
        self._rate = folder.joinpath("rate.html").read_text(encoding="utf-8")
        self._message = environment.from_string(folder.joinpath("message.html").read_text(encoding="utf-8"))

    def rate(self) -> HTMLResponse:
        return HTMLResponse(self._rate)

    def message(self, which: str, status: int, completion_code: str | None = None) -> HTMLResponse:
        page = self._message.render(message=which, language=self.language, completion_code=completion_code)
        return HTMLResponse(page, status)


def _add_pages(app: FastAPI, ratings: Ratings, payloads: Payloads, pages: Pages) -> None:
    @app.get("/r/{token}")
    def rate(token: Token) -> Response:
        try:
            ratings.rater(token)
        except UnknownLinkError:
            return pages.message("unknown", 404)
        return pages.rate()

    @app.get("/join/{code}")
    def join(code: Token, rater: Annotated[str, Query(max_length=MAX_ID)] = "") -> Response:
        if not secrets.compare_digest(code.encode(), ratings.study.join_code.encode()):
            return pages.message("unknown", 404)
        if ratings.is_closed() and not ratings.has_joined(rater):  # those who joined may have answers to send
            return pages.message("closed", 410)
        try:
            token = ratings.join(rater).token
        except RefusedError:
            return pages.message("unknown", 400)
        # Relative, so that a study also works under a path of a reverse proxy.
        return RedirectResponse(f"../r/{token}", 303)


def _add_api(app: FastAPI, ratings: Ratings, payloads: Payloads) -> None:
    @app.get("/api/{token}")
    def state(token: Token) -> dict[str, Any]:
        return payloads.state(token)

    @app.post("/api/{token}/answers")
    def answer(token: Token, sent: AnswersIn) -> Response:
        given = [Given(one.id, one.item, one.values, one.seconds) for one in sent.answers]
        stored, refused = ratings.store_answers(token, given)
        if refused:
            first = next(iter(refused.values()))
            return JSONResponse({"detail": first, "stored": stored, "refused": refused}, 422)
        return JSONResponse({"stored": stored})

    @app.post("/api/{token}/task/{task}/done")
    def done(token: Token, task: Token) -> dict[str, Any]:
        try:
            ratings.finish(token, task)
        except RefusedError as problem:
            raise HTTPException(409, str(problem)) from None
        return {"done": task}


def _add_report(app: FastAPI, study: Study, report: Callable[[], tuple[str, str]] | None, pages: Pages) -> None:
    @app.get("/report")
    def show(key: Annotated[str, Query(max_length=MAX_ID)] = "") -> Response:
        if report is None or not secrets.compare_digest(key.encode(), study.report_key.encode()):
            return pages.message("unknown", 404)
        page, policy = report()
        return HTMLResponse(page, headers={"content-security-policy": policy})


def _add_errors(app: FastAPI, lock: ServerLock | None) -> None:
    @app.exception_handler(UnknownLinkError)
    def unknown(_: Request, problem: UnknownLinkError) -> Response:
        return JSONResponse({"detail": str(problem)}, 404)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return JSONResponse({"detail": f"{place}: {first['msg']}".lstrip(": ")}, 422)

    @app.exception_handler(SQLAlchemyError)
    def away(_: Request, problem: SQLAlchemyError) -> Response:
        # Nothing was committed; the page keeps its answers and tries again.
        return JSONResponse({"detail": "the store is busy or away; please try again"}, 503, {"Retry-After": "2"})

    @app.middleware("http")
    async def only_one_server(request: Request, call_next: Any) -> Response:
        if lock is not None and lock.is_lost:
            return JSONResponse({"detail": "another server has taken over this study"}, 503)
        return await call_next(request)


def _static() -> StaticFiles:
    own = Path(str(resources.files("listenwell.studies"))) / "static"
    shared = Path(str(resources.files("listenwell"))) / "web" / "static"
    app = StaticFiles(directory=own, check_dir=False)
    app.all_directories = [own, shared]
    return app
