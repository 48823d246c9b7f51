"""A small text encoder (`text-encoder`): pretrained on masked tokens, then fine-tuned to classify one utterance.

It replaces BERT where none is available, notably for Chinese, and uses the tokens of the model that it serves:
strategy memory's emotion detector and sentiment evaluator are text encoders. An evaluator must also read soft text, a
distribution over words at each position, so that its prediction has a gradient (`soft_log_probs`).

    masked: −log p(token | the text with some tokens hidden)      classify: −log p(label | text)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from listenwell.contract import Batch, LabelSets, Model, Moment, Sequence, Term, Vocabulary, WordPrior
from listenwell.labels.sets import label_set
from listenwell.layers.dropout import Dropout
from listenwell.layers.embedding import WordEmbedding
from listenwell.layers.transformer import Encoder, mean_over, sinusoids
from listenwell.models.terms import classification_terms, reply_term


@dataclass
class TextEncoderConfig:
    """Sizes and classes."""

    width: int = 256
    """Width of every layer."""
    heads: int = 4
    """Heads of every attention layer."""
    layers: int = 3
    """Number of encoder layers."""
    feed_forward: int = 1024
    """Inner width of the feed-forward layers."""
    dropout: float = 0.1
    """Dropout rate after every sublayer, on the embeddings and before the classifier."""
    word_width: int = 0
    """Width of the word table; 0 means the model's. A narrower table is projected to it."""
    labels: str = "polarity"
    """Name of the label set to predict. The recipe's data must use the same `labels`."""


class TextEncoder(Model):
    """p(label | utterance), and p(hidden token | the rest)."""

    Config = TextEncoderConfig
    objectives: ClassVar[Mapping[str, str]] = {"masked": "masked", "classify": "classify"}
    # Pretraining has no labels, so a classifier's last layer starts from random weights.
    renewable: ClassVar[tuple[str, ...]] = ("out.*",)
    talks = False
    labels_texts = True
    calibration = "text"
    temperature: Tensor

    def __init__(self, config: TextEncoderConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.label_set = label_set(config.labels)
        self.words = WordEmbedding(vocabulary.size, config.width, config.word_width)
        self.encoder = Encoder(config.layers, config.width, config.heads, config.feed_forward, config.dropout)
        self.dropout = Dropout(config.dropout)
        self.out = nn.Linear(config.width, len(self.label_set))
        nn.init.normal_(self.out.weight, std=0.02)
        nn.init.zeros_(self.out.bias)
        self.register_buffer("temperature", torch.ones(()))

    def label_sets(self, objective: str) -> LabelSets:
        return LabelSets(self.label_set if objective == "classify" else None, None)

    def initialise(self, prior: WordPrior) -> None:
        if prior.vectors is not None and prior.known is not None:
            self.words.start_from(prior.vectors, prior.known)
        smoothed = prior.counts.float() + 0.5
        with torch.no_grad():
            self.words.bias.copy_((smoothed / smoothed.sum()).log())

    def read(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Encode word vectors: (batch, time, width) to the same shape."""
        return self.encoder(
            self.dropout(vectors + sinusoids(vectors.shape[1], self.config.width, vectors.device)), mask
        )

    def text(self, batch: Batch) -> Sequence:
        """The utterance, stored as an example's reply, in the form of a context: the same in every use."""
        if batch.reply is None:
            raise ValueError("there is no utterance to read: an example holds it as its reply (sides: [reply])")
        return batch.reply.as_source(self.vocabulary.ctx, self.vocabulary.end)

    def masked(self, batch: Batch, moment: Moment, hidden_share: float = 0.15) -> dict[str, Term]:
        """Hide a share of the tokens and predict them from the others. As in BERT, one in ten of these is replaced by
        a random word instead, and one in ten is left as it is.
        """
        text = self.text(batch)
        words = text.mask & (text.tokens != self.vocabulary.ctx)
        chosen = words & (torch.rand(text.tokens.shape, device=text.tokens.device) < hidden_share)
        if not bool(chosen.any()):  # one short text: hide at least its first word
            chosen = words & (words.cumsum(dim=1) == 1)
        shown = torch.rand(text.tokens.shape, device=text.tokens.device)
        other = torch.randint_like(text.tokens, self.vocabulary.ctx + 1, self.vocabulary.size)
        tokens = text.tokens.masked_fill(chosen & (shown < 0.8), self.vocabulary.unk)
        tokens = torch.where(chosen & (shown > 0.9), other, tokens)
        hidden = self.words.query(self.read(self.words(tokens), text.mask)[chosen])
        targets = text.tokens[chosen]
        return {"masked": reply_term(hidden, targets, self.words)}

    def logits_of(self, text: Sequence) -> Tensor:
        """Uncalibrated logits (batch, labels) of texts in the form of contexts."""
        hidden = self.read(self.words(text.tokens), text.mask)
        return self.out(self.dropout(mean_over(hidden, text.mask)))

    def logits(self, batch: Batch) -> Tensor:
        return self.logits_of(self.text(batch))

    def log_probs_of(self, text: Sequence) -> Tensor:
        """log p(label | text), (batch, labels), calibrated."""
        return (self.logits_of(text) / self.temperature).log_softmax(dim=-1)

    def label_log_probs(self, batch: Batch) -> Tensor:
        """log p(label | utterance), (batch, labels), calibrated."""
        return self.log_probs_of(self.text(batch))

    def soft_log_probs(self, weights: Tensor, mask: Tensor) -> Tensor:
        """The same for soft texts, whose positions are distributions over words.

        weights (positions, vocabulary) are given for the True positions of the mask (batch, time), in order.
        """
        vectors = self.words.mix(weights)
        spread = vectors.new_zeros(*mask.shape, vectors.shape[-1]).index_put(mask.nonzero(as_tuple=True), vectors)
        first = self.words(torch.full_like(mask[:, :1], self.vocabulary.ctx, dtype=torch.long))
        seen = torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1)
        hidden = self.read(torch.cat([first, spread], dim=1), seen)
        logits = self.out(self.dropout(mean_over(hidden, seen)))
        return (logits / self.temperature).log_softmax(dim=-1)

    def classify(self, batch: Batch, moment: Moment, smoothing: float = 0.0) -> dict[str, Term]:
        """The label's uncalibrated negative log-likelihood with label smoothing, and the accuracy."""
        assert batch.label is not None
        return classification_terms("label", self.logits(batch).log_softmax(dim=-1), batch.label, smoothing)
