"""Conversation: the exchanges so far, the system that replies, and the controls for its replies.

There is no terminal or HTTP code here: the chat command and the server are both thin layers over it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from listenwell.data.dialogue import Dialogue, Label, Turn, readable
from listenwell.systems.capabilities import Capabilities
from listenwell.systems.controls import controls_from_request
from listenwell.systems.reply import Reply
from listenwell.weights import is_remote

if TYPE_CHECKING:
    from listenwell.classifiers.label_cache import Labels
    from listenwell.contract import Controls
    from listenwell.systems.base import System

RETRIES = 3
"""How many seeds a retry tries for a reply that differs from the earlier ones."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message and the reply to it."""

    message: str
    reply: Reply
    label: Label | None = None
    """The label that a separate classifier gives the message, if the system itself recognises nothing."""
    rejected: tuple[str, ...] = ()
    """Earlier replies to the same message that were replaced by a retry."""

    @property
    def is_care(self) -> bool:
        """Whether the reply is one of the fixed texts for signs of danger."""
        return "care" in self.reply.reasons

    @property
    def repeats(self) -> bool:
        """Whether a retry found no new reply."""
        return self.reply.text in self.rejected


class Conversation:
    """The exchanges so far with a system.

    A message is recorded only once its reply is complete; a failed or interrupted reply changes nothing.
    """

    def __init__(
        self,
        system: System,
        intent: str | None = None,
        positivity: float | None = None,
        situation: str | None = None,
        labeller: Callable[[], Labels | None] = lambda: None,
    ) -> None:
        """`labeller` is called only when needed: for messages to a system that recognises nothing itself."""
        self.system = system
        self.positivity = positivity
        self.situation = situation
        self.exchanges: list[Exchange] = []
        self.controls: Controls | None = None
        self._labeller = labeller
        self.set_intent(intent)

    @property
    def texts(self) -> list[str]:
        """Messages and replies in order, as a system reads them."""
        return [text for exchange in self.exchanges for text in (exchange.message, exchange.reply.text)]

    @property
    def last(self) -> Exchange | None:
        return self.exchanges[-1] if self.exchanges else None

    @property
    def intent(self) -> str | None:
        return None if self.controls is None else self.controls.label

    def set_intent(self, intent: str | None) -> None:
        """Sets what replies should do or express from now on: one of the system's labels, or None to let it choose."""
        self.controls = controls_from_request(self.system, intent, self.positivity, self.situation)

    # Say

    @property
    def streams(self) -> bool:
        """Whether a reply can be shown while it is written. The best of several candidates is known only at the end."""
        capabilities = Capabilities.of(self.system)
        decoding = capabilities.decoding
        one_candidate = decoding is None or (decoding.method != "beam" and decoding.candidates == 1)
        return one_candidate and capabilities.can_stream

    def say(self, text: str) -> Reply:
        return self._add(Exchange(text, self.system.reply([*self.texts, text], self.controls)))

    def stream(self, text: str) -> Iterator[str]:
        """Streams the reply: each item is the whole text so far."""
        reply = yield from self._growing(self.system, [*self.texts, text])
        self._add(Exchange(text, reply))

    # Undo and retry

    def undo(self) -> Exchange:
        """Removes the last exchange and returns it."""
        self._last_exchange("undo")
        return self.exchanges.pop()

    def retry(self) -> Reply:
        """Replaces the last reply with a different one. The fixed text of a care reply is kept."""
        last = self._last_exchange("retry")
        if last.is_care:
            return last.reply
        rejected = (*last.rejected, last.reply.text)
        for seed in range(RETRIES):
            other = self._with_seed(RETRIES * (len(rejected) - 1) + seed + 1)
            reply = other.reply([*self.texts[:-2], last.message], self.controls)
            if reply.text not in rejected:
                break
        return self._replace(replace(last, reply=reply, rejected=rejected))

    def stream_retry(self) -> Iterator[str]:
        """Like `retry`, but streams the reply and tries a single seed."""
        last = self._last_exchange("retry")
        rejected = (*last.rejected, last.reply.text)
        reply = yield from self._growing(self._with_seed(len(rejected)), [*self.texts[:-2], last.message])
        self._replace(replace(last, reply=reply, rejected=rejected))

    # Change

    def reset(self) -> None:
        self.exchanges = []

    def switch(self, system: System) -> list[str]:
        """Continues with another system. Drops the controls it does not support and returns their names."""
        intent, dropped, capabilities = self.intent, [], Capabilities.of(system)
        if intent is not None and not capabilities.takes_label:
            intent = None
            dropped.append("intent")
        if self.positivity is not None and not capabilities.takes_positivity:
            self.positivity = None
            dropped.append("positivity")
        self.system = system
        self.set_intent(intent)
        return dropped

    # Export

    def to_dialogue(self, id: str) -> Dialogue:
        """Returns the conversation as a Dialogue, the record that corpora are made of."""
        turns = []
        for exchange in self.exchanges:
            reply = exchange.reply
            label = None if reply.label is None else Label(reply.label, by="machine")
            # A turn in a file needs text, but a model may write an empty reply.
            turns += [Turn("speaker", exchange.message), Turn("listener", reply.text.strip() or "…", label)]
        return Dialogue(id, tuple(turns), situation=self.situation, source=f"chat with {' and '.join(self._names())}")

    def to_markdown(self, date: datetime | None = None) -> str:
        """Returns a human-readable transcript."""
        parts = [f"# Conversation with {_escaped(' and '.join(self._names()))}"]
        if date is not None:
            parts.append(f"{date:%Y-%m-%d %H:%M}")
        if self.situation:
            parts.append(f"Situation: {_escaped(self.situation)}")
        for exchange in self.exchanges:
            parts += ["**You**", _quoted(exchange.message)]
            parts += [f"**{_escaped(exchange.reply.system or self.system.name)}**", _quoted(exchange.reply.text)]
            if line := summary(exchange):
                parts.append(f"*{_escaped(line)}*")
        return readable("\n\n".join(parts) + "\n")

    # Inside

    def _names(self) -> list[str]:
        names = dict.fromkeys(exchange.reply.system or self.system.name for exchange in self.exchanges)
        return list(names) or [self.system.name]

    def _last_exchange(self, action: str) -> Exchange:
        if self.last is None:
            raise ValueError(f"nothing to {action}: nothing has been said yet")
        return self.last

    def _growing(self, system: Any, texts: Sequence[str]) -> Generator[str, None, Reply]:
        so_far = ""
        pieces = system.stream(texts, self.controls)
        with closing(pieces):
            while True:
                try:
                    so_far = next(pieces)
                except StopIteration as end:
                    return end.value or Reply(so_far, system=system.name)
                yield so_far

    def _add(self, exchange: Exchange) -> Reply:
        self.exchanges.append(self._labelled(exchange))
        return exchange.reply

    def _replace(self, exchange: Exchange) -> Reply:
        self.exchanges[-1] = self._labelled(exchange)
        return exchange.reply

    def _labelled(self, exchange: Exchange) -> Exchange:
        reply = exchange.reply
        if exchange.is_care or reply.emotion is not None or reply.reasons.get("heard"):
            return exchange
        labeller = self._labeller()
        return exchange if labeller is None else replace(exchange, label=labeller.label([exchange.message])[0])

    def _with_seed(self, offset: int) -> Any:
        """Returns the system with another seed, or the system itself if its decoding cannot be changed."""
        capabilities, system = Capabilities.of(self.system), cast("Any", self.system)
        decoding = capabilities.decoding
        if decoding is None or not capabilities.can_change_decoding:
            return system
        # A server samples anew by itself, and some servers refuse requests with a seed.
        changes: dict[str, Any] = {} if is_remote(self.system.name) else {"seed": decoding.seed + offset}
        if decoding.method != "sample":
            # Greedy decoding and beam search give the same reply with every seed.
            changes |= {"method": "sample", "temperature": 0.7, "top_p": 0.9}
        return system.with_decoding(**changes) if changes else system


