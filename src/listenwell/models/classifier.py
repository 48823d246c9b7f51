"""The classifier of one utterance: which of the 41 emotions and intents it has (`emotion-intent`), or which polarity.

A pretrained encoder with a linear layer on the mean of its positions (or on the start token), fine-tuned as a whole,
as Welivita and Pu (2020) and MEED2 do with BERT and RoBERTa, or in its upper layers alone. It reads the utterance
alone, which an example holds as its reply, and does not talk: `listenwell.classifiers.labeller` is what uses it.

    p(label | utterance) = softmax(W h / temperature)

`crisis`, by which crisis care listens, is one too. There h is the mean beside the maximum: a few words of a long
message may be all that is a sign.

The temperature is 1 while it learns; `listenwell calibrate` sets it on validation data, so that a confidence of 0.8
is right four times of five.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from listenwell.backbones.encoder import PretrainedEncoder, read_architecture
from listenwell.contract import Batch, Model, Moment, Term, Vocabulary, WordPrior
from listenwell.labels.sets import EMOTION_INTENT, label_set
from listenwell.labels.taxonomy import EMOTIONS
from listenwell.layers.dropout import Dropout
from listenwell.layers.transformer import mean_over
from listenwell.models.terms import classification_terms


@dataclass
class ClassifierConfig:
    """Which encoder, and how its positions become one vector."""

    backbone: str = "minilm"
    """The pretrained encoder to start from: a folder, or a name such as minilm. Its tokens are to be read too: the
    recipe's text has kind backbone and the same name."""
    architecture: dict[str, Any] = field(default_factory=dict)
    """The encoder's sizes; those of the backbone if not given."""
    pooling: Literal["mean", "start", "mean-and-maximum"] = "mean"
    """Classify from the mean over all positions, from the start token, or from the mean and the maximum."""
    dropout: float = 0.1
    """On what is classified. Inside the encoder it is the architecture's own."""
    labels: str = "emotion-intent"
    """The classes, a label set by name: 32 emotions, 8 intents and neutral; negative, neutral and positive
    (polarity); or another, such as one of the recipe's own `label_sets`. The recipe's data has the same `labels`."""
    upper: int | None = None
    """How many layers of the encoder learn, from the top; all of it if not given. What lies below is the backbone's
    own: it stays out of the checkpoint and is taken from the backbone when that is read."""


class Classifier(Model):
    """p(label | utterance)."""

    config: ClassifierConfig
    Config = ClassifierConfig
    objectives: ClassVar[Mapping[str, str]] = {"classify": "classify", "emotion": "emotion"}
    talks = False
    labels_texts = True
    calibration = "text"
    temperature: Tensor

    def __init__(self, config: ClassifierConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.backbone = PretrainedEncoder(config.architecture)
        vocabulary.check_known(self.backbone.vocabulary, config.backbone)
        self.label_set = label_set(config.labels)
        self.lower = frozenset() if config.upper is None else self.backbone.below(config.upper)
        self.dropout = Dropout(config.dropout)
        pooled_width = self.backbone.width * (2 if config.pooling == "mean-and-maximum" else 1)
        self.out = nn.Linear(pooled_width, len(self.label_set))
        nn.init.normal_(self.out.weight, std=0.02)
        nn.init.zeros_(self.out.bias)
        self.register_buffer("temperature", torch.ones(()))

    @classmethod
    def complete(cls, config: ClassifierConfig) -> ClassifierConfig:
        """With the encoder's sizes, which a checkpoint keeps, so that it needs no file of the backbone."""
        return config if config.architecture else replace(config, architecture=read_architecture(config.backbone))

    @property
    def pretrained(self) -> str:
        return self.config.backbone

    def initialise(self, prior: WordPrior) -> None:
        self.backbone.load_pretrained(self.config.backbone)

    def borrowed(self) -> frozenset[str]:
        return frozenset(f"backbone.{name}" for name in self.lower)

    def borrow(self) -> None:
        if self.lower:
            self.backbone.load_pretrained(self.config.backbone, self.lower)

    def summary(self, batch: Batch) -> Tensor:
        """Each utterance as one vector."""
        side = batch.reply
        if side is None:
            raise ValueError("there is no utterance to classify: an example holds it as its reply (sides: [reply])")
        start = torch.full_like(side.tokens[:, :1], self.vocabulary.start)
        tokens = torch.cat([start, side.tokens], dim=1)[:, : self.backbone.longest]
        mask = torch.cat([torch.ones_like(start, dtype=torch.bool), side.mask], dim=1)[:, : self.backbone.longest]
        return self.pooled(self.backbone(tokens, mask), mask)

    def pooled(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """The encoder's positions (batch, time, width) as one vector per text."""
        if self.config.pooling == "start":
            return hidden[:, 0]
        mean = mean_over(hidden, mask)
        if self.config.pooling == "mean":
            return mean
        maximum = hidden.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)
        return torch.cat((3 * mean, maximum), dim=-1)  # the mean is small next to the maximum

    def logits(self, batch: Batch) -> Tensor:
        return self.out(self.dropout(self.summary(batch)))

    def token_logits(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """The logits of texts that are tokens already, from [CLS] to [SEP]: (batch, time) to (batch, labels)."""
        return self.out(self.pooled(self.backbone(tokens, mask), mask))

    def label_log_probs(self, batch: Batch) -> Tensor:
        """log p(label | utterance), (batch, labels), calibrated."""
        return (self.logits(batch) / self.temperature).log_softmax(dim=-1)

    def classify(self, batch: Batch, moment: Moment, smoothing: float = 0.0) -> dict[str, Term]:
        """The label's negative log-likelihood with label smoothing, not calibrated, and the accuracy."""
        assert batch.label is not None
        return classification_terms("label", self.logits(batch).log_softmax(dim=-1), batch.label, smoothing)

    def emotion(self, batch: Batch, moment: Moment, smoothing: float = 0.0) -> dict[str, Term]:
        """The negative log-likelihood of the dialogue's emotion, among the emotions alone.

        For utterances that are known to tell of a feeling, such as a dialogue's opening: they say which, and should
        not make feelings likelier than intents.
        """
        if self.label_set != EMOTION_INTENT:
            raise ValueError(
                f"this classifier tells {self.label_set.name} apart, and an emotion has nothing to teach it"
            )
        assert batch.emotion is not None
        among = self.logits(batch)[:, : len(EMOTIONS)]  # the 41 begin with them
        return classification_terms("emotion", among.log_softmax(dim=-1), batch.emotion, smoothing)
