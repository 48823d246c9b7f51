"""The server's settings. Worker processes receive them as JSON in the environment; keys stay in their file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

ENVIRONMENT = "LISTENWELL_SERVE"
"""The environment variable that worker processes read their settings from."""


@dataclass(frozen=True)  # no slots: jsonargparse reads the __dict__ of an instance that is a default
class Limits:
    """The most that one request may ask for. What is beyond is refused with status 400, naming the field."""

    body_bytes: int = 262_144
    """Bytes of a request's body."""
    message_characters: int = 4_000
    """Characters of one message."""
    total_characters: int = 60_000
    """Characters of all messages of a conversation."""
    turns: int = 200
    """Messages of a conversation."""
    n: int = 8
    """Replies to one request."""
    stops: int = 4
    """Stop sequences."""
    stop_characters: int = 64
    """Characters of a stop sequence."""
    reply_tokens: int = 256
    """Tokens of a reply. A larger max_tokens is no mistake: it is a bound, and this is a lower one."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"limits.{name} is {value!r}, expected a whole number from 1 on")


@dataclass(frozen=True)
class Settings:
    """Settings of a server other than its address."""

    models: tuple[str, ...]
    """The systems that it serves; the first is the default."""
    base_url: str | None = None
    """Where the server of openai:NAME is."""
    api_key_file: str | None = None
    """Who may use it; everybody, if not given."""
    room: int = 256
    """Replies that are waited for at once, per system and worker; whoever comes then is told to come back."""
    rate: float = 600.0
    """Requests a minute for each key."""
    burst: int = 120
    """Requests that a key may make at once before its rate counts."""
    limits: Limits = field(default_factory=Limits)
    allowed_hosts: tuple[str, ...] = ()
    """Names that the server goes by, beside localhost and addresses."""
    allow_origins: tuple[str, ...] = ()
    """Pages elsewhere that may use it (CORS)."""
    threads: int = 0
    """Threads that compute; as many as there are cores for 0."""

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("no model to serve")
        if self.room < 1:
            raise ValueError(f"room is {self.room}, expected at least 1")
        if self.rate <= 0 or self.burst < 1:
            raise ValueError(f"rate is {self.rate:g} a minute and burst {self.burst}, expected both above 0")

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        record = json.loads(text)
        lists = {name: tuple(record[name]) for name in ("models", "allowed_hosts", "allow_origins")}
        return cls(**{**record, **lists, "limits": Limits(**record["limits"])})
