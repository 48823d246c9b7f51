"""Dialogues with the labels of their turns mapped onto another set."""

from __future__ import annotations

from dataclasses import replace

from listenwell.data.dialogue import Dialogue, Turn
from listenwell.labels.polarity import one_polarity


def by_polarity(dialogue: Dialogue) -> Dialogue:
    """The dialogue with its turns' labels mapped by polarity; a label without one is forgotten."""
    return replace(dialogue, turns=tuple(_polarised(turn, dialogue.source) for turn in dialogue.turns))


def _polarised(turn: Turn, source: str) -> Turn:
    if turn.label is None:
        return turn
    name = one_polarity(source, [turn.label.name])
    return replace(turn, label=None if name is None else replace(turn.label, name=name))
