"""Listening: predicts what the speaker of a dialogue feels and what people would reply with.

>>> ListenerClassifier.load("house-listener").predict([[Turn("speaker", "I lost my job today")]])[0].emotion
'devastated'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint, HasCheckpoint
from listenwell.data.batching import collate, encode, ordered_batches
from listenwell.data.dialogue import Example, Turn
from listenwell.labels.sets import LabelSet
from listenwell.labels.taxonomy import EMOTION_ID, POSITIVE
from listenwell.models.listener import Listener
from listenwell.weights import find

DEFAULT = "house-listener"


@dataclass(frozen=True, slots=True)
class ListenerPrediction:
    """A listener's predictions for a dialogue, as probabilities, likeliest first."""

    emotions: dict[str, float]
    """The speaker's emotion: each that the listener knows."""
    labels: dict[str, float]
    """What people would reply with: each label that the listener knows."""

    @property
    def emotion(self) -> str:
        """The likeliest emotion."""
        return next(iter(self.emotions))


AMBIGUOUS: frozenset[str] = frozenset({"anticipating", "caring", "nostalgic", "sentimental", "surprised"})
"""Emotions that go with good and bad news, whatever their side in MIME: they do not tell the mood of a turn."""

CLEAR = 0.2
"""The absolute mood (−1 to 1) from which a turn counts as good or bad; below, it is unclear."""


@dataclass(frozen=True, slots=True)
class Now:
    """The feeling in the last turn by itself. The dialogue's emotion lags behind, as it is mostly in the first turn."""

    emotion: str
    """One of the 32, from the listener."""
    label: str
    """One of the 41, from the labeller of turns."""
    mood: float
    """From −1 (bad) to 1 (good): a weighted average of the listener, the labeller and the polarity classifier."""

    @property
    def is_bad(self) -> bool:
        return self.mood <= -CLEAR

    @property
    def is_good(self) -> bool:
        return self.mood >= CLEAR

    def __str__(self) -> str:
        kind = "bad" if self.is_bad else "good" if self.is_good else "unclear"
        return f"{self.emotion}, mood {kind} ({self.mood:+.2f})"


def mood_of(chances: Mapping[str, float]) -> float:
    """p(positive) − p(negative) over emotions or all labels; ambiguous emotions and other labels count as neither."""
    clear = [(name, chance) for name, chance in chances.items() if name in EMOTION_ID and name not in AMBIGUOUS]
    return sum(chance if name in POSITIVE else -chance for name, chance in clear)


def felt_now(prediction: ListenerPrediction, labels: Mapping[str, float], polarity: float) -> Now:
    """Combines the predictions for the last turn alone. The listener, the most reliable classifier, counts twice."""
    mood = (2 * mood_of(prediction.emotions) + mood_of(labels) + polarity) / 4
    return Now(prediction.emotion, max(labels, key=lambda name: labels[name]), mood)


def listens(ckpt: Checkpoint) -> bool:
    """Whether a checkpoint is a listener."""
    return isinstance(ckpt.model, Listener)


class ListenerClassifier(HasCheckpoint):
    """A listener with its tokenizer."""

    def __init__(self, ckpt: Checkpoint) -> None:
        if not isinstance(ckpt.model, Listener):
            raise ValueError(f"{ckpt.name} does not listen to dialogues; {DEFAULT} does")
        self.name = ckpt.name
        self.checkpoint = ckpt
        self.model: Listener = ckpt.model.eval()

    @classmethod
    def load(cls, name_or_path: str | Path = DEFAULT) -> ListenerClassifier:
        """Loads a trained listener by name, or from the folder of a run or checkpoint."""
        return cls(checkpoint.load(find(name_or_path)))

    def log_probs(
        self, contexts: Sequence[Sequence[Turn]], done: Callable[[int], None] | None = None
    ) -> dict[str, np.ndarray]:
        """Returns log-probabilities (contexts, classes) for each head, calibrated if the listener is.

        Only the texts and speakers of the turns are read, not their labels. `done` is called with the number of
        contexts just finished.
        """
        items = [Example(str(row), _bare(turns, row)) for row, turns in enumerate(contexts)]
        data = encode(items, self.checkpoint.tokenizer, self.checkpoint.encoding)
        log_probs = {head: np.zeros((len(items), len(classes))) for head, classes in self.model.classes.items()}
        for rows in ordered_batches(data.lengths()):
            batch = collate(data, rows, self.checkpoint.tokenizer.pad)
            with torch.inference_mode():
                beliefs = self.model.predict(batch)
            for head, believed in beliefs.items():
                log_probs[head][rows] = believed.double().numpy()
            if done is not None:
                done(len(rows))
        return log_probs

    def predict(
        self, contexts: Sequence[Sequence[Turn]], done: Callable[[int], None] | None = None
    ) -> list[ListenerPrediction]:
        """Returns the prediction for each context."""
        return self.predictions(self.log_probs(contexts, done))

    def predictions(self, log_probs: Mapping[str, np.ndarray]) -> list[ListenerPrediction]:
        """Converts the log-probabilities of each head (contexts, classes) to one prediction per context."""
        return [
            ListenerPrediction(_ranked(emotions, self.model.emotions), _ranked(labels, self.model.label_set))
            for emotions, labels in zip(np.exp(log_probs["emotion"]), np.exp(log_probs["label"]), strict=True)
        ]


def _bare(turns: Sequence[Turn], row: int) -> tuple[Turn, ...]:
    if not turns:
        raise ValueError(f"dialogue {row}: there is nothing to listen to, it has no turn")
    return tuple(Turn(turn.speaker, turn.text) for turn in turns)


def _ranked(chances: np.ndarray, names: LabelSet) -> dict[str, float]:
    return {names.labels[index]: float(chances[index]) for index in np.argsort(-chances, kind="stable")}
