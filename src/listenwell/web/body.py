"""The body of a request: read whole before the application sees it, within a size and a time."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from listenwell.web.refusals import Refusal, Refuse


class BodyLimit:
    """Refuses a body that is longer than `most` bytes, or does not come within `seconds`."""

    def __init__(self, app: ASGIApp, refuse: Refuse, most: int, seconds: float = 30.0) -> None:
        self.app, self.refuse, self.most, self.seconds = app, refuse, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > self.most:
            await self.refuse(self._too_long())(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self.seconds):
                body = await self._read(receive)
        except TimeoutError:
            refusal = Refusal(408, f"the body did not come within {self.seconds:g} seconds", "body_too_slow", "body")
            await self.refuse(refusal)(scope, receive, send)
            return
        if body is None:
            return  # the client has left
        if len(body) > self.most:
            await self.refuse(self._too_long())(scope, receive, send)
            return
        await self.app(scope, _replayed(body, receive), send)

    async def _read(self, receive: Receive) -> bytes | None:
        """The body, or a little more than is allowed of it; None where the client left before its end."""
        parts: list[bytes] = []
        length = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            length += len(parts[-1])
            if not message.get("more_body", False) or length > self.most:
                return b"".join(parts)

    def _too_long(self) -> Refusal:
        message = f"the body is longer than the {self.most:,} bytes that this server reads"
        # The rest of the body is not read: the connection cannot be used again.
        return Refusal(400, message, "body_too_long", "body", {"connection": "close"})


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
