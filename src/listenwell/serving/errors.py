"""Errors as clients of the OpenAI protocol expect them. No error quotes a message of the conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from listenwell.web.refusals import Refusal, refuse_as_openai


class ApiError(Exception):
    """A request was refused or failed."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def bad_request(message: str, param: str | None, code: str = "invalid_value") -> ApiError:
    return ApiError(Refusal(400, message, code, param))


def busy(seconds: int) -> ApiError:
    message = f"the server has as many requests as it can hold; try again in {seconds} s"
    return ApiError(Refusal(429, message, "server_busy", None, {"retry-after": str(seconds)}))


def failed() -> ApiError:
    message = "the system could not write this reply; nothing of it was kept, and the request can be made again"
    return ApiError(Refusal(500, message, "reply_failed", None))


def stopping() -> ApiError:
    return ApiError(Refusal(503, "the server is stopping; try again", "stopping", None, {"retry-after": "5"}))


async def on_api_error(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, ApiError)
    return refuse_as_openai(problem.refusal)


async def on_http_error(request: Request, problem: Exception) -> Response:
    """Handle what the framework refuses: unknown paths and methods, bodies that cannot be decoded."""
    assert isinstance(problem, HTTPException)
    codes = {404: ("not_found", "there is nothing at this path"), 405: ("method_not_allowed", "not by this method")}
    code, message = codes.get(problem.status_code, ("invalid_request", str(problem.detail)))
    param = "body" if problem.status_code == 400 else None
    return refuse_as_openai(Refusal(problem.status_code, message, code, param, dict(problem.headers or {})))


async def on_invalid(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    return refuse_as_openai(invalid(problem.errors()))


def invalid(problems: Sequence[Mapping[str, Any]]) -> Refusal:
    """Turn the first validation problem into a refusal."""
    first = problems[0]
    kind, path = first["type"], first["loc"]
    if kind == "json_invalid":
        return Refusal(400, f"the body is not JSON: {first['ctx']['error']}", "invalid_json", "body")
    param = field_name(path) or "body"
    code = _CODES.get(kind, "invalid_value")
    return Refusal(400, f"{param}: {_message(kind, first)}", code, param)


_CODES = {"missing": "missing_field", "extra_forbidden": "unknown_field", "unsupported": "unsupported_field"}


def _message(kind: str, problem: Mapping[str, Any]) -> str:
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is no field of this request"
    said = str(problem["msg"])
    return said[:1].lower() + said[1:]


def field_name(path: Sequence[Any]) -> str:
    """Format a location: ("body", "messages", 0, "role") becomes messages[0].role."""
    name = ""
    for part in path:
        if part in ("body", "query") and not name:
            continue
        if isinstance(part, int):
            name += f"[{part}]"
        elif part not in ("str", "list[TextPart]"):  # skip which member of a union was tried
            name += f".{part}" if name else str(part)
    return name
