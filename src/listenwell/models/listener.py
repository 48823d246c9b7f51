"""The ears of the house system (`house-listener`): what a speaker feels, and what people would reply with.

A pretrained encoder, fine-tuned as a whole, reads the dialogue so far; an embedding added to each word says who speaks.
Two heads read its positions, each with weights of its own: the feeling stands mostly in the first turn, what is asked
for in the last.

    α = softmax_t(v·h_t / √width),   p(emotion | context) = softmax(W Σ α_t h_t / temperature)
    the same with another v, W and temperature: p(label of the reply | context)

The emotion is the dialogue's, of the 32; the label is what the next reply does, of the 41, learned from what people
did. Either may be of another label set. The temperatures are 1 while it learns; `listenwell calibrate` sets them on
validation data, so that a system can sum over what was heard. It does not talk: `listenwell.classifiers.listener` is
what uses it.
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
"""What is predicted about a dialogue: the names of the heads and of their beliefs."""


@dataclass
class ListenerConfig:
    """Which encoder, and how firmly its heads are held back from learning the dialogues by heart."""

    backbone: str = "minilm"
    """The pretrained encoder to start from: a folder, or a name such as minilm. Its tokens are to be read too: the
    recipe's text has kind backbone and the same name."""
    architecture: dict[str, Any] = field(default_factory=dict)
    """The encoder's sizes; those of the backbone if not given."""
    dropout: float = 0.1
    """On what each head classifies. Inside the encoder it is the architecture's own."""
    emotions: str = "emotion"
    """What a speaker may feel: a label set by name, the 32 or another, such as one of the recipe's own `label_sets`."""
    labels: str = "emotion-intent"
    """What a reply may do: a label set by name too. The recipe's data has the same `labels`."""


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
        nn.init.zeros_(self.speakers.weight)  # it starts as the encoder that was pretrained
        self.emotions, self.label_set = label_set(config.emotions), label_set(config.labels)
        self.heads = nn.ModuleDict(
            {name: Head(self.backbone.width, len(classes), config.dropout) for name, classes in self.classes.items()}
        )

    @classmethod
    def complete(cls, config: ListenerConfig) -> ListenerConfig:
        """With the encoder's sizes, which a checkpoint keeps, so that it needs no file of the backbone."""
        return config if config.architecture else replace(config, architecture=read_architecture(config.backbone))

    @property
    def pretrained(self) -> str:
        return self.config.backbone

    def initialise(self, prior: WordPrior) -> None:
        self.backbone.load_pretrained(self.config.backbone)

    @property
    def classes(self) -> dict[str, LabelSet]:
        """What each head tells apart, by its name."""
        return dict(zip(HEADS, (self.emotions, self.label_set), strict=True))

    def head(self, name: str) -> Head:
        """One of HEADS."""
        head = self.heads[name]
        assert isinstance(head, Head)
        return head

    def read(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the encoder makes of each position of the context, and which are real."""
        if batch.context is None:
            raise ValueError("there is no dialogue to listen to: an example holds it as its context")
        context = latest(batch.context, self.backbone.longest)
        return self.backbone(context.tokens, context.mask, self.speakers(context.roles)), context.mask

    def logits(self, batch: Batch) -> dict[str, Tensor]:
        """Of both heads, not calibrated."""
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

        Not weighed by class: what is summed over in use must be as probable as it is frequent.

        With `apart` above 0 a dialogue is learned in two readings, each under a dropout of its own, and so much counts
        how far the emotions heard in them lie apart (R-Drop, Liang et al., 2021): what is learned by heart depends on
        the units that are left, what is understood does not.
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
        """The emotion's negative log-likelihood alone: for texts that nobody answers, such as situations."""
        assert batch.emotion is not None
        hidden, mask = self.read(batch)
        believed = self.head("emotion")(hidden, mask).log_softmax(dim=-1)
        return classification_terms("situation", believed, batch.emotion, smoothing)


def divergence(one: Tensor, other: Tensor) -> Tensor:
    """The mean of KL(one ‖ other) and KL(other ‖ one), summed over rows of log-probabilities (batch, classes)."""
    return ((one.exp() - other.exp()) * (one - other)).sum() / 2


def latest(side: Sequence, most: int) -> Sequence:
    """The last `most` real positions of each row: the oldest go."""
    if side.tokens.shape[1] <= most:
        return side
    first = (side.mask.sum(dim=1) - most).clamp_min(0)
    places = first[:, None] + torch.arange(most, device=first.device)
    return map_tensors(side, lambda tensor: tensor.gather(1, places))
