"""The System protocol (anything that replies to a dialogue) and the functions that read its input."""

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
    """The quantities that perplexity is computed from, one entry per item."""

    nll: np.ndarray
    """−log p(reply), including the end token."""
    tokens: np.ndarray
    """Reply length in the system's own tokens, including the end token."""
    words: np.ndarray
    """Reply length in words of the word-level tokenizer, without the end token."""
    unknown: np.ndarray
    """Number of target words missing from the system's vocabulary."""
    unseen_types: int
    """Number of distinct unknown words over all items."""


@dataclass(slots=True)
class LatentScores:
    """The scores of each item under a system with a discrete latent z."""

    log_q: np.ndarray
    """(items, values) log q(z | context)."""
    nll: np.ndarray
    """(items, values) −log p(reply | context, z), including the end token."""
    tokens: np.ndarray
    """(items,) reply length in tokens, including the end token."""


Precision = Literal["", "bf16"]
"""With "bf16", the layers are computed in bfloat16, which is faster on some machines; tokens are still chosen in full
precision."""


class System(Protocol):
    """The interface that all code above the models uses."""

    name: str

    def reply(self, talk: Talk, controls: Controls | None = None) -> Reply: ...

    def replies(
        self,
        talks: Sequence[Talk],
        controls: Controls | None = None,
        done: Callable[[int], None] | None = None,
        first: int = 0,
    ) -> list[Reply]:
        """Returns one reply per dialogue; `done` is called with the number of newly finished replies.

        Sampling for a dialogue depends on its position in the corpus; `first` is the position of the first dialogue.
        """
        ...

    def likelihoods(self, items: Sequence[Example], done: Callable[[int], None] | None = None) -> Likelihoods | None:
        """Returns None if likelihoods are unavailable, as from an endpoint."""
        ...


def as_context(talk: Talk, controls: Controls | None = None) -> tuple[Turn, ...]:
    """Returns the turns to reply to. A dialogue that ends with a listener turn is an error.

    A situation given in the controls is prepended to the speaker's first turn. A dialogue's own situation is not read:
    it is an annotation of the corpus that the listener never saw.
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
    """Returns the single listener turn that a backward model reads."""
    turns = Dialogue.from_talk(talk).turns
    if len(turns) != 1:
        raise ValueError(
            f"backward takes one listener text, found {len(turns)} turns: it writes all that came before the text"
        )
    if not turns[0].text.strip():
        raise ValueError("there is nothing to read backwards: the text is empty")
    return Turn("listener", readable(turns[0].text))


def as_contexts(talks: Iterable[Talk], controls: Controls | None = None) -> list[tuple[Turn, ...]]:
    """Returns the turns to reply to for each conversation."""
    return read_each(talks, lambda talk: as_context(talk, controls))


def as_dialogues(talks: Iterable[Talk]) -> list[Dialogue]:
    return read_each(talks, Dialogue.from_talk)


def read_each(talks: Iterable[Talk], read: Callable[[Talk], Result]) -> list[Result]:
    """Applies `read` to each conversation. Errors name its position; a single conversation instead of a list is one."""
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
    """Puts the situation into the speaker's first turn, not a turn of its own: in training data, the two alternate."""
    first = next(index for index, turn in enumerate(turns) if turn.speaker == "speaker")
    opening = replace(turns[first], text=f"{situation}\n{turns[first].text}")
    return (*turns[:first], opening, *turns[first + 1 :])


def draw_number(context: Sequence[Turn]) -> int:
    """Returns the number that, with the seed, determines sampling: equal for equal contexts, different at every turn.

    In a corpus, the position of an item is used instead.
    """
    said = "\n".join(f"{turn.speaker}: {turn.text}" for turn in context)
    return int.from_bytes(blake2b(said.encode("utf-8", "replace"), digest_size=8).digest())
