"""MEED2 (`meed2`, `meed2-plain`): replies conditioned on an emotion or intent label, Xie and Pu (2021).

Every utterance of the context is wrapped in <s> and </s>, and every position is the sum of word, position,
utterance label and speaker embeddings (§ 4.1). The predictor, a separate transformer encoder, predicts the label of the
reply, one of the paper's 41 or of another label set (Eqs 1–2). The generator, an encoder and a decoder with shared
embeddings, writes the reply with that label's embedding added at every position: a different label gives a different
reply.

    label ~ p(l | x)     reply ~ p(y | x, l)     score: −log Σ p(l | x) p(y | x, l)

The labels of the context's turns come from a classifier outside this model; see listenwell.classifiers.label_cache.
`meed2-plain`, the paper's baseline, is the same transformer without labels and predictor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.contract import (
    ABSENT,
    Batch,
    Controls,
    Model,
    Moment,
    Sequence,
    State,
    Term,
    Vocabulary,
    WordPrior,
    chosen,
)
from listenwell.data.dialogue import ROLES
from listenwell.labels.sets import label_set
from listenwell.layers.dropout import Dropout
from listenwell.layers.embedding import WordEmbedding, WordReader
from listenwell.layers.transformer import Decoder, Encoder, Memory, sinusoids
from listenwell.models.label_sum import LikelyLabels, check_summed
from listenwell.models.sizes import TransformerSizes
from listenwell.models.terms import classification_terms, reply_nll, reply_term

LISTENER = ROLES.index("listener")
"""The role of generated replies."""

TOGETHER = 16
"""How many replies of similar length to marginalise over labels at once. Each runs once per label, with its padding."""

PREDICTOR = "predictor"
"""Name of the recipe stage that trains the predictor."""


@dataclass
class Meed2Config(TransformerSizes):
    """The sizes of Appendix B, and how the reply's label is marginalised out."""

    encoder_layers: int = 4
    """Layers of the generator's encoder."""
    decoder_layers: int = 4
    """Layers of the generator's decoder."""
    predictor_layers: int = 4
    """Layers of the predictor's encoder."""
    predictor_start: Literal["new", "generator"] = "new"
    """The predictor's weights when a stage named predictor begins: left as they are (new), or copied from the
    embeddings and layers of the generator's encoder, which already knows the words (generator)."""
    labels: bool = True
    """Read utterance labels and predict the reply's label. False gives the plain transformer of Table 3."""
    label_set: str = "emotion-intent"
    """Name of the label set for utterances and replies: the 41 or another, such as one of the recipe's own
    `label_sets`. The recipe's data must use the same `labels`; its labeller assigns them."""
    emotions: str = "emotion"
    """Name of the label set that says which of these labels are emotions rather than intents."""
    unconditional_share: float = 0.0
    """The share of replies trained without a label, so that the model also learns to reply without one; and
    the weight of the unlabelled reply in the likelihood."""
    score_mass: float = 1.0
    """For the likelihood: sum over the most likely labels until they cover this much of the predictor's probability."""
    score_most: int = 0
    """For the likelihood: sum over at most this many labels; 0 for all."""


Words = TypeVar("Words", WordEmbedding, WordReader)


class Input(nn.Module, Generic[Words]):
    """The input representation (§ 4.1): word + position + utterance label + speaker."""

    def __init__(self, words: Words, config: Meed2Config) -> None:
        super().__init__()
        self.words: Words = words
        self.speakers = nn.Embedding(len(ROLES), config.width)
        self.labels = nn.Embedding(len(label_set(config.label_set)), config.width) if config.labels else None
        for table in (self.speakers, self.labels):
            if table is not None:
                nn.init.normal_(table.weight, std=0.1)
        self.dropout = Dropout(config.dropout)

    def forward(self, tokens: Tensor, roles: Tensor, labels: Tensor | None, first: int = 0) -> Tensor:
        """Returns (batch, time, width). `labels` are ids (batch, time), ABSENT for none, or weights over all labels
        (batch, time, labels); a time dimension of 1 is broadcast.

        `first` is the position of the first token.
        """
        x = self.words(tokens)
        x = x + sinusoids(first + tokens.shape[1], x.shape[-1], x.device)[first:] + self.speakers(roles)
        if self.labels is not None:
            assert labels is not None
            x = x + self.of_labels(labels)
        return self.dropout(x)

    def of_labels(self, labels: Tensor) -> Tensor:
        """The label embeddings to add; zero where there is no label."""
        assert self.labels is not None
        if labels.is_floating_point():
            return labels @ self.labels.weight
        return self.labels(labels.clamp_min(0)).masked_fill((labels == ABSENT)[..., None], 0.0)

    def of(self, side: Sequence) -> Tensor:
        """Embed a whole sequence with the labels of its utterances."""
        return self(side.tokens, side.roles, side.labels)


