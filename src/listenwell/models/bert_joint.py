"""BERT (JT): joint training of the speaker's emotion and the reply; and its Bi-LSTM variants.

The emotion side encodes the context with a pretrained encoder and attends from the last layer's [CLS] to those of all
layers:

    α = softmax_l(h_lᵀ W_g h_L),   C_E = Σ_l α_l h_l,   p(emotion | context) = softmax(W_E C_E)      (Eqs 1, 2)

The generation side encodes it with a Bi-GRU (3) and decodes with a GRU that has input feeding, starts from the mean of
C_E and the Bi-GRU's last state, and attends to the Bi-GRU's outputs (4, 5). The loss is the sum of both (6).
`bilstm-joint` and `bilstm-attn-joint` have a Bi-LSTM instead of the pretrained encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor, nn

from listenwell.backbones.encoder import PretrainedEncoder, read_architecture
from listenwell.contract import Batch, Controls, Model, Moment, Sequence, State, Term, Vocabulary, WordPrior
from listenwell.labels.sets import label_set
from listenwell.layers.dropout import Dropout
from listenwell.layers.embedding import WordEmbedding
from listenwell.layers.recurrent import AttentiveDecoder, RecurrentEncoder
from listenwell.models.terms import classification_terms, reply_nll, reply_term
from listenwell.models.trs import LISTENER


@dataclass
class EmotionSideConfig:
    """What the emotion is classified from."""

    emotions: str = "emotion"
    """Name of the emotions' label set: the 32 or another, such as one of the recipe's own."""
    emotion_from: Literal["backbone", "bilstm", "bilstm-attention"] = "backbone"
    """The [CLS] of all layers of a pretrained encoder, the last state of a Bi-LSTM, or all its states."""
    emotion_dropout: float = 0.1
    """Dropout rate before the emotion classifier."""
    backbone: str = "minilm"
    """The pretrained encoder to start from: a folder, or a name such as minilm. The recipe must use its tokenizer too:
    a text of kind backbone with the same name."""
    architecture: dict[str, Any] = field(default_factory=dict)
    """The pretrained encoder's sizes; taken from the backbone if not given."""
    upper: int | None = None
    """How many layers of the pretrained encoder to train, counted from the top; all of it if not given. The frozen
    weights below are not stored in the checkpoint but loaded from the backbone."""


C = TypeVar("C", bound=EmotionSideConfig)


def with_architecture(config: C) -> C:
    """Add the backbone's sizes to the config: a checkpoint is loaded with the sizes that it was trained with."""
    if config.emotion_from != "backbone" or config.architecture:
        return config
    return replace(config, architecture=read_architecture(config.backbone))


def make_backbone(config: EmotionSideConfig, vocabulary: Vocabulary) -> PretrainedEncoder | None:
    """The emotion side's pretrained encoder, weights not loaded yet; None if it is a Bi-LSTM."""
    if config.emotion_from != "backbone":
        return None
    encoder = PretrainedEncoder(config.architecture)
    vocabulary.check_known(encoder.vocabulary, config.backbone)
    return encoder


def lower_weights(config: EmotionSideConfig, backbone: PretrainedEncoder | None) -> frozenset[str]:
    """Names of the backbone's weights below the trained layers."""
    return frozenset() if backbone is None or config.upper is None else backbone.below(config.upper)


class EmotionSide(nn.Module):
    """The context as one vector C_E, and the emotion predicted from it. `width` is C_E's, `word_width` that of words.

    `first` is the token whose state stands for the whole text in a pretrained encoder: [CLS] in BERT.
    """

    def __init__(self, config: EmotionSideConfig, width: int, word_width: int, first: int) -> None:
        super().__init__()
        self.first = first
        self.reader = None
        if config.emotion_from != "backbone":
            self.reader = RecurrentEncoder(word_width, width, cell="lstm")
        self.attention = None
        if config.emotion_from != "bilstm":
            self.attention = nn.Linear(width, width, bias=False)
            nn.init.zeros_(self.attention.weight)  # uniform attention at first
        self.dropout = Dropout(config.emotion_dropout)
        self.choice = nn.Linear(width, len(label_set(config.emotions)))

    def forward(
        self, context: Sequence, backbone: PretrainedEncoder | None, embed: Callable[[Tensor, Tensor], Tensor]
    ) -> Tensor:
        """C_E (batch, width), from the backbone or, if there is none, from embedded tokens and roles."""
        if backbone is not None:
            longest = backbone.longest
            tokens = context.tokens[:, :longest].clone()
            tokens[:, 0] = self.first  # a long context lost its own when its oldest words were cut
            hidden = backbone.starts(tokens, context.mask[:, :longest])
            return self.gather(hidden, hidden[:, -1], None)
        assert self.reader is not None
        hidden, last = self.reader(embed(context.tokens, context.roles), context.mask)
        return last if self.attention is None else self.gather(hidden, last, context.mask)

    def gather(self, hidden: Tensor, query: Tensor, mask: Tensor | None) -> Tensor:
        """Σ α h over (batch, some, width), with α = softmax(hᵀ W_g query / √width)."""
        assert self.attention is not None
        scores = torch.einsum("bsw,bw->bs", hidden, self.attention(query)) * hidden.shape[-1] ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return torch.einsum("bs,bsw->bw", scores.softmax(dim=-1), hidden)

    def believe(self, felt: Tensor) -> Tensor:
        """log p(emotion | context), (batch, emotions), from C_E."""
        return self.choice(self.dropout(felt)).log_softmax(dim=-1)


