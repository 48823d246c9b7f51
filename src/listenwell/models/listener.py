"""The house system's listener (`house-listener`): predicts the speaker's emotion, and the label of a human reply.

A fully fine-tuned pretrained encoder reads the dialogue so far; a speaker embedding is added to each word. Two heads
pool its outputs, each with its own weights: the emotion is mostly expressed in the first turn, while the label of the
reply depends on the last.

    α = softmax_t(v·h_t / √width),   p(emotion | context) = softmax(W Σ α_t h_t / temperature)
    the same with another v, W and temperature: p(label of the reply | context)

The emotion is the dialogue's, one of the 32; the label is that of the next reply, one of the 41, learned from human
replies. Either may use another label set. The temperatures are 1 during training; `listenwell calibrate` sets them on
validation data, so that a system can marginalise over the predictions. It does not generate text;
`listenwell.classifiers.listener` is the interface to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from listenwell.backbones.encoder import PretrainedEncoder, read_architecture
from listenwell.contract import (
    Batch,
    Controls,
    Model,
    Moment,
    Sequence,
    State,
    Term,
    Vocabulary,
    WordPrior,
    map_tensors,
)
from listenwell.data.dialogue import ROLES
from listenwell.labels.sets import LabelSet, label_set
from listenwell.layers.head import Head
from listenwell.models.terms import classification_terms

HEADS: tuple[str, str] = ("emotion", "label")
"""What is predicted about a dialogue: names of the heads and of their beliefs."""


@dataclass
class ListenerConfig:
    """The encoder, the dropout of its heads and their label sets."""

    backbone: str = "minilm"
    """The pretrained encoder to start from: a folder, or a name such as minilm. The recipe must use its tokenizer too:
    a text of kind backbone with the same name."""
    architecture: dict[str, Any] = field(default_factory=dict)
    """The encoder's sizes; taken from the backbone if not given."""
    dropout: float = 0.1
    """Dropout rate before each head's classifier. The encoder keeps the rates of its architecture."""
    emotions: str = "emotion"
    """Name of the emotions' label set: the 32 or another, such as one of the recipe's own `label_sets`."""
    labels: str = "emotion-intent"
    """Name of the label set of replies. The recipe's data must use the same `labels`."""


class Listener(Model):
    """p(emotion | context) and p(label of the reply | context)."""

    Config = ListenerConfig
    objectives: ClassVar[Mapping[str, str]] = {"listen": "listen", "situation": "situation"}
    talks = False
    calibration = "dialogue"

    def __init__(self, config: ListenerConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.backbone = PretrainedEncoder(config.architecture)
        vocabulary.check_known(self.backbone.vocabulary, config.backbone)
        self.speakers = nn.Embedding(len(ROLES), self.backbone.width)
        nn.init.zeros_(self.speakers.weight)  # it starts as the pretrained encoder
        self.emotions, self.label_set = label_set(config.emotions), label_set(config.labels)
        self.heads = nn.ModuleDict(
            {name: Head(self.backbone.width, len(classes), config.dropout) for name, classes in self.classes.items()}
        )

    @classmethod
    def complete(cls, config: ListenerConfig) -> ListenerConfig:
        """Fill in the encoder's sizes, which the checkpoint stores so that it does not need the backbone's files."""
        return config if config.architecture else replace(config, architecture=read_architecture(config.backbone))

    @property
    def pretrained(self) -> str:
        return self.config.backbone

    def initialise(self, prior: WordPrior) -> None:
        self.backbone.load_pretrained(self.config.backbone)

    @property
    def classes(self) -> dict[str, LabelSet]:
        """The label set of each head, by name."""
        return dict(zip(HEADS, (self.emotions, self.label_set), strict=True))

    def head(self, name: str) -> Head:
        """One of HEADS."""
        head = self.heads[name]
        assert isinstance(head, Head)
        return head

    def read(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The encoder's output at each position of the context, and the mask."""
        if batch.context is None:
            raise ValueError("there is no dialogue to listen to: an example holds it as its context")
        context = latest(batch.context, self.backbone.longest)
        return self.backbone(context.tokens, context.mask, self.speakers(context.roles)), context.mask

    def logits(self, batch: Batch) -> dict[str, Tensor]:
        """Uncalibrated logits of both heads."""
        hidden, mask = self.read(batch)
        return {name: self.head(name)(hidden, mask) for name in HEADS}

    def predict(self, batch: Batch) -> dict[str, Tensor]:
        """log p(emotion | context) (batch, emotions) and log p(label of the reply | context) (batch, labels)."""
        hidden, mask = self.read(batch)
        return {name: self.head(name).log_probs(hidden, mask) for name in HEADS}

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        return State(self.predict(batch))

    def listen(
        self,
        batch: Batch,
        moment: Moment,
        smoothing: float = 0.0,
        label_smoothing: float = 0.0,
        apart: float = 0.0,
    ) -> dict[str, Term]:
        """The negative log-likelihoods of the dialogue's emotion and of the reply's label, each with label smoothing.

        Classes are not reweighted: probabilities that are marginalised over must match the label frequencies.

        With `apart` above 0, each dialogue is encoded twice under different dropout masks, and the divergence between
        the two emotion predictions is added with this weight (R-Drop, Liang et al., 2021): what was memorised depends
        on which units are kept, what was understood does not.
        """
        assert batch.emotion is not None
        assert batch.label is not None
        times = 2 if apart > 0 and self.training else 1
        readings = [self.logits(batch) for _ in range(times)]
        emotion, label = (torch.cat([logits[name] for logits in readings]).log_softmax(dim=-1) for name in HEADS)
        terms = {
            **classification_terms("emotion", emotion, batch.emotion.repeat(times), smoothing),
            **classification_terms("label", label, batch.label.repeat(times), label_smoothing),
        }
        if times == 2:
            distance = divergence(*emotion.chunk(2))
            terms["apart"] = Term(apart * distance, len(batch), distance.detach())
        return terms

    def situation(self, batch: Batch, moment: Moment, smoothing: float = 0.0) -> dict[str, Term]:
        """The negative log-likelihood of the emotion only, for texts without a reply, such as situations."""
        assert batch.emotion is not None
        hidden, mask = self.read(batch)
        believed = self.head("emotion")(hidden, mask).log_softmax(dim=-1)
        return classification_terms("situation", believed, batch.emotion, smoothing)


def divergence(one: Tensor, other: Tensor) -> Tensor:
    """The mean of KL(one ‖ other) and KL(other ‖ one), summed over rows of log-probabilities (batch, classes)."""
    return ((one.exp() - other.exp()) * (one - other)).sum() / 2


def latest(side: Sequence, most: int) -> Sequence:
    """The last `most` real positions of each row; the oldest are dropped."""
    if side.tokens.shape[1] <= most:
        return side
    first = (side.mask.sum(dim=1) - most).clamp_min(0)
    places = first[:, None] + torch.arange(most, device=first.device)
    return map_tensors(side, lambda tensor: tensor.gather(1, places))