@cache
def default_labeller() -> Labels | None:
    """Returns the bundled emotion-intent classifier; None if it, or something it needs, is not installed."""
    from listenwell.backbones.locate import at_hand
    from listenwell.classifiers.label_cache import CachedLabeller
    from listenwell.classifiers.labeller import Labeller

    if not at_hand("minilm"):  # its text encoder: a conversation downloads nothing
        return None
    try:
        return CachedLabeller(Labeller.load())
    except (ValueError, OSError, RuntimeError, ImportError):
        return None


def summary(exchange: Exchange) -> str:
    """Describes a reply in one line: the emotion of the dialogue, or of the last message, and what the reply does."""
    reply = exchange.reply
    if exchange.is_care:
        return ""
    parts = []
    if reply.emotions and reply.emotion is not None:
        parts.append(f"heard: {reply.emotion} ({100 * reply.emotions[reply.emotion]:.0f} %)")
    elif emotion := (reply.reasons.get("heard") or [reply.emotion])[-1]:
        parts.append(f"heard: {emotion}")
    elif exchange.label is not None:
        chance = exchange.label.confidence
        shown = "" if chance is None else f"{100 * chance:.0f} %, "
        parts.append(f"heard: {exchange.label.name} ({shown}by the classifier, not by {reply.system})")
    if reply.label is not None:
        chance = reply.reasons.get("probability")
        parts.append(f"does: {reply.label}" + (f" ({100 * chance:.0f} %)" if chance is not None else ""))
    return " · ".join(parts)


def _escaped(text: str) -> str:
    """Escapes the characters that Markdown would interpret."""
    text = re.sub(r"([\\`*_<\[\]])", r"\\\1", text)
    return re.sub(r"^(\s*)([#>+-]|\d+(?=[.)]))", lambda mark: f"{mark[1]}{_escaped_start(mark[2])}", text, flags=re.M)


def _escaped_start(mark: str) -> str:
    # In a numbered list, the period after the number is escaped, not the number.
    return f"{mark}\\" if mark.isdigit() else f"\\{mark}"


def _quoted(text: str) -> str:
    """Formats a text as a Markdown quote that keeps every line break."""
    lines = _escaped(text.strip() or "…").splitlines()
    return "\n".join(f"> {line}  " if line.strip() else ">" for line in lines).rstrip(" ")
