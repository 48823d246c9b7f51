"""Which reply fits (`chooser`): is this what a person said here?

A pretrained encoder reads the dialogue and a reply as two texts, [CLS] turn [SEP] … [SEP] reply [SEP], and a head says
where the reply comes from:

    q(origin | dialogue, reply) = softmax(W Σ α_t h_t),   origin: here, elsewhere or written

*Elsewhere* is what a person said in another dialogue like this one: to tell it apart, the reply must be compared with
what was said. *Written* is what the house system's writer wrote here: to tell it apart, the chooser must see what is
wrong with it. log q(here) then orders the candidates for a reply. Only the upper layers learn, and only they ship.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell.backbones.encoder import PretrainedEncoder, read_architecture
from listenwell.contract import ABSENT, Batch, LabelSets, Model, Moment, Term, Vocabulary, WordPrior
from listenwell.labels.sets import ORIGINS
from listenwell.layers.head import Head
from listenwell.models.joined_text import read_pair

HERE = ORIGINS.labels.index("here")


@dataclass
class ChooserConfig:
    """Which encoder, and how much of it learns."""

    backbone: str = "minilm"
    """The pretrained encoder to start from: a folder, or a name such as minilm. Its tokens are to be read too: the
    recipe's text has kind backbone and the same name."""
    architecture: dict[str, Any] = field(default_factory=dict)
    """The encoder's sizes; those of the backbone if not given."""
    upper: int = 4
    """How many layers of the encoder learn, from the top. What lies below is the backbone's own: it stays out of the
    checkpoint and is taken from the backbone when that is read."""
    dropout: float = 0.1
    """On what the head classifies. Inside the encoder it is the architecture's own."""


class Chooser(Model):
    """q(origin | dialogue, reply)."""

    config: ChooserConfig
    Config = ChooserConfig
    objectives: ClassVar[Mapping[str, str]] = {"tell": "tell"}
    talks = False
    label_set = ORIGINS

    def __init__(self, config: ChooserConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.backbone = PretrainedEncoder(config.architecture)
        vocabulary.check_known(self.backbone.vocabulary, config.backbone)
        self.lower = self.backbone.below(config.upper)
        self.head = Head(self.backbone.width, len(ORIGINS.labels), config.dropout)

    @classmethod
    def complete(cls, config: ChooserConfig) -> ChooserConfig:
        """With the encoder's sizes, which a checkpoint keeps."""
        return config if config.architecture else replace(config, architecture=read_architecture(config.backbone))

    @property
    def pretrained(self) -> str:
        return self.config.backbone

    def label_sets(self, objective: str) -> LabelSets:
        return LabelSets(ORIGINS, None)

    def initialise(self, prior: WordPrior) -> None:
        self.backbone.load_pretrained(self.config.backbone)

    def borrowed(self) -> frozenset[str]:
        return frozenset(f"backbone.{name}" for name in self.lower)

    def borrow(self) -> None:
        self.backbone.load_pretrained(self.config.backbone, self.lower)

    def logits(self, batch: Batch) -> Tensor:
        """Of q, (batch, origins). The head looks at the reply, which was read beside the dialogue."""
        hidden, reply = read_pair(self.backbone, batch)
        return self.head(hidden, reply)

    def fit(self, batch: Batch) -> Tensor:
        """log q(here | dialogue, reply), (batch,): higher where the reply fits better."""
        return self.logits(batch).log_softmax(dim=-1)[:, HERE]

    def tell(self, batch: Batch, moment: Moment, here: float = 1.0, smoothing: float = 0.0) -> dict[str, Term]:
        """The negative log-likelihood of the origin; what was said here counts `here` times, since it is rarer."""
        assert batch.label is not None
        logits, gold = self.logits(batch), batch.label
        weights = torch.ones(logits.shape[1], device=logits.device)
        weights[HERE] = here
        known = gold != ABSENT
        loss = F.cross_entropy(
            logits.float(), gold, weights, ignore_index=ABSENT, reduction="sum", label_smoothing=smoothing
        )
        hits = (logits.argmax(dim=-1) == gold) & known
        count = float(weights[gold[known]].sum())
        return {"origin": Term(loss, count), "origin-accuracy": Term(hits.sum(), int(known.sum()), learned=False)}
