"""The address of a server and its key: checked before the first request. The key is never shown."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

KEYS = ("LISTENWELL_API_KEY", "OPENAI_API_KEY")

HIDDEN = "[key]"


def checked_key(key: str) -> str:
    """Returns the key if it can be sent, else raises ValueError."""
    # The HTTP client would quote an invalid key in its error message.
    if not all("!" <= letter <= "~" for letter in key):
        raise ValueError(f"the key ({' or '.join(KEYS)}) holds spaces or letters that no key can have; copy it again")
    return key


def addresses(base_url: str) -> tuple[str, str]:
    """Returns the base URL to show, and the URL for requests."""
    wrong = "the base URL (--base-url) is expected as http://HOST:PORT/v1 or https://…"
    try:
        parts = urlsplit(base_url.strip())
        _ = parts.port
    except ValueError:
        raise ValueError(wrong) from None
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"{wrong}, without a user name or password: a key belongs in {KEYS[0]}")
    if parts.scheme not in ("http", "https") or not parts.hostname or not base_url.strip().isascii():
        raise ValueError(f"{wrong}, found {base_url!r}")
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    shown = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    return shown, urlunsplit((parts.scheme, parts.netloc, f"{path}/chat/completions", parts.query, ""))


class Secret:
    """A value that is hidden in its repr and in a traceback's locals."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return HIDDEN
