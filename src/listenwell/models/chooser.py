"""Reply scoring (`chooser`): a pretrained encoder reads a dialogue and a reply, and scores the reply.

    [CLS] turn [SEP] … [SEP] reply [SEP],   q(label | dialogue, reply) = softmax(W Σ α_t h_t)

What it learns depends on its labels:

- *rating*: how good a reader found the reply, from 1 to 5; the score is the expected rating, Σ rating · q(rating).
- *origin*: whether a person said the reply in this dialogue (*here*), in another one like it (*elsewhere*), or whether
  the house system's writer wrote it (*written*); the score is log q(here). Every dialogue is training data for this,
  and a chooser of ratings can be initialised from it. By itself, it prefers replies that are long and specific, as
  people's are, over ones that fit.

Only the upper layers are trained, and only they are shipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell.backbones.encoder import PretrainedEncoder, read_architecture
from listenwell.contract import ABSENT, Batch, LabelSets, Model, Moment, Term, Vocabulary, WordPrior
from listenwell.labels.sets import ORIGINS, RATINGS
from listenwell.layers.head import Head
from listenwell.models.joined_text import read_pair

HERE = ORIGINS.labels.index("here")


@dataclass
class ChooserConfig:
    """The encoder, how much of it is trained, and on which labels."""

    backbone: str = "minilm"
    """The pretrained encoder to start from: a folder, or a name such as minilm. The recipe must use its tokenizer too:
    a text of kind backbone with the same name."""
    architecture: dict[str, Any] = field(default_factory=dict)
    """The encoder's sizes; taken from the backbone if not given."""
    upper: int = 4
    """How many layers of the encoder to train, counted from the top. The frozen weights below are not stored in the
    checkpoint but loaded from the backbone."""
    dropout: float = 0.1
    """Dropout rate before the head's classifier. The encoder keeps the rates of its architecture."""
    labels: Literal["rating", "origin"] = "rating"
    """What to predict about a reply."""


class Chooser(Model):
    """q(label | dialogue, reply)."""

    config: ChooserConfig
    Config = ChooserConfig
    objectives: ClassVar[Mapping[str, str]] = {"tell": "tell"}
    talks = False
    renewable: ClassVar[tuple[str, ...]] = ("head.out.*",)
    """A chooser of ratings can be initialised from one of origins, which has other classes."""

    def __init__(self, config: ChooserConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.label_set = RATINGS if config.labels == "rating" else ORIGINS
        self.backbone = PretrainedEncoder(config.architecture)
        vocabulary.check_known(self.backbone.vocabulary, config.backbone)
        self.lower = self.backbone.below(config.upper)
        self.head = Head(self.backbone.width, len(self.label_set.labels), config.dropout)

    @classmethod
    def complete(cls, config: ChooserConfig) -> ChooserConfig:
        """Fill in the encoder's sizes, which the checkpoint stores."""
        return config if config.architecture else replace(config, architecture=read_architecture(config.backbone))

    @property
    def pretrained(self) -> str:
        return self.config.backbone

    def label_sets(self, objective: str) -> LabelSets:
        return LabelSets(self.label_set, None)

    def initialise(self, prior: WordPrior) -> None:
        self.backbone.load_pretrained(self.config.backbone)

    def borrowed(self) -> frozenset[str]:
        return frozenset(f"backbone.{name}" for name in self.lower)

    def borrow(self) -> None:
        self.backbone.load_pretrained(self.config.backbone, self.lower)

    def logits(self, batch: Batch) -> Tensor:
        """Logits of q, (batch, labels). The head attends to the reply, which was encoded together with the dialogue."""
        hidden, reply = read_pair(self.backbone, batch)
        return self.head(hidden, reply)

    def fit(self, batch: Batch) -> Tensor:
        """The score of each reply (batch,): higher means a better fit."""
        log_q = self.logits(batch).log_softmax(dim=-1)
        if self.config.labels == "origin":
            return log_q[:, HERE]
        return log_q.exp() @ torch.arange(1.0, 1.0 + log_q.shape[1], device=log_q.device)

    def tell(self, batch: Batch, moment: Moment, first: float = 1.0, smoothing: float = 0.0) -> dict[str, Term]:
        """The negative log-likelihood of the label; the first label has weight `first`, since *here* is rarer."""
        assert batch.label is not None
        logits, gold = self.logits(batch), batch.label
        weights = torch.ones(logits.shape[1], device=logits.device)
        weights[0] = first
        known = gold != ABSENT
        loss = F.cross_entropy(
            logits.float(), gold, weights, ignore_index=ABSENT, reduction="sum", label_smoothing=smoothing
        )
        hits = (logits.argmax(dim=-1) == gold) & known
        count = float(weights[gold[known]].sum())
        return {"label": Term(loss, count), "label-accuracy": Term(hits.sum(), int(known.sum()), learned=False)}
