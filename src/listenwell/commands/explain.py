"""The output of `/why`: the system's explanation of a reply, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.text import Text

from listenwell.commands.display import table
from listenwell.systems.conversation import Exchange
from listenwell.systems.reply import Reply

SHOWN = 3
"""The number of most likely emotions to show."""
SHOWN_SEPARATELY = ("care", "heard", "does", "probability", "likeliest")
"""Reasons that are shown elsewhere; all others go into a table by name."""


def why(exchange: Exchange, context: Sequence[str]) -> Iterator[RenderableType]:
    """What was recognized, overall and turn by turn; what was chosen; the reasons; which candidates were considered."""
    reply = exchange.reply
    if exchange.is_care:
        reason = reply.reasons["care"]
        detected = f"it cannot read this ({reason})" if reason.startswith("language: ") else ""
        detected = detected or f"a sign of danger was detected ({reason})"
        yield Text(f"{detected}: these words are fixed, no model wrote them.")
        return
    yield from _predictions(reply, context)
    if exchange.label is not None:
        yield Text(f"The emotion-intent classifier labels your message: {exchange.label.name}.")
    yield from _chosen(reply)
    others = [(escape(name), _shown(value)) for name, value in reply.reasons.items() if name not in SHOWN_SEPARATELY]
    if others:
        yield table("reasons", ("reason", "value"), others)
    if len(reply.candidates) > 1:
        yield _considered(reply)


def _predictions(reply: Reply, context: Sequence[str]) -> Iterator[RenderableType]:
    if reply.emotions:
        yield _likely("heard", "emotion", dict(list(reply.emotions.items())[:SHOWN]))
    elif reply.emotion is not None:
        yield Text(f"heard: {reply.emotion}")
    turns = reply.reasons.get("heard")
    if turns:
        texts = list(context)[-len(turns) :]
        who = ["you" if (len(texts) - index) % 2 else "I" for index in range(len(texts))]
        rows = [
            (one, escape(_short(text)), escape(str(emotion or "nothing named")))
            for one, text, emotion in zip(who, texts, turns[-len(texts) :], strict=True)
        ]
        yield table("heard, turn by turn", ("who", "said", "heard as"), rows)
    elif reply.emotion is None:
        yield Text(f"{reply.system} does not name emotions: it answers the words alone.")


def _chosen(reply: Reply) -> Iterator[RenderableType]:
    if reply.label is None:
        return
    chance = reply.reasons.get("probability")
    yield Text(f"does: {reply.label}" + ("" if chance is None else f" ({100 * chance:.0f} %)"))
    if likeliest := reply.reasons.get("likeliest"):
        yield _likely("likeliest labels", "to do or express", likeliest)


def _considered(reply: Reply) -> RenderableType:
    """The candidates with their scores and score terms, as far as the system reports them."""
    scored = len({candidate.score for candidate in reply.candidates}) > 1  # an endpoint gives all the same score
    terms = list(dict.fromkeys(name for candidate in reply.candidates for name in candidate.terms))
    rows = []
    for index, candidate in enumerate(reply.candidates):
        numbers = [f"{candidate.score:.2f}"] if scored else []
        numbers += [f"{candidate.terms[name]:.2f}" if name in candidate.terms else "" for name in terms]
        what = "" if index else "said"
        if candidate.vetoed:
            what = f"{what and 'said, though it '}{' and '.join(candidate.vetoed)}"
        rows.append((*numbers, escape(candidate.text) or "(nothing)", what))
    right = [*(["score"] if scored else []), *map(escape, terms)]
    return table("considered" + (", best first" if scored else ""), (*right, "reply", ""), rows, right=right)


def _likely(title: str, column: str, chances: Mapping[str, float]) -> RenderableType:
    rows = [(escape(name), f"{100 * chance:.0f} %", "█" * round(20 * chance)) for name, chance in chances.items()]
    return table(title, (column, "chance", ""), rows, right=("chance",))


def _shown(value: Any) -> str:
    """Format a reason for display."""
    if isinstance(value, Mapping):
        return ", ".join(f"{escape(str(name))} {_shown(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return f"{value:.2f}" if isinstance(value, float) else escape(str(value))


def _short(text: str, width: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
