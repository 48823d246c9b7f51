"""The inputs of metrics: replies, references, contexts, and anything else an evaluation can provide on request.

A metric names what it needs (`NEEDS`). Costly inputs come from providers, which are called once, when the first metric
needs them. An unavailable input raises `UnavailableError` with the reason, and the metrics that need it are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from listenwell.data.dialogue import Example
from listenwell.labels.taxonomy import EMOTION_ID, unknown_name
from listenwell.metrics.bootstrap import RESAMPLES, SEED, same_length

NEEDS: dict[str, str] = {
    "references": "the replies of people in the data",
    "contexts": "the turns that are answered",
    "likelihoods": "the system's likelihoods of the references",
    "labelled likelihoods": "the same, where only some of the references have a label",
    "oracle likelihoods": "the likelihoods of a system that is given the label of each reference",
    "given-label likelihoods": "the same; where the data has no label, a classifier's",
    "predicted emotions": "the emotion that the system predicts for each context",
    "true emotions": "the emotion of each item in the data, one of those that the system knows",
    "dialogue emotions": "the emotion of each dialogue in the data, one of the 32",
    "chosen labels": "the label that the system chooses for each reply",
    "likeliest labels": "the label that the system finds likeliest for each reply, before any fitting of the choice",
    "reference labels": "the label of each reference in the data, one of those that the system knows",
    "machine labels": "the label of each reference by a classifier of the 41",
    "classifier emotion-intent": "a classifier of the 41 labels",
    "classifier polarity": "a classifier of polarity",
    "first clauses' polarity": "a classifier of polarity, which reads how the replies begin",
    "classifier empathy": "a classifier of empathy, EPITOME's",
    "sentence vectors": "a sentence encoder",
    "word vectors": "word vectors as a text file, such as GloVe's: --vectors FILE, or one in LISTENWELL_DATA/glove",
}
"""The inputs that a metric may need, with descriptions. `classifier NAME` is a classifier of any label set."""

CLASSIFIER = "classifier "

Progress = Callable[[str, int], Callable[[int], None]]
"""Called with the name of a task and its number of items; returns a function to call with the number just done."""


class UnavailableError(Exception):
    """An input that a metric needs is unavailable; the message says why."""


def unavailable(reason: str) -> NoReturn:
    raise UnavailableError(reason)


def quiet(name: str, total: int) -> Callable[[int], None]:
    return lambda more: None


@dataclass(frozen=True)
class ClassifierOutput:
    """A classifier's predictions for some sides ("replies", "references", "contexts"), (texts, labels) each.

    An empathy classifier gives the expected level of each mechanism.
    """

    by: Mapping[str, str]
    """The classifier, for signatures."""
    names: Sequence[str]
    sides: Mapping[str, np.ndarray]

    def __getitem__(self, side: str) -> np.ndarray:
        return self.sides[side]


@dataclass
class Material:
    """Replies and their items, in the same order, and providers for everything else."""

    replies: Sequence[str]
    items: Sequence[Example]
    providers: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    resamples: int = RESAMPLES
    seed: int = SEED
    progress: Progress = quiet
    _shared: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        same_length(replies=self.replies, items=self.items)

    @property
    def resampling(self) -> dict[str, Any]:
        """The arguments that every metric with an interval takes."""
        return {"resamples": self.resamples, "seed": self.seed}

    def get(self, need: str) -> Any:
        """Returns an input by name; raises `UnavailableError` if it is unavailable. Either result is cached."""
        if need not in NEEDS and need not in self.providers and not need.startswith(CLASSIFIER):
            raise ValueError(unknown_name("need of a metric", need, NEEDS))
        value = self.shared(f"need {need}", lambda: self._provide(need))
        if isinstance(value, UnavailableError):
            raise value
        return value

    def _provide(self, need: str) -> Any:
        own: dict[str, Callable[[], Any]] = {
            "references": self._references,
            "contexts": self._contexts,
            "dialogue emotions": self._dialogue_emotions,
        }
        provider = self.providers.get(need) or own.get(need)
        try:
            if provider is None:
                raise UnavailableError(f"there is no {need.removesuffix('s')}: it needs {NEEDS.get(need, f'a {need}')}")
            return provider()
        except UnavailableError as reason:
            return reason

    def shared(self, name: str, make: Callable[[], Any]) -> Any:
        """Returns a value that several metrics share, computed once."""
        if name not in self._shared:
            self._shared[name] = make()
        return self._shared[name]

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The two-letter language codes of the items."""
        return tuple(sorted({str(getattr(item, "language", "en")).lower()[:2] for item in self.items}))

    @property
    def tok(self) -> str:
        """The unit of `words`, for signatures: Chinese is split into characters."""
        return "char" if self.languages == ("zh",) else "word"

    @cached_property
    def reply_words(self) -> list[list[str]]:
        return _words(self.replies)

    @cached_property
    def reference_words(self) -> list[list[str]]:
        return _words(self.get("references"))

    def _references(self) -> list[str]:
        if not any(item.reply for item in self.items):
            raise UnavailableError("no item has a reference")
        return [item.reply.text if item.reply else "" for item in self.items]

    def _contexts(self) -> list[str]:
        if not all(item.context for item in self.items):
            raise UnavailableError("not every item has a context")
        return [item.context[-1].text for item in self.items]

    def _dialogue_emotions(self) -> np.ndarray:
        gold = np.array([EMOTION_ID.get(item.emotion.name, -100) if item.emotion else -100 for item in self.items])
        if not (gold >= 0).any():
            raise UnavailableError("no dialogue in the data has one of the 32 emotions")
        return gold


def _words(texts: Sequence[str]) -> list[list[str]]:
    from listenwell.text.words import words  # imports the tokenizers

    return [words(text) for text in texts]
