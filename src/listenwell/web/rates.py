"""Token buckets: how many requests each key may make."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from listenwell.web.refusals import Refusal, Refuse

MOST = 10_000
"""Buckets that are remembered; the one unused for longest is forgotten first."""


@dataclass(slots=True)
class Bucket:
    tokens: float
    filled: float
    """When."""


class Buckets:
    """For each name a bucket that holds `burst` requests and gains `per_minute` a minute."""

    def __init__(self, per_minute: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = per_minute / 60, burst, clock
        self.buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, name: str) -> float:
        """0 where a request is allowed; otherwise the seconds until one is."""
        now = self.clock()
        bucket = self.buckets.setdefault(name, Bucket(self.burst, now))
        self.buckets.move_to_end(name)
        if len(self.buckets) > MOST:
            self.buckets.popitem(last=False)
        bucket.tokens = min(self.burst, bucket.tokens + (now - bucket.filled) * self.rate)
        bucket.filled = now
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0.0
        return (1 - bucket.tokens) / self.rate


class RateLimit:
    """Refuses a request whose key, noted in the scope by KeyCheck, has used up its bucket."""

    def __init__(
        self, app: ASGIApp, refuse: Refuse, buckets: Buckets, skipped: Callable[[str], bool] = lambda path: False
    ) -> None:
        """The paths that are `skipped` call `over_rate` themselves."""
        self.app, self.refuse, self.buckets, self.skipped = app, refuse, buckets, skipped

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self.skipped(scope["path"]):
            refusal = over_rate(self.buckets, scope)
            if refusal is not None:
                await self.refuse(refusal)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def over_rate(buckets: Buckets, scope: Scope) -> Refusal | None:
    """Takes from the bucket of the request's key; the refusal where it is empty. Without keys there is no rate."""
    name = scope.get("key")
    wait = 0.0 if name is None else buckets.take(name)
    if not wait:
        return None
    seconds = str(math.ceil(wait))
    message = f"this key has used up its requests for now; try again in {seconds} s"
    return Refusal(429, message, "rate_limit_exceeded", None, {"retry-after": seconds})
