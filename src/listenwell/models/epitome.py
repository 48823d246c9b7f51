"""The empathy of a reply to a post (`epitome`), after Sharma et al. (2020): three heads with three levels each.

    emotional reactions   "I am so sorry."                        none, weak or strong
    interpretations       "You must have felt so alone."
    explorations          "Have you told anybody about it?"

A pretrained encoder reads the post and the reply as a text pair, [CLS] post [SEP] reply [SEP], so that the reply is
encoded in the context of the post. Each head attends only to the positions of the reply, which is what it classifies.

    α = softmax over the reply's positions of v·h_t / √width,   q(level | post, reply) = softmax(W Σ α_t h_t)

Most replies show none, and some levels are rare (one interpretation in thirty is weak). So rare levels have a higher
weight in the loss, w(level) = share^-balance, and the heads learn q ∝ w p. For the expected level, the weighting is
undone, p ∝ q / w: a mean over replies would otherwise be too high. The predicted level is the argmax of q.

Only the upper layers are trained, and only they are shipped. The authors use a separate encoder for each text and a
separate model for each head, and also train on the marked passages; here one pass of a small encoder serves all three
heads, so that thousands of replies can be scored. It does not generate text; `listenwell.classifiers.empathy` is the
interface to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.backbones.encoder import PretrainedEncoder, read_architecture
from listenwell.contract import ABSENT, Batch, LabelSets, Model, Moment, Term, Vocabulary, WordPrior
from listenwell.labels.empathy import LEVELS, MECHANISMS
from listenwell.labels.sets import EMPATHY
from listenwell.layers.head import Head
from listenwell.models.joined_text import read_pair


@dataclass
class EpitomeConfig:
    """The encoder, and how much of it is trained."""

    backbone: str = "minilm"
    """The pretrained encoder to start from: a folder, or a name such as minilm. The recipe must use its tokenizer too:
    a text of kind backbone with the same name."""
    architecture: dict[str, Any] = field(default_factory=dict)
    """The encoder's sizes; taken from the backbone if not given."""
    upper: int = 3
    """How many layers of the encoder to train, counted from the top. The frozen weights below are not stored in the
    checkpoint but loaded from the backbone."""
    dropout: float = 0.1
    """Dropout rate before each head's classifier. The encoder keeps the rates of its architecture."""
    balance: float = 0.5
    """How much more a rare level weighs in the loss: share^-balance, scaled to an average weight of 1 per example.
    0: all levels weigh the same per example; 1: all levels weigh the same in total."""


class Epitome(Model):
    """p(level | post, reply) for each mechanism."""

    config: EpitomeConfig
    Config = EpitomeConfig
    objectives: ClassVar[Mapping[str, str]] = {"classify": "classify"}
    talks = False
    calibration = "empathy"
    label_set = EMPATHY
    shares: Tensor
    """(mechanisms, levels) the share of each level in the training data, from 0 to 1."""

    def __init__(self, config: EpitomeConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.backbone = PretrainedEncoder(config.architecture)
        vocabulary.check_known(self.backbone.vocabulary, config.backbone)
        self.lower = self.backbone.below(config.upper)
        self.heads = nn.ModuleDict(
            {name: Head(self.backbone.width, len(LEVELS), config.dropout) for name in MECHANISMS}
        )
        self.register_buffer("shares", torch.full((len(MECHANISMS), len(LEVELS)), 1 / len(LEVELS)))

    @classmethod
    def complete(cls, config: EpitomeConfig) -> EpitomeConfig:
        """Fill in the encoder's sizes, which the checkpoint stores."""
        return config if config.architecture else replace(config, architecture=read_architecture(config.backbone))

    @property
    def pretrained(self) -> str:
        return self.config.backbone

    def label_sets(self, objective: str) -> LabelSets:
        return LabelSets(EMPATHY, None)

    def initialise(self, prior: WordPrior) -> None:
        self.backbone.load_pretrained(self.config.backbone)

    def borrowed(self) -> frozenset[str]:
        return frozenset(f"backbone.{name}" for name in self.lower)

    def borrow(self) -> None:
        self.backbone.load_pretrained(self.config.backbone, self.lower)

    def head(self, mechanism: str) -> Head:
        head = self.heads[mechanism]
        assert isinstance(head, Head)
        return head

    def logits(self, batch: Batch) -> Tensor:
        """Logits of q, (batch, mechanisms, levels)."""
        hidden, mask = read_pair(self.backbone, batch)
        return torch.stack([self.head(name)(hidden, mask) for name in MECHANISMS], dim=1)

    @property
    def log_weights(self) -> Tensor:
        """log w(level), (mechanisms, levels)."""
        return -self.config.balance * self.shares.log()

    def level_log_probs(self, batch: Batch) -> Tensor:
        """log p(level | post, reply), (batch, mechanisms, levels), calibrated."""
        temperatures = torch.stack([self.head(name).temperature for name in MECHANISMS])
        return ((self.logits(batch) - self.log_weights) / temperatures[:, None]).log_softmax(dim=-1)

    def on_epoch_start(self, stage: str, epoch: int, batches: Callable[[], Iterable[Batch]]) -> Iterable[str]:
        """Count the levels once, before training, for the weights of the loss."""
        if epoch == 0:
            levels = torch.cat([levels_of(batch.label) for batch in batches() if batch.label is not None])
            counts = torch.stack([(levels == level).sum(dim=0) for level in range(len(LEVELS))], dim=1).clamp_min(1)
            self.shares.copy_(counts / counts.sum(dim=1, keepdim=True))
        return ()

    def classify(self, batch: Batch, moment: Moment, smoothing: float = 0.0) -> dict[str, Term]:
        """The sum of the heads' weighted negative log-likelihoods, with label smoothing. For display, each head's
        negative log-likelihood under p, uncalibrated, and the accuracy of its predicted level.
        """
        assert batch.label is not None
        logits, levels = self.logits(batch), levels_of(batch.label)
        weights = self.log_weights.exp() / (self.shares * self.log_weights.exp()).sum(dim=1, keepdim=True)
        known, losses, shown = int((batch.label != ABSENT).sum()), [], {}
        options: dict[str, Any] = {"ignore_index": ABSENT, "reduction": "sum"}
        for index, name in enumerate(MECHANISMS):
            q, gold = logits[:, index], levels[:, index]
            losses.append(F.cross_entropy(q, gold, weights[index], label_smoothing=smoothing, **options))
            plain = F.cross_entropy(q.detach() - self.log_weights[index], gold, **options)
            shown[name] = Term(plain, known, learned=False)
            shown[f"{name}-accuracy"] = Term((q.argmax(dim=-1) == gold).sum(), known, learned=False)
        together = torch.stack([shown[name].total for name in MECHANISMS]).sum()
        return {"empathy": Term(torch.stack(losses).sum(), known, together), **shown}


def levels_of(labels: Tensor) -> Tensor:
    """The levels (batch, mechanisms) encoded in the ids of pair labels; ABSENT where there is no label."""
    places = len(LEVELS) ** torch.arange(len(MECHANISMS) - 1, -1, -1, device=labels.device)
    return torch.where(labels[:, None] == ABSENT, ABSENT, labels[:, None] // places % len(LEVELS))
