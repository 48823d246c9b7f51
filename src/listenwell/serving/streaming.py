"""A growing text as pieces that are never taken back, and the events that carry them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

LAST_WORD = re.compile(r"[^\s⺀-鿿豈-﫿＀-￯]*$")
"""The word that a text ends with: "do" may become "don't". Chinese has no such thing."""

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": still here\n\n"
"""A comment, which clients pass over: proxies close a connection on which nothing comes."""


class Pieces:
    """What may be sent of a text as it grows."""

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self.stops = stops
        self.sent = ""

    def more(self, text: str, final: bool = False) -> str:
        """What is new in it and will not change; at the end, all that is left."""
        text, stopped = cut(text, self.stops)
        if not final and not stopped:
            text = self._settled(text)
        if not final and not text.startswith(self.sent):
            return ""
        piece = text[len(self.sent) :]
        self.sent += piece
        return piece

    def _settled(self, text: str) -> str:
        """Without its last word, and without what a stop sequence may begin with."""
        text = LAST_WORD.sub("", text)
        held = max((_begun(text, stop) for stop in self.stops), default=0)
        return text[: len(text) - held].rstrip()


def cut(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop sequence, and whether there is one."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def _begun(text: str, stop: str) -> int:
    """How many characters at the end of a text may be the beginning of a stop sequence."""
    return next((size for size in range(min(len(stop), len(text)), 0, -1) if text.endswith(stop[:size])), 0)


def event(record: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
