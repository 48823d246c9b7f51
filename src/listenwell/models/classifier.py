"""Classifiers of a single utterance: its emotion or intent among 41 (`emotion-intent`), or its polarity (`polarity`).

A pretrained encoder with a linear layer on the mean of its positions (or on the start token). It is fine-tuned
completely, as Welivita and Pu (2020) and MEED2 do with BERT and RoBERTa, or only in its upper layers. It reads the
utterance without context, stored as an example's reply, and does not generate text; `listenwell.classifiers.labeller`
is the interface to it.

    p(label | utterance) = softmax(W h / temperature)

`crisis`, which crisis care uses, is another one. There h is the concatenation of mean and maximum: a few words of a
long message may be the only sign.

The temperature is 1 during training; `listenwell calibrate` sets it on validation data, so that predictions with a
confidence of 0.8 are right four times out of five.
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
    """The encoder, and how its outputs are pooled."""

    backbone: str = "minilm"
    """The pretrained encoder to start from: a folder, or a name such as minilm. The recipe must use its tokenizer too:
    a text of kind backbone with the same name."""
    architecture: dict[str, Any] = field(default_factory=dict)
    """The encoder's sizes; taken from the backbone if not given."""
    pooling: Literal["mean", "start", "mean-and-maximum"] = "mean"
    """Classify from the mean over all positions, from the start token, or from the mean and the maximum."""
    dropout: float = 0.1
    """Dropout rate before the classifier. The encoder keeps the rates of its architecture."""
    labels: str = "emotion-intent"
    """Name of the label set to predict: 32 emotions, 8 intents and neutral; negative, neutral and positive (polarity);
    or another, such as one of the recipe's own `label_sets`. The recipe's data must use the same `labels`."""
    upper: int | None = None
    """How many layers of the encoder to train, counted from the top; the whole encoder if not given. The frozen weights
    below are not stored in the checkpoint but loaded from the backbone."""


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
        """Fill in the encoder's sizes, which the checkpoint stores so that it does not need the backbone's files."""
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
        """Pool the encoder's output (batch, time, width) into one vector per text."""
        if self.config.pooling == "start":
            return hidden[:, 0]
        mean = mean_over(hidden, mask)
        if self.config.pooling == "mean":
            return mean
        maximum = hidden.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)
        return torch.cat((3 * mean, maximum), dim=-1)  # scaled, since the mean is small next to the maximum

    def logits(self, batch: Batch) -> Tensor:
        return self.out(self.dropout(self.summary(batch)))

    def token_logits(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Logits of tokenized texts, from [CLS] to [SEP]: (batch, time) to (batch, labels)."""
        return self.out(self.pooled(self.backbone(tokens, mask), mask))

    def label_log_probs(self, batch: Batch) -> Tensor:
        """log p(label | utterance), (batch, labels), calibrated."""
        return (self.logits(batch) / self.temperature).log_softmax(dim=-1)

    def classify(self, batch: Batch, moment: Moment, smoothing: float = 0.0) -> dict[str, Term]:
        """The label's uncalibrated negative log-likelihood with label smoothing, and the accuracy."""
        assert batch.label is not None
        return classification_terms("label", self.logits(batch).log_softmax(dim=-1), batch.label, smoothing)

    def emotion(self, batch: Batch, moment: Moment, smoothing: float = 0.0) -> dict[str, Term]:
        """The negative log-likelihood of the dialogue's emotion, normalised over the emotions only.

        For utterances that are known to express an emotion, such as a dialogue's opening: they teach which one it is,
        and should not make emotions more likely than intents.
        """
        if self.label_set != EMOTION_INTENT:
            raise ValueError(
                f"this classifier tells {self.label_set.name} apart, and an emotion has nothing to teach it"
            )
        assert batch.emotion is not None
        among = self.logits(batch)[:, : len(EMOTIONS)]  # the first of the 41 labels
        return classification_terms("emotion", among.log_softmax(dim=-1), batch.emotion, smoothing)
