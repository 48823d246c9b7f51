"""Dual-Emp: two dialogue models and the emotion that both sides agree on (Shen et al. 2021).

A forward model generates the reply to a context, a backward model the context of a reply. A discrete latent z with
K values, the emotion consensus, is inferred from either side and conditions both decoders:

    q(z|c) = softmax(FFN(H₀))       p(y | c, z), p(c | y, z)       p(e|z) = softmax(W_e E[z])         (3), (9), (4)

On paired data, two bounds are maximised, one with z from the context and one with z from the reply (11, 12). Where one
side of a pair is missing, the model generates it and is rewarded for how well the other side can be reconstructed from
it (15–17, in `dual_emp_unpaired`).

`sing-emp` is the forward model alone. All losses here are minimised, whereas the paper's L1…L4 are bounds to be
maximised. Every term is a sum divided by the same count, the tokens of the forward direction's target, so that a bound
stays a bound; an emotion thus weighs as much as one token unless the recipe says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from listenwell.contract import (
    Batch,
    Controls,
    Direction,
    Model,
    Moment,
    Sequence,
    State,
    Term,
    Vocabulary,
    WordPrior,
)
from listenwell.data.dialogue import ROLES
from listenwell.labels.sets import label_set
from listenwell.layers.dropout import Dropout, dropout
from listenwell.layers.embedding import WordEmbedding
from listenwell.layers.latent import anneal, categorical_kl, entropy, straight_through
from listenwell.layers.loss import packed_cross_entropy
from listenwell.layers.transformer import Encoder, mean_over, sinusoids
from listenwell.layers.two_source import TwoSourceDecoder, TwoSourceMemory
from listenwell.models.dual_emp_unpaired import unpaired_terms
from listenwell.models.sizes import TransformerSizes
from listenwell.models.terms import classification_terms, sum_by_row, sum_out

SPEAKER, LISTENER = ROLES.index("speaker"), ROLES.index("listener")

AT_ONCE = 4
"""How many values of z to evaluate at once: each takes a decoder pass over the whole batch."""
LEANING = 3.0
"""Initial margin of the logit of a value's own emotion over the others."""
SHOWN = 3
"""How many emotions `reasons` lists."""


@dataclass
class DualEmpConfig(TransformerSizes):
    """Sizes and options."""

    tied: bool = True
    """Share one table between word embedding and output layer."""
    emotions: str = "emotion"
    """Name of the label set of p(e|z): the 32 emotions or another, such as one of the recipe's own `label_sets`."""
    consensus_size: int = 32
    """K, the number of values of the consensus."""
    consensus_from: Literal["first", "mean"] = "first"
    """What the consensus is inferred from: H₀, as in the paper, or the mean of H, which learns the emotion faster."""
    consensus_dropout: float = 0.0
    """Dropout rate on what the consensus is inferred from."""
    dual: bool = True
    """False for Sing-Emp: the forward model alone, z from the context alone."""


