"""Small classifiers that a model carries as parts and that read its own tokens: an emotion detector, an evaluator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from listenwell.contract import Model, Sequence, Vocabulary
from listenwell.labels.sets import LabelSet
from listenwell.models.text_encoder import TextEncoder

DETECTOR, EVALUATOR = "detector", "evaluator"
POSITIVE = "positive"


class TextParts:
    """The parts of one model by name. They are frozen and not submodules: a checkpoint stores them separately."""

    def __init__(self, owner: str, names: Iterable[str], emotions: LabelSet | None = None) -> None:
        """`emotions` is the label set that a detector must predict."""
        self.owner = owner
        self.names = tuple(names)
        self.emotions = emotions
        self.parts: dict[str, Any] = {}

    def attach(self, parts: Mapping[str, Any]) -> None:
        for name in self.names:
            if name in parts:
                self._check(name, parts[name].model)
                parts[name].model.requires_grad_(False).eval()
        self.parts = {name: part for name, part in parts.items() if name in self.names}

    def _check(self, name: str, model: Model) -> None:
        if not isinstance(model, TextEncoder):
            raise ValueError(f"{self.owner}: its part {name} must be a text-encoder, found {type(model).__name__}")
        labels = model.label_set
        if name == DETECTOR and self.emotions is not None and labels.labels != self.emotions.labels:
            raise ValueError(f"{self.owner}: its detector predicts {labels.name}, but emotions is {self.emotions.name}")
        if name == EVALUATOR and POSITIVE not in labels:
            raise ValueError(f"{self.owner}: its evaluator predicts {labels.name}, expected polarity")

    def __contains__(self, name: str) -> bool:
        return name in self.parts

    def get(self, name: str, device: torch.device) -> TextEncoder:
        if name not in self.parts:
            raise ValueError(f"{self.owner} has no {name}: name one in the recipe, parts: {{{name}: …}}")
        model: TextEncoder = self.parts[name].model
        return model.to(device)

    def token(self, token: int) -> str:
        """A token as text: the parts share the model's tokenizer."""
        return next(iter(self.parts.values())).tokenizer.token(token)

    @torch.no_grad()
    def judge(self, written: Sequence, vocabulary: Vocabulary) -> Tensor:
        """log p(polarity | text) of replies, (batch, labels)."""
        evaluator = self.get(EVALUATOR, written.tokens.device)
        return evaluator.log_probs_of(written.as_source(vocabulary.ctx, vocabulary.end))

    def positive(self, log_probs: Tensor) -> Tensor:
        """P(positive), (batch,)."""
        return log_probs[:, self.get(EVALUATOR, log_probs.device).label_set.ids[POSITIVE]].exp()
