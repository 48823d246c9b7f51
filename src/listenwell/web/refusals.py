"""How a request is refused before it reaches the application. Each application has its own form of error."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from starlette.responses import PlainTextResponse, Response

from listenwell.data.dialogue import readable


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is wrong with a request."""

    status: int
    message: str
    code: str
    param: str | None = None
    """The part of the request that is wrong."""
    headers: Mapping[str, str] = field(default_factory=dict)


Refuse = Callable[[Refusal], Response]


def refuse_plainly(refusal: Refusal) -> Response:
    """As a line of text, for people."""
    return PlainTextResponse(f"{refusal.message}\n", refusal.status, dict(refusal.headers))


def refuse_as_openai(refusal: Refusal) -> Response:
    """As clients of the OpenAI protocol expect it."""
    return Response(
        json.dumps({"error": openai_error(refusal)}),
        refusal.status,
        dict(refusal.headers),
        media_type="application/json",
    )


def openai_error(refusal: Refusal) -> dict[str, str | None]:
    return {
        "message": readable(refusal.message),
        "type": _KINDS.get(refusal.status, "server_error" if refusal.status >= 500 else "invalid_request_error"),
        "param": refusal.param,
        "code": refusal.code,
    }


_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