class Predictor(nn.Module):
    """p(label of the reply | context), with its own embeddings, encoder and attention (§ 4.2)."""

    temperature: Tensor
    """Divides the logits: 1 during training; `listenwell calibrate` sets it so that the confidence is calibrated."""

    def __init__(self, config: Meed2Config, vocabulary: Vocabulary) -> None:
        super().__init__()
        sizes = {**config.layer_sizes, "activation": F.gelu}
        self.input = Input(WordReader(vocabulary.size, config.width, config.word_width), config)
        self.encoder = Encoder(config.predictor_layers, **sizes)
        self.attention = nn.Parameter(torch.randn(config.width) * config.width**-0.5)  # v of Eq 1
        self.hidden = nn.Linear(config.width, config.width)
        self.out = nn.Linear(config.width, len(label_set(config.label_set)))
        self.dropout = Dropout(config.dropout)
        self.register_buffer("temperature", torch.ones(()))

    def pool(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Eqs 1–2: the mean over positions, weighted by exp(v · r); (batch, time, width) to (batch, width)."""
        weights = (hidden @ self.attention).masked_fill(~mask, -torch.inf).softmax(dim=-1)
        return (weights[:, None] @ hidden)[:, 0]

    def forward(self, context: Sequence) -> Tensor:
        """log p(label | context), (batch, labels)."""
        pooled = self.pool(self.encoder(self.input.of(context), context.mask), context.mask)
        # The distribution is computed in full precision, even if the layers are not.
        logits = self.out(self.dropout(F.gelu(self.hidden(pooled)))).to(self.out.weight.dtype)
        return (logits / self.temperature).log_softmax(dim=-1)


@dataclass(slots=True)
class DecoderInput:
    """What the decoder is conditioned on: the context, and the label to reply with."""

    memory: Memory
    label: Tensor | None = None
    """(batch,) ids."""
    expected: Tensor | None = None
    """(batch, labels) the predictor's log-probabilities, whichever label was requested."""


class Meed2(Model):
    """p(label | context) and p(reply | context, label)."""

    label_scale: Tensor
    label_offset: Tensor
    """The reply's label is the one with the highest label_scale · (p(l | x) − label_offset); both are (labels,).
    By default that is the most likely label, as in the paper; `listenwell calibrate` tunes them, because questioning
    and acknowledging are predicted far more often than they are right."""

    Config = Meed2Config
    calibration = "choice"
    objectives: ClassVar[Mapping[str, str]] = {
        "likelihood": "likelihood",
        "response-label": "response_label",
        "joint": "joint",
    }

    def __init__(self, config: Meed2Config, vocabulary: Vocabulary) -> None:
        super().__init__()
        check_summed(config.score_mass, config.score_most)
        if not 0 <= config.unconditional_share < 1:
            raise ValueError(
                f"unconditional_share is {config.unconditional_share}, expected a share of at least 0 and under 1"
            )
        if config.predictor_start == "generator" and config.predictor_layers != config.encoder_layers:
            layers = f"predictor_layers is {config.predictor_layers} and encoder_layers {config.encoder_layers}"
            raise ValueError(f"{layers}: alike if the predictor starts as the generator")
        self.config = config
        self.vocabulary = vocabulary
        self.label_set, self.emotions = label_set(config.label_set), label_set(config.emotions)
        sizes = {**config.layer_sizes, "activation": F.gelu}
        self.input = Input(WordEmbedding(vocabulary.size, config.width, config.word_width), config)
        self.encoder = Encoder(config.encoder_layers, **sizes)
        self.decoder = Decoder(config.decoder_layers, **sizes)
        self.predictor = Predictor(config, vocabulary) if config.labels else None
        self.takes_label = self.has_oracle_score = config.labels
        if config.labels:
            self.register_buffer("label_scale", torch.ones(len(self.label_set)))
            self.register_buffer("label_offset", torch.zeros(len(self.label_set)))

    @property
    def words(self) -> WordEmbedding:
        """The word embedding of encoder and decoder, which is also the output layer."""
        return self.input.words

    def initialise(self, prior: WordPrior) -> None:
        if prior.vectors is not None and prior.known is not None:
            self.words.start_from(prior.vectors, prior.known)
        self.words.start_at_unigrams(prior.counts, self.decoder)

    def on_epoch_start(self, stage: str, epoch: int, batches: Callable[[], Iterable[Batch]]) -> Iterable[str]:
        """Before the predictor's stage, reset its temperature and, if configured, copy the generator's weights."""
        if self.predictor is None or stage != PREDICTOR or epoch:
            return ()
        self.predictor.temperature.fill_(1.0)
        if self.config.predictor_start == "new":
            return ()
        theirs = self.state_dict()
        for name in ("input", "encoder"):
            part = getattr(self.predictor, name)
            part.load_state_dict({key: theirs[f"{name}.{key}"] for key in part.state_dict()})
        return ("predictor.input.*", "predictor.encoder.*")

    def remember(self, batch: Batch) -> Memory:
        """The context, encoded and projected for the decoder."""
        assert batch.context is not None
        return self.decoder.remember(self.encoder(self.input.of(batch.context), batch.context.mask), batch.context.mask)

    def predict(self, batch: Batch) -> Tensor:
        """log p(label | context), (batch, labels)."""
        if self.predictor is None:
            raise ValueError("this model was built without labels, so it has no predictor of the reply's label")
        assert batch.context is not None
        return self.predictor(batch.context)

    def choose(self, expected: Tensor) -> Tensor:
        """Choose the label to reply with (batch,) from the predictor's log-probabilities (batch, labels)."""
        return (self.label_scale * (expected.exp() - self.label_offset)).argmax(dim=-1)

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        """Condition on the requested label, or else on the one chosen from the predictions.

        The belief "label" puts all probability on the label that the reply will have; the predictor's own distribution
        is in the decoder input.
        """
        memory = self.remember(batch)
        if self.predictor is None:
            return State(fixed=DecoderInput(memory))
        expected = self.predict(batch)
        label = self.choose(expected)
        if controls is not None and controls.label is not None:
            label = torch.full_like(label, self.label_set.id_of(controls.label))
        certain = F.one_hot(label, len(self.label_set)).to(expected.dtype).log()
        return State({"label": certain}, DecoderInput(memory, label, expected))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        label = state.fixed.label
        roles = torch.full_like(tokens[:, None], LISTENER)
        x = self.input(tokens[:, None], roles, None if label is None else label[:, None], first=state.length)
        hidden, caches = self.decoder(x, state.fixed.memory, state.moving)
        return self.words.logits(hidden[:, 0]), State(state.beliefs, state.fixed, caches, state.length + 1)

    def teach(self, reply: Sequence, memory: Memory, label: Tensor | None) -> tuple[Tensor, Tensor]:
        """Teacher forcing: the decoder's outputs (positions, table width) and targets, real positions only.

        `label` is an id per row (batch,), ABSENT for none, or weights over all labels (batch, labels), applied at
        every position.
        """
        x = self.input(reply.shifted(self.vocabulary.start), reply.roles, None if label is None else label[:, None])
        hidden, _ = self.decoder(x, memory)
        return self.words.query(hidden[reply.mask]), reply.tokens[reply.mask]

    def gold(self, batch: Batch) -> Tensor | None:
        """The gold labels of the replies (batch,). A missing label counts as neutral if the label set has it; None for
        the plain transformer."""
        if self.predictor is None:
            return None
        assert batch.label is not None
        neutral = self.label_set.neutral
        if neutral is None:
            return batch.label
        return batch.label.masked_fill(batch.label == ABSENT, self.label_set.ids[neutral])

    def likelihood(self, batch: Batch, moment: Moment, smoothing: float = 0.0) -> dict[str, Term]:
        """The reply's negative log-likelihood under its gold label, in training and validation (§ 4.3). In training,
        a share `unconditional_share` of the replies has its label dropped.
        """
        label = self.gold(batch)
        if label is not None and self.training and self.config.unconditional_share:
            label = label.masked_fill(
                torch.rand(len(label), device=label.device) < self.config.unconditional_share, ABSENT
            )
        return self._reply_term(batch, label, smoothing)

    def response_label(self, batch: Batch, moment: Moment, label_smoothing: float = 0.0) -> dict[str, Term]:
        """The negative log-likelihood of the reply's label, where it has one."""
        assert batch.label is not None
        return classification_terms("response-label", self.predict(batch), batch.label, label_smoothing)

    def joint(
        self, batch: Batch, moment: Moment, smoothing: float = 0.0, label_smoothing: float = 0.0
    ) -> dict[str, Term]:
        """The alternative of § 4.3: both losses at once, and the decoder reads Σ p(l | x) E[l], not the gold label."""
        assert batch.label is not None
        expected = self.predict(batch)
        return {
            **self._reply_term(batch, expected.exp(), smoothing),
            **classification_terms("response-label", expected, batch.label, label_smoothing),
        }

    def _reply_term(self, batch: Batch, label: Tensor | None, smoothing: float) -> dict[str, Term]:
        assert batch.reply is not None
        hidden, targets = self.teach(batch.reply, self.remember(batch), label)
        return {"reply": reply_term(hidden, targets, self.words, smoothing)}

    def _nll(self, reply: Sequence, conditions: DecoderInput) -> Tensor:
        """−log p(reply | context, label), (batch,)."""
        hidden, targets = self.teach(reply, conditions.memory, conditions.label)
        return reply_nll(hidden, targets, self.words, reply.mask)

    def score(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        """−log Σ p(l | x) p(y | x, l) over all labels or the most likely ones. If a share u of the replies was trained
        without a label, −log ((1 − u) Σ p(l | x) p(y | x, l) + u p(y | x)).

        The sum covers the most likely labels until they hold `score_mass` of the probability, at most `score_most` of
        them. The rest is dropped without renormalising, so the likelihood is a lower bound and the perplexity an upper
        bound.
        """
        assert batch.reply is not None
        state = self.understand(batch)
        if self.predictor is None:
            return self._nll(batch.reply, state.fixed)
        lengths = batch.reply.mask.sum(dim=1)
        nll = torch.empty_like(lengths, dtype=torch.float)
        for rows in lengths.argsort().split(TOGETHER):
            reply = chosen(batch.reply, rows).first(int(lengths[rows].max()))
            nll[rows] = self._summed_out(reply, chosen(state.fixed, rows))
        return nll

    def _summed_out(self, reply: Sequence, conditions: DecoderInput) -> Tensor:
        """−log Σ p(l | x) p(y | x, l), (batch,)."""
        assert conditions.expected is not None
        likely = LikelyLabels.of(conditions.expected, self.config.score_mass, self.config.score_most)
        nll = []
        for part in torch.arange(len(likely.rows)).split(4 * TOGETHER):  # a context's memory is large to copy
            rows = likely.rows[part]
            labelled = replace(chosen(conditions, rows), label=likely.labels[part])
            nll.append(self._nll(chosen(reply, rows), labelled))
        log_p = likely.log_sum(torch.cat(nll))
        share = self.config.unconditional_share
        if not share:
            return -log_p
        no_label = torch.full_like(conditions.expected[:, 0], ABSENT, dtype=torch.long)
        unconditional = -self._nll(reply, replace(conditions, label=no_label))
        return -torch.logaddexp(math.log1p(-share) + log_p, math.log(share) + unconditional)

    def oracle_score(self, batch: Batch) -> Tensor:
        """−log p(y | x, l) of each row under the *gold* label l, which is unknown at inference time."""
        assert batch.reply is not None
        return self._nll(batch.reply, DecoderInput(self.remember(batch), self.gold(batch)))

    def reasons(self, state: State, row: int) -> dict[str, Any]:
        """The chosen label, its predicted probability, and the three most likely labels."""
        if self.predictor is None:
            return {}
        chances = state.fixed.expected[row].exp()
        chosen = int(state.fixed.label[row])
        values, indices = chances.topk(min(3, len(chances)))
        likely = zip(indices.tolist(), values.tolist(), strict=True)
        return {
            "does": self.label_set.labels[chosen],
            "probability": round(chances[chosen].item(), 4),
            "likeliest": {self.label_set.labels[index]: round(chance, 4) for index, chance in likely},
        }
