"""Split a growing text into pieces that never need to be retracted, and format them as events."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

LAST_WORD = re.compile(r"[^\s⺀-鿿豈-﫿＀-￯]*$")
"""The last word of a text, which may still change: "do" may become "don't". Does not apply to Chinese."""

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": still here\n\n"
"""A comment, which clients ignore. Without it, proxies close idle connections."""


class Pieces:
    """The parts of a growing text that can be sent."""

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self.stops = stops
        self.sent = ""

    def more(self, text: str, final: bool = False) -> str:
        """The new part of `text` that will not change anymore; if `final`, all the rest."""
        text, stopped = cut(text, self.stops)
        if not final and not stopped:
            text = self._settled(text)
        if not final and not text.startswith(self.sent):
            return ""
        piece = text[len(self.sent) :]
        self.sent += piece
        return piece

    def _settled(self, text: str) -> str:
        """Drop the last word and anything that may be the start of a stop sequence."""
        text = LAST_WORD.sub("", text)
        held = max((_begun(text, stop) for stop in self.stops), default=0)
        return text[: len(text) - held].rstrip()


def cut(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop sequence, and whether there is one."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def _begun(text: str, stop: str) -> int:
    """The number of characters at the end of a text that may be the start of a stop sequence."""
    return next((size for size in range(min(len(stop), len(text)), 0, -1) if text.endswith(stop[:size])), 0)


def event(record: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
