"""Who may call from a browser: the names that this server goes by, and the pages that are its own.

Without these checks any page could talk to a server on the reader's own machine: a name that its owner lets point to
127.0.0.1 (DNS rebinding) makes it the page's own, and a plain form may post to it from anywhere.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from listenwell.web.refusals import Refusal, Refuse


class HostAndOrigin:
    """Refuses a Host that is neither an address, localhost nor one of `hosts`, and an Origin that is another page's."""

    def __init__(
        self, app: ASGIApp, refuse: Refuse, hosts: Collection[str] = (), origins: Collection[str] = ()
    ) -> None:
        self.app, self.refuse = app, refuse
        self.hosts = {host.lower() for host in hosts}
        self.origins = {origin.lower().rstrip("/") for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self.check(Headers(scope=scope))) is not None:
            await self.refuse(refusal)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def check(self, headers: Headers) -> Refusal | None:
        given = headers.getlist("host")
        host = given[0].strip().lower() if len(given) == 1 else ""
        if not self.is_known(host):
            shown = host[:100] or "none, or several"
            message = f"this server is not called {shown!r}; start it with --allowed-host to add a name"
            return Refusal(403, message, "unknown_host", "Host")
        origin = headers.get("origin")
        if origin is not None and not self.is_own(origin.strip().lower(), host):
            message = "this page may not use the server; start it with --allow-origin to let it"
            return Refusal(403, message, "foreign_origin", "Origin")
        return None

    def is_known(self, host: str) -> bool:
        """No address can be made to point elsewhere, as a name can: addresses are let through."""
        name = _without_port(host)
        return bool(name) and (name == "localhost" or name in self.hosts or _is_address(name))

    def is_own(self, origin: str, host: str) -> bool:
        # A proxy may have taken off TLS, so that the scheme here is not that of the page.
        scheme, _, place = origin.partition("://")
        return origin in self.origins or (scheme in ("http", "https") and place == host)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
