"""Maps the labels of turns to another set, or removes the emoticons that give labels away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from listenwell.data.dialogue import Dialogue, Turn
from listenwell.labels.polarity import one_polarity


def by_polarity(dialogue: Dialogue) -> Dialogue:
    """The dialogue with its turns' labels mapped to polarities; a label without one is dropped."""
    return replace(dialogue, turns=tuple(_polarised(turn, dialogue.source) for turn in dialogue.turns))


def _polarised(turn: Turn, source: str) -> Turn:
    if turn.label is None:
        return turn
    name = one_polarity(source, [turn.label.name])
    return replace(turn, label=None if name is None else replace(turn.label, name=name))


def renamed(dialogue: Dialogue, names: Mapping[str, str]) -> Dialogue:
    """The dialogue with the labels of its turns renamed according to `names`; other labels stay as they are."""
    labels = [
        turn.label and replace(turn.label, name=names.get(turn.label.name, turn.label.name)) for turn in dialogue.turns
    ]
    return replace(
        dialogue, turns=tuple(replace(turn, label=label) for turn, label in zip(dialogue.turns, labels, strict=True))
    )


def without_emoticons(dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
    """The dialogues without [哈哈] and the like; a dialogue with a turn of nothing else is dropped."""
    from listenwell.data.sources.cleaning.steps import strip_emoticons  # sources import this module

    for dialogue in dialogues:
        turns = tuple(replace(turn, text=strip_emoticons(turn.text).strip()) for turn in dialogue.turns)
        if all(turn.text for turn in turns):
            yield replace(dialogue, turns=turns)
