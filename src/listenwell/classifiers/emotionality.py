"""The most emotional dialogues of a corpus, as MEED2 chooses them from subtitles (§ 3).

The emotionality of an utterance is the sum of the probabilities of the 32 emotions among the 41 labels; that of a
dialogue is the mean over its utterances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise

import numpy as np

from listenwell.classifiers.labeller import Labeller
from listenwell.data.dialogue import Dialogue
from listenwell.labels.taxonomy import EMOTIONS, LABEL_ID


def emotionality(
    dialogues: Iterable[Dialogue], labeller: Labeller, done: Callable[[int], None] | None = None
) -> np.ndarray:
    """Returns a number from 0 to 1 for each dialogue; `done` is called with the number of turns just read."""
    dialogues = list(dialogues)
    texts = [turn.text for dialogue in dialogues for turn in dialogue.turns]
    chances = labeller.distribution(texts, done)[:, [LABEL_ID[name] for name in EMOTIONS]].sum(axis=1)
    ends = accumulate((len(dialogue.turns) for dialogue in dialogues), initial=0)
    return np.array([chances[begin:end].mean() for begin, end in pairwise(ends)])


def most_emotional(
    dialogues: Iterable[Dialogue], labeller: Labeller, number: int, done: Callable[[int], None] | None = None
) -> list[Dialogue]:
    """Returns the `number` dialogues of highest emotionality, in corpus order; ties go to the earlier one."""
    if number < 1:
        raise ValueError(f"the number of dialogues to keep is {number}, expected at least 1")
    dialogues = list(dialogues)
    best = np.argsort(-emotionality(dialogues, labeller, done), kind="stable")[:number]
    return [dialogues[index] for index in sorted(best)]
