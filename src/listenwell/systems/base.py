"""The contract of a System, which is anything that replies to a dialogue, and how it reads what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Literal, Protocol, TypeVar

import numpy as np

from listenwell.contract import Controls
from listenwell.data.dialogue import Dialogue, Example, Talk, Turn, readable
from listenwell.systems.reply import Reply

__all__ = [
    "LatentScores",
    "Likelihoods",
    "Precision",
    "System",
    "Talk",
    "as_answer",
    "as_context",
    "as_contexts",
    "as_dialogues",
    "draw_number",
    "read_each",
]

Result = TypeVar("Result")


@dataclass(slots=True)
class Likelihoods:
    """What perplexity is made of, one entry per item."""

    nll: np.ndarray
    """−log p(reply), the end token counted."""
    tokens: np.ndarray
    """Of the system's own tokenizer, the end token counted."""
    words: np.ndarray
    """By the word-level tokenizer, the end not counted."""
    unknown: np.ndarray
    """Target words that the system's vocabulary lacks."""
    unseen_types: int
    """How many different such words the items have."""


@dataclass(slots=True)
class LatentScores:
    """What a system with a discrete latent z makes of each item."""

    log_q: np.ndarray
    """(items, values) log q(z | context)."""
    nll: np.ndarray
    """(items, values) −log p(reply | context, z), the end token counted."""
    tokens: np.ndarray
    """(items,) of the reply, the end token counted."""


Precision = Literal["", "bf16"]
"""bf16: the layers are computed in half the bits, on machines that do that faster. The choice of words never is."""


class System(Protocol):
    """What everything above models talks to."""

    name: str

    def reply(self, talk: Talk, controls: Controls | None = None) -> Reply: ...

    def replies(
        self,
        talks: Sequence[Talk],
        controls: Controls | None = None,
        done: Callable[[int], None] | None = None,
        first: int = 0,
    ) -> list[Reply]:
        """One reply per dialogue; `done` is called with how many more are ready.

        What is drawn for a dialogue goes by its place in a corpus; `first` is that of the first one.
        """
        ...

    def likelihoods(self, items: Sequence[Example], done: Callable[[int], None] | None = None) -> Likelihoods | None:
        """None where it cannot be had, as from an endpoint."""
        ...


def as_context(talk: Talk, controls: Controls | None = None) -> tuple[Turn, ...]:
    """The turns to reply to. A dialogue that ends with the listener has nothing to reply to.

    A situation that the user gives beforehand is the speaker's first words. That of a dialogue is not read: a corpus
    has it, and no listener heard it.
    """
    dialogue = Dialogue.from_talk(talk)
    if dialogue.turns[-1].speaker != "speaker":
        raise ValueError("the last turn is the listener's own; a reply answers a turn of the speaker")
    if not any(turn.text.strip() for turn in dialogue.turns):
        raise ValueError("there is nothing to reply to: every turn is empty")
    turns = tuple(replace(turn, text=readable(turn.text)) for turn in dialogue.turns)
    situation = "" if controls is None or controls.situation is None else readable(controls.situation).strip()
    return _with_situation(situation, turns) if situation else turns


def as_answer(talk: Talk) -> Turn:
    """The one listener text that a backward model reads."""
    turns = Dialogue.from_talk(talk).turns
    if len(turns) != 1:
        raise ValueError(
            f"backward takes one listener text, found {len(turns)} turns: it writes all that came before the text"
        )
    if not turns[0].text.strip():
        raise ValueError("there is nothing to read backwards: the text is empty")
    return Turn("listener", readable(turns[0].text))


def as_contexts(talks: Iterable[Talk], controls: Controls | None = None) -> list[tuple[Turn, ...]]:
    """The turns to reply to, of each conversation."""
    return read_each(talks, lambda talk: as_context(talk, controls))


def as_dialogues(talks: Iterable[Talk]) -> list[Dialogue]:
    return read_each(talks, Dialogue.from_talk)


def read_each(talks: Iterable[Talk], read: Callable[[Talk], Result]) -> list[Result]:
    """Each conversation, read; what is wrong with one names its place, and one alone is not taken for many."""
    if isinstance(talks, str | bytes | Dialogue | Mapping) or not isinstance(talks, Iterable):
        raise TypeError(f"replies() takes a list of conversations, found {type(talks).__name__}; reply() takes one")
    results = []
    for number, talk in enumerate(talks, 1):
        if isinstance(talk, Mapping | Turn):
            raise TypeError(f"conversation {number} is a single turn; replies() takes a list of lists of turns")
        try:
            results.append(read(talk))
        except (TypeError, ValueError) as problem:
            raise type(problem)(f"conversation {number}: {problem}") from problem
    return results


def _with_situation(situation: str, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """In the speaker's first turn, and no turn of its own: in all that a model has read the two take turns."""
    first = next(index for index, turn in enumerate(turns) if turn.speaker == "speaker")
    opening = replace(turns[first], text=f"{situation}\n{turns[first].text}")
    return (*turns[:first], opening, *turns[first + 1 :])


def draw_number(context: Sequence[Turn]) -> int:
    """What is drawn in answering goes by this number and the seed: the same where the same was said, new at every turn.

    In a corpus the place of an item is its number instead.
    """
    said = "\n".join(f"{turn.speaker}: {turn.text}" for turn in context)
    return int.from_bytes(blake2b(said.encode("utf-8", "replace"), digest_size=8).digest())
