"""Keys: who may use a server. A file has one key per line, with a name before it where there are several:

# who          key
kitchen-page   lw-3f9c…
research       lw-77ab…
"""

from __future__ import annotations

import hmac
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from listenwell.web.refusals import Refusal, Refuse

SHORTEST = 16
"""Characters of a key: what is shorter can be guessed."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a file, as digests."""

    names: dict[bytes, str]

    @classmethod
    def of(cls, lines: Iterable[str], where: str = "the key file") -> Keys:
        names: dict[bytes, str] = {}
        for number, line in enumerate(lines, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) > 2:
                raise ValueError(
                    f"{where} line {number}: expected a key, or a name and a key; found {len(words)} words"
                )
            key = words[-1]
            if len(key) < SHORTEST:
                raise ValueError(
                    f"{where} line {number}: the key has {len(key)} characters, expected at least {SHORTEST} "
                    f"(python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one)"
                )
            names[_digest(key)] = words[0] if len(words) == 2 else f"key-{len(names) + 1}"
        if not names:
            raise ValueError(f"{where}: has no key; write one per line")
        return cls(names)

    @classmethod
    def load(cls, path: str | Path) -> Keys:
        place = Path(path).expanduser()
        try:
            lines = place.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as problem:
            raise ValueError(f"{place}: is not UTF-8 text") from problem
        except OSError as problem:
            raise ValueError(
                f"{place}: the key file cannot be read: {problem.strerror or problem}; make one with "
                f"(umask 077; python -c 'import secrets; print(secrets.token_urlsafe(32))' > {place})"
            ) from problem
        return cls.of(lines, str(place))

    def name(self, key: str) -> str | None:
        """Whose key it is. All are compared, so that the time reveals nothing."""
        digest, owner = _digest(key), None
        for known, name in self.names.items():
            if hmac.compare_digest(known, digest):
                owner = name
        return owner


def readable_by_others(path: str | Path) -> bool:
    """Whether other users of the machine can read the file."""
    if os.name != "posix":
        return False
    return bool(Path(path).expanduser().stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


class KeyCheck:
    """Lets through who sends a key as `Authorization: Bearer KEY`. Its name is noted in the scope as `key`."""

    def __init__(self, app: ASGIApp, refuse: Refuse, keys: Keys, is_open: Callable[[Scope], bool]) -> None:
        """`is_open` says what is there for everybody."""
        self.app, self.refuse, self.keys, self.is_open = app, refuse, keys, is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self.is_open(scope):
            kind, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
            name = self.keys.name(key.strip()) if kind.lower() == "bearer" else None
            if name is None:
                await self.refuse(self._refusal(bool(kind)))(scope, receive, send)
                return
            scope["key"] = name
        await self.app(scope, receive, send)

    def _refusal(self, given: bool) -> Refusal:
        message = "this key is not known here" if given else "this server requires a key: Authorization: Bearer KEY"
        return Refusal(401, message, "invalid_api_key", "Authorization", {"www-authenticate": "Bearer"})
