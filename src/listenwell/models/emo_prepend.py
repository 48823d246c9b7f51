"""EmoPrepend-1 (`emo-prepend`): the plain transformer, given a classifier's emotion, Rashkin et al. (2019).

The most likely emotion is prepended to the context as a token of its own. The classifier is the emotion side of
BERT (JT), so that the two models differ in how they use the emotion and how they generate, not in how they classify it.
It is trained by its own loss only, since the argmax passes no gradient. The reply is always conditioned on the
predicted emotion, in training as at inference time, never on the gold one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.contract import Batch, Controls, State, Vocabulary, WordPrior
from listenwell.data.dialogue import ROLES
from listenwell.layers.dropout import dropout
from listenwell.layers.transformer import sinusoids
from listenwell.models.bert_joint import (
    EmotionSide,
    EmotionSideConfig,
    lower_weights,
    make_backbone,
    with_architecture,
)
from listenwell.models.trs import Trs, TrsConfig

SPEAKER = ROLES.index("speaker")
"""The role whose emotion it is."""


@dataclass
class EmoPrependConfig(EmotionSideConfig, TrsConfig):  # type: ignore[misc]  # its emotion head has its own options
    """The transformer's sizes, and what the emotion is classified from."""

    emotion: Literal[True] = True
    """Always on: the emotion is prepended to the context."""


class EmoPrepend(Trs):
    """p(emotion | context), and p(reply | likeliest emotion, context)."""

    Config: ClassVar[type[TrsConfig]] = EmoPrependConfig
    emotion: EmotionSide  # type: ignore[assignment]  # instead of a linear layer

    def __init__(self, config: EmoPrependConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        self.backbone = make_backbone(config, vocabulary)
        self.lower = lower_weights(config, self.backbone)
        felt = config.width if self.backbone is None else self.backbone.width
        self.emotion = EmotionSide(config, felt, config.width, vocabulary.ctx)
        self.names = nn.Embedding(len(self.emotions), config.width)
        nn.init.normal_(self.names.weight, std=0.5)  # about the norm of a word

    @classmethod
    def complete(cls, config: EmoPrependConfig) -> EmoPrependConfig:
        return with_architecture(config)

    @property
    def pretrained(self) -> str | None:
        return None if self.backbone is None else self.config.backbone

    def initialise(self, prior: WordPrior) -> None:
        super().initialise(prior)
        if self.backbone is not None:
            self.backbone.load_pretrained(self.config.backbone)

    def borrowed(self) -> frozenset[str]:
        return frozenset(f"backbone.{name}" for name in self.lower)

    def borrow(self) -> None:
        if self.backbone is not None and self.lower:
            self.backbone.load_pretrained(self.config.backbone, self.lower)

    def classify_emotion(self, batch: Batch) -> Tensor:
        assert batch.context is not None
        return self.emotion.believe(self.emotion(batch.context, self.backbone, self.embed))

    def encode_behind_emotion(self, batch: Batch, emotion: Tensor) -> tuple[Tensor, Tensor]:
        """The context with an emotion prepended (batch, 1 + time, width), encoded, and its mask."""
        context = batch.context
        assert context is not None
        name = self.names(emotion) + self.speakers.weight[SPEAKER]
        name = name + sinusoids(1, self.config.width, name.device)
        name = dropout(name, self.config.dropout, self.training)[:, None]
        mask = F.pad(context.mask, (1, 0), value=True)
        return self.encoder(torch.cat([name, self.embed(context.tokens, context.roles, first=1)], dim=1), mask), mask

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        believed = self.classify_emotion(batch)
        return State(
            {"emotion": believed}, self.decoder.remember(*self.encode_behind_emotion(batch, believed.argmax(dim=-1)))
        )