class DialogueModel(nn.Module):
    """One direction: encodes a source, infers z from it, and decodes the target given z."""

    def __init__(self, config: DualEmpConfig) -> None:
        super().__init__()
        sizes = config.layer_sizes
        self.encoder = Encoder(config.encoder_layers, **sizes)
        self.reads_mean = config.consensus_from == "mean"
        self.inference = nn.Sequential(
            Dropout(config.consensus_dropout),
            nn.Linear(config.width, config.width),
            nn.ReLU(),
            nn.Linear(config.width, config.consensus_size),
        )
        self.decoder = TwoSourceDecoder(config.decoder_layers, **sizes)

    def infer(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """log q(z | source), (batch, K): Eq 3."""
        summary = mean_over(hidden, mask) if self.reads_mean else hidden[:, 0]
        return self.inference(summary).log_softmax(dim=-1)


class DualEmp(Model):
    """p(reply | context, z), p(context | reply, z) and p(emotion | z)."""

    Config = DualEmpConfig
    directions: tuple[Direction, ...] = ("forward", "backward")
    objectives: ClassVar[Mapping[str, str]] = {
        "paired": "paired",
        "likelihood": "likelihood",
        "situation": "situation",
        "unpaired-context": "unpaired_context",
        "unpaired-reply": "unpaired_reply",
    }

    def __init__(self, config: DualEmpConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.words = WordEmbedding(vocabulary.size, config.width, config.word_width, config.tied)
        self.speakers = nn.Embedding(2, config.width)
        self.consensus = nn.Embedding(config.consensus_size, config.width)  # E_z
        self.emotions = label_set(config.emotions)
        self.emotion = nn.Linear(config.width, len(self.emotions))  # W_e
        for table in (self.speakers, self.consensus):
            nn.init.normal_(table.weight, std=0.02 if table is self.speakers else 1.0)
        self.forward_model = DialogueModel(config)
        self.backward_model = DialogueModel(config) if config.dual else None
        self.latent_values = config.consensus_size
        if not config.dual:
            self.directions = ("forward",)

    def model(self, direction: Direction) -> DialogueModel:
        model = self.forward_model if direction == "forward" else self.backward_model
        assert model is not None
        return model

    def role_written(self, direction: Direction) -> int:
        """The role of a direction's output: a reply is the listener's, a generated context is one speaker turn."""
        return LISTENER if direction == "forward" else SPEAKER

    def initialise(self, prior: WordPrior) -> None:
        if prior.vectors is not None and prior.known is not None:
            self.words.start_from(prior.vectors, prior.known)
        for direction in self.directions:
            self.words.start_at_unigrams(prior.counts, self.model(direction).decoder)
        self._start_consensus()

    @torch.no_grad()
    def _start_consensus(self) -> None:
        """Start E_z like word embeddings, in the dimensions where words are read: it does not affect the output yet."""
        table = self.words.table
        rows = torch.randn(self.config.consensus_size, table.shape[1]) * table.shape[1] ** -0.5
        self.consensus.weight.copy_(self.words.widen(rows * table.any(dim=0)) * math.sqrt(table.shape[1]))
        # Assign each value to one emotion: if all started alike, q(z) and p(e|z) would not learn from each other.
        ours = self.consensus.weight / self.consensus.weight.square().sum(dim=-1, keepdim=True)
        self.emotion.weight.zero_()
        self.emotion.bias.zero_()
        owner = torch.arange(self.config.consensus_size, device=ours.device) % len(self.emotions)
        self.emotion.weight.index_add_(0, owner, LEANING * ours)

    # The two sides of an example

    def source(self, batch: Batch, direction: Direction) -> Sequence:
        """The input of a direction."""
        if direction == "forward":
            assert batch.context is not None
            return batch.context
        assert batch.reply is not None
        return batch.reply.as_source(self.vocabulary.ctx, self.vocabulary.end)

    def target(self, batch: Batch, direction: Direction) -> Sequence:
        """The target of a direction: the reply, or the whole context with marks between its turns."""
        if direction == "forward":
            assert batch.reply is not None
            return batch.reply
        assert batch.context is not None
        ids = self.vocabulary
        return batch.context.as_target(ids.ctx, ids.start, ids.end, ids.pad)

    # Reading

    def embed(self, vectors: Tensor, roles: Tensor, first: int = 0) -> Tensor:
        """Word + position + role (Eq 1). `first` is the position of the first token."""
        positions = sinusoids(first + vectors.shape[1], self.config.width, vectors.device)[first:]
        return dropout(vectors + positions + self.speakers(roles), self.config.dropout, self.training)

    def encode(self, source: Sequence, direction: Direction) -> Tensor:
        """H (batch, time, width): Eq 2."""
        model = self.model(direction)
        return model.encoder(self.embed(self.words(source.tokens), source.roles), source.mask)

    def believe(self, log_q: Tensor) -> Tensor:
        """log Σ_z q(z) p(e|z), (batch, emotions): Eq 4 with z summed out."""
        log_p = self.emotion(self.consensus.weight).log_softmax(dim=-1)  # (K, emotions)
        return torch.logsumexp(log_q[:, :, None] + log_p, dim=1)

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Direction = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        """Uses the most likely z unless `controls.latent_value` sets one: nothing is sampled at inference time."""
        if direction not in self.directions:
            raise ValueError("sing-emp has no backward model; dual-emp has")
        source = self.source(batch, direction)
        hidden = self.encode(source, direction)
        log_q = self.model(direction).infer(hidden, source.mask)
        chosen = log_q.argmax(dim=-1)
        if controls is not None and controls.latent_value is not None:
            chosen = torch.full_like(chosen, self._checked(controls.latent_value))
        state = self.begin(hidden, source.mask, log_q, self.consensus(chosen), direction)
        # The chosen value has probability 1, whoever chose it.
        state.beliefs["chosen"] = torch.full_like(log_q, -torch.inf).scatter(1, chosen[:, None], 0.0)
        return state

    def _checked(self, value: int) -> int:
        if not 0 <= value < self.config.consensus_size:
            raise ValueError(f"the consensus has the values 0 to {self.config.consensus_size - 1}, found {value}")
        return value

    def begin(self, hidden: Tensor, mask: Tensor, log_q: Tensor, embedding: Tensor, direction: Direction) -> State:
        memory = self.model(direction).decoder.remember(hidden, mask, embedding)
        beliefs = {"emotion": self.believe(log_q), "consensus": log_q}
        return State(beliefs, fixed={"direction": direction, "memory": memory})

    # Writing

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        direction, memory = state.fixed["direction"], state.fixed["memory"]
        vectors = memory.embedding[:, None] if state.length == 0 else self.words(tokens[:, None])
        roles = torch.full_like(tokens[:, None], self.role_written(direction))
        x = self.embed(vectors, roles, first=state.length)
        hidden, caches = self.model(direction).decoder(x, memory, state.moving)
        return self.words.logits(hidden[:, 0]), State(state.beliefs, state.fixed, caches, state.length + 1)

    def teach(self, target: Sequence, memory: TwoSourceMemory, direction: Direction) -> tuple[Tensor, Tensor]:
        """Teacher forcing with E[z] in place of a start token: outputs and targets, real positions only.

        A decoder input has the role of the token to predict, as at inference time.
        """
        vectors = torch.cat([memory.embedding[:, None], self.words(target.tokens[:, :-1])], dim=1)
        hidden, _ = self.model(direction).decoder(self.embed(vectors, target.roles), memory)
        return self.words.query(hidden[target.mask]), target.tokens[target.mask]

    def cost(
        self,
        target: Sequence,
        memory: TwoSourceMemory,
        direction: Direction,
        smoothing: float = 0.0,
        weights: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Σ −log p(target | source, z), with label smoothing and row weights; and −log p of each row."""
        hidden, tokens = self.teach(target, memory, direction)
        spread = None if weights is None else weights[:, None].expand_as(target.mask)[target.mask]
        loss, nll = self._choose(hidden, tokens, smoothing, spread)
        return loss, sum_by_row(nll, target.mask)

    def _choose(
        self, outputs: Tensor, tokens: Tensor, smoothing: float = 0.0, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Σ −log p(token), and −log p of each token."""
        return packed_cross_entropy(outputs, self.words.choices, self.words.bias, tokens, smoothing, weights)

    # Paired data

    def paired(
        self,
        batch: Batch,
        moment: Moment,
        smoothing: float = 0.0,
        emotion_smoothing: float = 0.0,
        temperature: float = 1.0,
        kl_annealed: float = 0.1,
        free: float = 0.0,
    ) -> dict[str, Term]:
        """−L1 − L2 + α·L_emo (Eqs 11–13); the weight α is the recipe's.

        `free` is how many nats of each side's KL, averaged over the batch, are not penalised (free bits).
        """
        read = {direction: self.source(batch, direction) for direction in self.directions}
        hidden = {direction: self.encode(source, direction) for direction, source in read.items()}
        count = float(self.target(batch, "forward").mask.sum())
        rise = anneal(moment.progress, kl_annealed) if self.training else 1.0
        log_q = {side: self.model(side).infer(hidden[side], read[side].mask) for side in self.directions}
        # z from c gives L1, z from y gives L2; a decoder scores its target under both in one pass.
        sides = len(self.directions)
        drawn = torch.cat([self.drawn_embedding(log_q[side], temperature) for side in self.directions])
        terms: dict[str, Term] = {}
        for direction in self.directions:
            memory = self.model(direction).decoder.remember(hidden[direction], read[direction].mask, drawn)
            written = self.teach(_repeated(self.target(batch, direction), sides), memory, direction)
            halves = zip(*(part.chunk(sides) for part in written), strict=True)
            for inferred_from, (outputs, tokens) in zip(self.directions, halves, strict=True):
                loss, nll = self._choose(outputs, tokens, smoothing)
                terms[_term(direction, inferred_from)] = Term(loss, count, nll.sum())
        for inferred_from in self.directions:
            log_qs = log_q[inferred_from]
            terms |= self.latent_terms(log_qs, batch, count, rise, emotion_smoothing, inferred_from, free)
        return terms

    likelihood = paired

    def drawn_embedding(self, log_q: Tensor, temperature: float) -> Tensor:
        """E[z]: of a straight-through sample in training, of the most likely z otherwise."""
        if not self.training:
            return self.consensus(log_q.argmax(dim=-1))
        return straight_through(log_q, temperature) @ self.consensus.weight

    def latent_terms(
        self,
        log_q: Tensor,
        batch: Batch,
        count: float,
        rise: float,
        smoothing: float,
        side: Direction,
        free: float = 0.0,
    ) -> dict[str, Term]:
        """The KL to the uniform prior, L_emo (averaged over both sides), and how much z is used."""
        assert batch.emotion is not None
        kl = categorical_kl(log_q).sum()
        name = "" if side == "forward" else "-dual"
        # With z marginalised out. With a noisy sample, or with the mean loss over samples (which pulls p(e|z) together
        # for all z while q is uncertain), z stayed meaningless for half an epoch.
        felt = classification_terms("emotion", self.believe(log_q), batch.emotion, smoothing)
        loss, share = felt["emotion"], 1 / len(self.directions)
        mean = log_q.exp().mean(dim=0)
        spread = -(mean * mean.clamp_min(1e-12).log()).sum()
        return {
            f"kl{name}": Term(rise * kl.clamp_min(free * len(batch)), count, kl),
            f"emotion{name}": Term(share * loss.total, count, None if loss.plain is None else share * loss.plain),
            f"emotion-accuracy{name}": felt["emotion-accuracy"],
            # KL = log K − H(q). This is the mutual information: how well z tells sources apart, in nats.
            f"information{name}": Term(len(batch) * spread - entropy(log_q).sum(), len(batch), learned=False),
        }

    def situation(self, batch: Batch, moment: Moment, emotion_smoothing: float = 0.0) -> dict[str, Term]:
        """The emotion only, with z marginalised out, for texts without a reply."""
        assert batch.emotion is not None
        assert batch.context is not None
        log_q = self.model("forward").infer(self.encode(batch.context, "forward"), batch.context.mask)
        return classification_terms("situation", self.believe(log_q), batch.emotion, emotion_smoothing)

    # Unpaired data

    def unpaired_context(
        self, batch: Batch, moment: Moment, temperature: float = 1.0, kl_annealed: float = 0.0, free: float = 0.0
    ) -> dict[str, Term]:
        """−L3 + β·L_emo (Eqs 15, 16, 18): generates a reply, rewarded by how well the context is reconstructed."""
        return unpaired_terms(self, batch, moment, "forward", temperature, kl_annealed, free)

    def unpaired_reply(
        self, batch: Batch, moment: Moment, temperature: float = 1.0, kl_annealed: float = 0.0, free: float = 0.0
    ) -> dict[str, Term]:
        """−L4 + γ·L_emo (Eqs 17, 19): the mirror image, which generates one speaker turn for the reply."""
        return unpaired_terms(self, batch, moment, "backward", temperature, kl_annealed, free)

    # Measuring

    def score(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        """−log Σ_z q(z|c) p(y|c,z), exactly."""
        return sum_out(*self.score_by_latent(batch))

    def score_by_latent(self, batch: Batch) -> tuple[Tensor, Tensor]:
        context = self.source(batch, "forward")
        hidden = self.encode(context, "forward")
        log_q = self.model("forward").infer(hidden, context.mask)
        return log_q, torch.stack([*self._by_consensus(batch, hidden, context.mask)], dim=1)

    def _by_consensus(self, batch: Batch, hidden: Tensor, mask: Tensor) -> Iterator[Tensor]:
        """−log p(y | c, z) of each row (batch,), for each z."""
        decoder, target = self.model("forward").decoder, self.target(batch, "forward")
        for first in range(0, self.config.consensus_size, AT_ONCE):
            embeddings = self.consensus.weight[first : first + AT_ONCE]
            times = len(embeddings)
            many = _repeated(target, times)
            memory = decoder.remember(hidden, mask, embeddings.repeat_interleave(len(batch), dim=0))
            _, nll = self.cost(many, memory, "forward")
            yield from nll.view(times, len(batch))

    def reasons(self, state: State, row: int) -> dict[str, Any]:
        """The chosen consensus value, its probability, and the emotions it represents."""
        log_q = state.beliefs["consensus"][row]
        chosen = int(state.beliefs["chosen"][row].argmax())
        chances = self.emotion(self.consensus.weight[chosen]).softmax(dim=-1).detach()
        likely = chances.argsort(descending=True)[:SHOWN].tolist()
        return {
            "consensus": chosen,
            "probability": round(float(log_q[chosen].exp()), 4),
            "stands for": {self.emotions.labels[index]: round(float(chances[index]), 4) for index in likely},
        }


def _term(direction: Direction, inferred_from: Direction) -> str:
    """Term name: reply and context with z from the context; reply-dual and context-dual with z from the reply."""
    name = "reply" if direction == "forward" else "context"
    return name if inferred_from == "forward" else f"{name}-dual"


def _repeated(target: Sequence, times: int) -> Sequence:
    """The whole batch, repeated."""
    return Sequence(*(part.repeat(times, 1) for part in (target.tokens, target.mask, target.roles)))