@dataclass
class BertJointConfig(EmotionSideConfig):
    """The generation side's sizes, and what the emotion is classified from."""

    width: int = 768
    """Width of the words, of the Bi-GRU's two directions together, of the decoder, and of a Bi-LSTM."""
    word_width: int = 0
    """Width of the word table; 0 means the model's. A narrower table is projected to it."""
    tied: bool = True
    """Share one table between word embedding and output layer."""
    dropout: float = 0.3
    """Dropout rate on the words, on the Bi-GRU's outputs, and on the decoder's outputs, which are also fed back."""


@dataclass(slots=True)
class ContextMemory:
    """The context as the decoder attends to it."""

    memory: Tensor
    """(batch, time, width) the Bi-GRU's outputs."""
    keys: Tensor
    """The same, projected for comparison with the decoder's state."""
    mask: Tensor


class BertJoint(Model):
    """p(emotion | context) and p(reply | context)."""

    Config = BertJointConfig
    objectives: ClassVar[Mapping[str, str]] = {"likelihood": "likelihood", "situation": "situation"}

    def __init__(self, config: BertJointConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.emotions = label_set(config.emotions)
        width = config.width
        self.words = WordEmbedding(vocabulary.size, width, config.word_width, config.tied)
        self.speakers = nn.Embedding(2, width)
        nn.init.normal_(self.speakers.weight, std=0.02)
        self.backbone = make_backbone(config, vocabulary)
        self.lower = lower_weights(config, self.backbone)
        felt = width if self.backbone is None else self.backbone.width
        self.emotion = EmotionSide(config, felt, width, vocabulary.ctx)
        self.match = nn.Identity() if felt == width else nn.Linear(felt, width, bias=False)
        self.encoder = RecurrentEncoder(width, width)
        self.decoder = AttentiveDecoder(width, width, width, config.dropout)
        self.dropout = Dropout(config.dropout)

    @classmethod
    def complete(cls, config: BertJointConfig) -> BertJointConfig:
        return with_architecture(config)

    @property
    def pretrained(self) -> str | None:
        return None if self.backbone is None else self.config.backbone

    def initialise(self, prior: WordPrior) -> None:
        if prior.vectors is not None and prior.known is not None:
            self.words.start_from(prior.vectors, prior.known)
        self.words.start_at_unigrams(prior.counts, self.decoder)
        if self.backbone is not None:
            self.backbone.load_pretrained(self.config.backbone)

    def borrowed(self) -> frozenset[str]:
        return frozenset(f"backbone.{name}" for name in self.lower)

    def borrow(self) -> None:
        if self.backbone is not None and self.lower:
            self.backbone.load_pretrained(self.config.backbone, self.lower)

    def embed(self, tokens: Tensor, roles: Tensor) -> Tensor:
        """Word + speaker."""
        return self.dropout(self.words(tokens) + self.speakers(roles))

    def feel(self, batch: Batch) -> Tensor:
        """C_E of the context (Eq 1)."""
        assert batch.context is not None
        return self.emotion(batch.context, self.backbone, self.embed)

    def read(self, batch: Batch, felt: Tensor) -> tuple[Tensor, Tensor]:
        """What the decoder attends to (Eq 3) and its initial state (the first line of Eq 4)."""
        assert batch.context is not None
        outputs, last = self.encoder(self.embed(batch.context.tokens, batch.context.roles), batch.context.mask)
        return self.dropout(outputs), (self.match(felt) + last) / 2

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        assert batch.context is not None
        felt = self.feel(batch)
        memory, start = self.read(batch, felt)
        attended = ContextMemory(memory, self.decoder.attention(memory), batch.context.mask)
        return State({"emotion": self.emotion.believe(felt)}, attended, self.decoder.start(start))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        x = self.embed(tokens, torch.full_like(tokens, LISTENER))
        attended: ContextMemory = state.fixed
        at = self.decoder.step(x, attended.memory, attended.keys, attended.mask, state.moving)
        return self.words.logits(at.fed), State(state.beliefs, attended, at, state.length + 1)

    def teach(self, batch: Batch, felt: Tensor) -> tuple[Tensor, Tensor]:
        """Teacher forcing: the decoder's outputs (positions, table width) and targets, real positions only."""
        assert batch.context is not None
        assert batch.reply is not None
        memory, start = self.read(batch, felt)
        x = self.embed(batch.reply.shifted(self.vocabulary.start), batch.reply.roles)
        said = self.decoder(x, memory, batch.context.mask, start)
        return self.words.query(said[batch.reply.mask]), batch.reply.tokens[batch.reply.mask]

    def likelihood(
        self, batch: Batch, moment: Moment, smoothing: float = 0.0, emotion_smoothing: float = 0.0
    ) -> dict[str, Term]:
        """The reply's and the emotion's negative log-likelihood (Eq 6), each with label smoothing."""
        assert batch.emotion is not None
        felt = self.feel(batch)
        said, targets = self.teach(batch, felt)
        return {
            "reply": reply_term(said, targets, self.words, smoothing),
            **classification_terms("emotion", self.emotion.believe(felt), batch.emotion, emotion_smoothing),
        }

    def situation(self, batch: Batch, moment: Moment, emotion_smoothing: float = 0.0) -> dict[str, Term]:
        """The negative log-likelihood of the emotion only, for texts without a reply, such as situations."""
        assert batch.emotion is not None
        believed = self.emotion.believe(self.feel(batch))
        return classification_terms("situation", believed, batch.emotion, emotion_smoothing)

    def score(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        assert batch.reply is not None
        said, targets = self.teach(batch, self.feel(batch))
        return reply_nll(said, targets, self.words, batch.reply.mask)
