"""How much empathy a reply to a post shows (`epitome`), after Sharma et al. (2020): three heads, each of three levels.

    emotional reactions   "I am so sorry."                        none, weak or strong
    interpretations       "You must have felt so alone."
    explorations          "Have you told anybody about it?"

A pretrained encoder reads the post and the reply as two texts, [CLS] post [SEP] reply [SEP], so that the reply is read
in the light of the post; each head looks at the positions of the reply alone, which is what is judged.

    α = softmax over the reply's positions of v·h_t / √width,   q(level | post, reply) = softmax(W Σ α_t h_t)

Most replies show none of it, and some levels are rare (one interpretation in thirty is weak). So a rare level counts
more while learning, w(level) = share^-balance, and what the heads learn is q ∝ w p. For the expected level that is
undone, p ∝ q / w: a mean over replies would otherwise be too high. A level is chosen by q.

Only the upper layers learn, and only they ship. The authors have an encoder for each text and one model for each head,
and learn from the marked passages too; here one pass over a small encoder does for all three, so that thousands of
replies can be measured. It does not talk: `listenwell.classifiers.empathy` is what uses it.
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
    """Which encoder, and how much of it learns."""

    backbone: str = "minilm"
    """The pretrained encoder to start from: a folder, or a name such as minilm. Its tokens are to be read too: the
    recipe's text has kind backbone and the same name."""
    architecture: dict[str, Any] = field(default_factory=dict)
    """The encoder's sizes; those of the backbone if not given."""
    upper: int = 3
    """How many layers of the encoder learn, from the top. What lies below is the backbone's own: it stays out of the
    checkpoint and is taken from the backbone when that is read."""
    dropout: float = 0.1
    """On what each head classifies. Inside the encoder it is the architecture's own."""
    balance: float = 0.5
    """How much more a rare level counts while learning: by share^-balance, scaled so that an example counts 1 on
    average. 0: all alike; 1: a rare level counts as much in all as a frequent one."""


class Epitome(Model):
    """p(level | post, reply) of each mechanism."""

    config: EpitomeConfig
    Config = EpitomeConfig
    objectives: ClassVar[Mapping[str, str]] = {"classify": "classify"}
    talks = False
    calibration = "empathy"
    label_set = EMPATHY
    shares: Tensor
    """(mechanisms, levels) how often each level is met in the training data, from 0 to 1."""

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
        """With the encoder's sizes, which a checkpoint keeps."""
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
        """Of q, (batch, mechanisms, levels)."""
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
        """Counts the levels once, before anything is learned: they are what is weighed by."""
        if epoch == 0:
            levels = torch.cat([levels_of(batch.label) for batch in batches() if batch.label is not None])
            counts = torch.stack([(levels == level).sum(dim=0) for level in range(len(LEVELS))], dim=1).clamp_min(1)
            self.shares.copy_(counts / counts.sum(dim=1, keepdim=True))
        return ()

    def classify(self, batch: Batch, moment: Moment, smoothing: float = 0.0) -> dict[str, Term]:
        """The heads' weighted negative log-likelihoods of their levels, added up, with label smoothing; to be shown,
        the likelihood of each under p, not calibrated, and the accuracy of what is chosen.
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
    """The levels (batch, mechanisms) that the ids of pair labels stand for; ABSENT where there is no label."""
    places = len(LEVELS) ** torch.arange(len(MECHANISMS) - 1, -1, -1, device=labels.device)
    return torch.where(labels[:, None] == ABSENT, ABSENT, labels[:, None] // places % len(LEVELS))
