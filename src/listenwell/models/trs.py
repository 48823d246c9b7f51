"""The plain transformer (`trs`) and the multi-task transformer (`multi-trs`).

The transformer of Vaswani et al. (2017) as Rashkin et al. (2019), MoEL and MIME use it for empathetic dialogue: the
context's utterances form one sequence after a CTX token, every position is the sum of word, position and speaker
embeddings, and there is one decoder. `multi-trs` also classifies the speaker's emotion from the encoded context: one of
the 32, or of another label set (`emotions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from listenwell.contract import Batch, Controls, Model, Moment, State, Term, Vocabulary, WordPrior
from listenwell.data.dialogue import ROLES
from listenwell.labels.sets import label_set
from listenwell.layers.dropout import dropout
from listenwell.layers.embedding import WordEmbedding
from listenwell.layers.transformer import Decoder, Encoder, mean_over, sinusoids
from listenwell.models.sizes import TransformerSizes
from listenwell.models.terms import classification_terms, reply_nll, reply_term

LISTENER = ROLES.index("listener")
"""The role of generated replies."""


@dataclass
class TrsConfig(TransformerSizes):
    """The transformer's sizes, and what it classifies."""

    tied: bool = True
    """Share one table between word embedding and output layer."""
    emotion: bool = False
    """Classify the speaker's emotion from the context: the multi-task transformer."""
    emotions: str = "emotion"
    """Name of the emotions' label set: the 32 or another, such as one of the recipe's own `label_sets`."""
    emotion_from: Literal["ctx", "mean"] = "ctx"
    """Classify the emotion from the encoding of CTX, as MIME does, or from the mean over all positions."""
    emotion_dropout: float = 0.0
    """Dropout rate before the emotion classifier: 19,533 dialogues are soon memorised."""


class Trs(Model):
    """p(reply | context), and for multi-trs p(emotion | context)."""

    Config = TrsConfig
    objectives: ClassVar[Mapping[str, str]] = {"likelihood": "likelihood", "situation": "situation"}

    def __init__(self, config: TrsConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.words = WordEmbedding(vocabulary.size, config.width, config.word_width, config.tied)
        self.speakers = nn.Embedding(2, config.width)
        nn.init.normal_(self.speakers.weight, std=0.02)
        self.encoder, self.decoder = self._layers(config)
        self.emotions = label_set(config.emotions)
        self.emotion = nn.Linear(config.width, len(self.emotions)) if config.emotion else None

    def _layers(self, config: TrsConfig) -> tuple[nn.Module, Decoder]:
        """The encoder of the context and the decoder of the reply."""
        sizes = config.layer_sizes
        return Encoder(config.encoder_layers, **sizes), Decoder(config.decoder_layers, **sizes)

    def initialise(self, prior: WordPrior) -> None:
        if prior.vectors is not None and prior.known is not None:
            self.words.start_from(prior.vectors, prior.known)
        self.words.start_at_unigrams(prior.counts, self.decoder)

    def embed(self, tokens: Tensor, roles: Tensor, first: int = 0) -> Tensor:
        """Word + position + speaker. `first` is the position of the first token."""
        x = self.words(tokens)
        x = x + sinusoids(first + tokens.shape[1], self.config.width, x.device)[first:]
        return dropout(x + self.speakers(roles), self.config.dropout, self.training)

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The encoded context (batch, time, width) and its mask."""
        assert batch.context is not None
        return self.encoder(
            self.embed(batch.context.tokens, batch.context.roles), batch.context.mask
        ), batch.context.mask

    def summary(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """The context as one vector (batch, width)."""
        return hidden[:, 0] if self.config.emotion_from == "ctx" else mean_over(hidden, mask)

    def believe(self, summary: Tensor) -> Tensor:
        """log p(emotion | context), (batch, emotions)."""
        assert self.emotion is not None
        return self.emotion(dropout(summary, self.config.emotion_dropout, self.training)).log_softmax(-1)

    def classify_emotion(self, batch: Batch) -> Tensor:
        """log p(emotion | context), without preparing the decoder."""
        return self.believe(self.summary(*self.encode(batch)))

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        hidden, mask = self.encode(batch)
        beliefs = {}
        if self.emotion is not None:
            beliefs["emotion"] = self.believe(self.summary(hidden, mask))
        return State(beliefs=beliefs, fixed=self.decoder.remember(hidden, mask))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        x = self.embed(tokens[:, None], torch.full_like(tokens[:, None], LISTENER), first=state.length)
        hidden, caches = self.decoder(x, state.fixed, state.moving)
        return self.words.logits(hidden[:, 0]), State(state.beliefs, state.fixed, caches, state.length + 1)

    def teach(self, batch: Batch, state: State) -> tuple[Tensor, Tensor]:
        """Teacher forcing: the decoder's outputs (positions, table width) and targets, real positions only."""
        assert batch.reply is not None
        hidden, _ = self.decoder(self.embed(batch.reply.shifted(self.vocabulary.start), batch.reply.roles), state.fixed)
        return self.words.query(hidden[batch.reply.mask]), batch.reply.tokens[batch.reply.mask]

    def likelihood(
        self, batch: Batch, moment: Moment, smoothing: float = 0.0, emotion_smoothing: float = 0.0
    ) -> dict[str, Term]:
        """The reply's negative log-likelihood and, for multi-trs, the emotion's, each with label smoothing."""
        assert batch.emotion is not None
        state = self.understand(batch)
        hidden, targets = self.teach(batch, state)
        terms = {"reply": reply_term(hidden, targets, self.words, smoothing)}
        if self.emotion is not None:
            terms |= classification_terms("emotion", state.beliefs["emotion"], batch.emotion, emotion_smoothing)
        return terms

    def situation(self, batch: Batch, moment: Moment, emotion_smoothing: float = 0.0) -> dict[str, Term]:
        """The negative log-likelihood of the emotion only, for texts without a reply, such as situations."""
        if self.emotion is None:
            raise ValueError("this model classifies no emotion, so that a situation has nothing to teach it")
        assert batch.emotion is not None
        return classification_terms("situation", self.classify_emotion(batch), batch.emotion, emotion_smoothing)

    def score(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        assert batch.reply is not None
        hidden, targets = self.teach(batch, self.understand(batch))
        return reply_nll(hidden, targets, self.words, batch.reply.mask)
