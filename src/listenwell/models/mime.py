"""MIME (Majumder et al., 2020): replies that mimic the speaker's emotion to a varying degree.

The speaker's emotion is classified against embeddings of the 32 emotions. Two latent variables mix the same
embeddings, one the positive and one the negative ones, into two emotion-aware encodings of the context: one that
mimics the speaker's polarity and one that does not. A gate fuses them into the memory that the decoder attends to.

`docs/papers/mime.md` says what follows the paper and what does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.contract import ABSENT, Batch, Controls, Moment, Sequence, State, Term, Vocabulary, map_tensors
from listenwell.labels.sets import LabelSet
from listenwell.layers.dropout import dropout
from listenwell.layers.latent import Gaussian, GaussianLayer, bounded, row_noise
from listenwell.layers.latent import anneal as annealed
from listenwell.layers.transformer import Encoder, mean_over
from listenwell.models.terms import average_out, classification_terms, reply_nll, reply_term
from listenwell.models.trs import Trs, TrsConfig

SAMPLES = 10
"""Samples from the prior that score() averages over."""

ROOM = 12_000
"""Context positions that score() refines at once; it batches as many samples as fit, at least one."""

LEAST = 1e-4
"""Minimum probability of each emotion of a group, for when the classifier predicts none of them."""

SHOWN = 3
"""How many emotions of a mixture `reasons` lists."""


@dataclass
class MimeConfig(TrsConfig):
    """The transformer's sizes, and the components that the paper's ablations remove."""

    emotion: Literal[True] = True
    """Always on: replies use the embeddings that the emotion is classified against."""
    refiner_layers: int = 1
    """Layers of the encoder that re-encodes the context together with an emotion mixture."""
    stochasticity: bool = True
    """Sample the latents. If false, they are their means and there is no posterior (Table 3, w/o STC)."""
    mimicry: bool = True
    """Let the speaker's polarity decide which group mimics. If false, the positive one is always first (Table 5)."""
    grouping: bool = True
    """One mixture per polarity. If false, a single mixture of all 32 emotions, with one refinement pass (Table 5)."""

    reply_seen: bool = False
    """Let the posterior see the reply, as in a conditional VAE. Not in the paper."""

    observed: bool = False
    """Treat e_g as observed: the emotion that a classifier predicts for the gold reply. The posterior is conditioned on
    it, and it is the target of Eq 9's mixture. Needs `chances_by` in the recipe's data."""
    log_variance: float = 0.0
    """Initial log-variance of the latents."""
    emotion_start: float = 0.0
    """Initial standard deviation of the weights that add a mixture to the words (Eqs 20–21); 0: initially no effect."""

    def __post_init__(self) -> None:
        if self.observed and (self.reply_seen or not self.stochasticity):
            raise ValueError(
                "observed is of a posterior that sees the reply's emotion: with stochasticity, without reply_seen"
            )
        if self.reply_seen and not self.stochasticity:
            raise ValueError("reply_seen is of the posterior, and without stochasticity there is none")
        if self.mimicry and not self.grouping:
            raise ValueError("mimicry needs grouping: without groups there is no polarity to mimic; set mimicry false")


@dataclass(slots=True)
class EncodedContext:
    """The encoded contexts, before the reply's emotion is sampled. All tensors are batch first."""

    words: Tensor
    """H₁…H_k, after the words' part of the first layer of Eqs 20–23: (batch, k, width)."""
    mask: Tensor
    summary: Tensor
    """c of Eq 3: (batch, width)."""
    emotion: Tensor
    """log P of Eq 5: (batch, emotions)."""
    priors: list[Gaussian]
    """P(z_g | C), one per group."""


def by_polarity(emotions: LabelSet) -> dict[str, list[str]]:
    """The two groups of emotions (Table 1 of the paper for the 32)."""
    groups = {
        name: [emotion for emotion in emotions if emotions.polarity.get(emotion) == name]
        for name in ("positive", "negative")
    }
    if other := set(emotions).difference(*groups.values()):
        raise ValueError(
            f"mime needs emotions that are positive or negative; of {emotions.name} {', '.join(sorted(other))} "
            "are neither: set grouping and mimicry false, or give the set's polarity"
        )
    return groups


class EmotionGroup(nn.Module):
    """The latent variable of a group of emotions, and the mixture that it maps to."""

    ids: Tensor

    def __init__(self, names: Iterable[str], emotions: LabelSet, config: MimeConfig) -> None:
        super().__init__()
        width, stochastic = config.width, config.stochasticity
        self.names = tuple(names)
        ids = torch.tensor([emotions.ids[name] for name in self.names])
        self.register_buffer("ids", ids, persistent=False)
        self.mean = nn.Linear(width, width)
        self.log_variance = nn.Linear(width, width) if stochastic else None
        seen = 3 if config.reply_seen else 2
        self.posterior = GaussianLayer(seen * width, width, inner=width) if stochastic else None
        self.weigh = nn.Linear(width, len(self.names))
        if config.log_variance and self.log_variance is not None and self.posterior is not None:
            for layer in (self.log_variance, self.posterior.log_variance):
                nn.init.constant_(layer.bias, config.log_variance)

    def prior(self, hidden: Tensor) -> Gaussian:
        """P(z_g | C) from c′ (Eqs 7, 12, 13). Without stochasticity it is a point mass: a Gaussian of variance 0."""
        mean = self.mean(hidden)
        if self.log_variance is None:
            return Gaussian(mean, torch.full_like(mean, -math.inf))
        return Gaussian(mean, bounded(self.log_variance(hidden)))

    def mixture(self, latent: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        """log d_g (batch, emotions of the group) and e_g (batch, width): Eqs 9 and 10."""
        log_weights = self.weigh(latent).log_softmax(dim=-1)
        return log_weights, log_weights.exp() @ table[self.ids]

    def within(self, chances: Tensor) -> Tensor:
        """d*_g (batch, emotions of the group): the probabilities of all emotions, renormalised within the group."""
        own = chances[:, self.ids].clamp_min(LEAST)
        return own / own.sum(dim=-1, keepdim=True)


class Mime(Trs):
    """p(reply | context), with the reply's emotions marginalised out, and p(emotion | context)."""

    Config: ClassVar[type[TrsConfig]] = MimeConfig
    config: MimeConfig
    emotion: nn.Linear
    positive: Tensor

    def __init__(self, config: MimeConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        width, sides = config.width, 2 if config.grouping else 1
        # E_E, one row per emotion, replaces multi-trs's head: the classifier and the response side share it.
        self.emotion = nn.Linear(width, len(self.emotions), bias=False)
        nn.init.normal_(self.emotion.weight, std=width**-0.5)
        self.match = nn.Linear(width, width, bias=False)  # W_E
        self.sample = nn.Linear(width, width)  # FC_sample, one for all groups
        groups = by_polarity(self.emotions) if config.grouping else {"mixture": self.emotions.labels}
        self.groups = nn.ModuleDict(
            {name: EmotionGroup(sorted(names), self.emotions, config) for name, names in groups.items()}
        )
        # The first layer on [H_i; m] is split into a layer on H_i, shared by m and m̃, and one on m.
        self.word_share = nn.Linear(width, width)
        self.emotion_share = nn.Linear(width, width, bias=False)
        self.refiner = Encoder(config.refiner_layers, **config.layer_sizes)
        self.contribution = nn.Linear(sides * width, sides * width)
        self.fusion = nn.Linear(sides * width, width)
        positive = [self.emotions.polarity.get(name) == "positive" for name in self.emotions]
        self.register_buffer("positive", torch.tensor(positive), persistent=False)
        self.start_plain()

    def start_plain(self) -> None:
        """Start as a transformer with two encoders: words pass through unchanged, M_fused is the mean of the sides."""
        one, sides = torch.eye(self.config.width), 2 if self.config.grouping else 1
        with torch.no_grad():
            self.match.weight.copy_(one)
            self.word_share.weight.copy_(one)
            self.fusion.weight.copy_((one * 2 / sides).repeat(1, sides))  # times 2, since the gate starts half open
            self.emotion_share.weight.zero_()
            if self.config.emotion_start:
                self.emotion_share.weight.normal_(std=self.config.emotion_start)
            self.contribution.weight.zero_()
            for layer in (self.word_share, self.fusion, self.contribution):
                layer.bias.zero_()

    @property
    def emotion_embeddings(self) -> Tensor:
        """E_E (emotions, width), in the order of the label set."""
        return self.emotion.weight

    def read(self, batch: Batch) -> EncodedContext:
        """Encode the context, classify its emotion and compute the priors of the reply's emotions (Eqs 1–7, 11–13)."""
        hidden, mask = self.encode(batch)
        summary = self.summary(hidden, mask)
        words, mask = without_ctx(hidden, mask)
        within = F.relu(self.sample(summary))
        return EncodedContext(
            words=self.word_share(words),
            mask=mask,
            summary=summary,
            emotion=self.believe(summary),
            priors=[group.prior(within) for group in self._groups()],
        )

    def believe(self, summary: Tensor) -> Tensor:
        """log P of Eq 5 from the scores of Eq 4."""
        felt = dropout(summary, self.config.emotion_dropout, self.training)
        return self.emotion(self.match(felt)).log_softmax(dim=-1)

    def observed(self, batch: Batch) -> list[Tensor] | None:
        """d*_g, one per group, if the model trains on observed emotions and the batch has them."""
        if not self.config.observed or batch.label_chances is None:
            return None
        return [group.within(batch.label_chances[:, : len(self.emotions)]) for group in self._groups()]

    def posteriors_of(self, context: EncodedContext, observed: list[Tensor]) -> list[Gaussian]:
        """Q(z_g | e*_g, C), one per group, with e*_g = d*_g E_Eg of the gold reply."""
        posteriors = []
        for group, weights in zip(self._groups(), observed, strict=True):
            assert group.posterior is not None
            mixed = weights @ self.emotion_embeddings[group.ids]
            posteriors.append(group.posterior(torch.cat([context.summary, mixed], dim=-1)))
        return posteriors

    def posteriors(self, context: EncodedContext, drawn: list[Tensor], reply: Sequence | None) -> list[Gaussian]:
        """Q(z_g | e_g, C) of Eq 17, one per group. The paper's e_g comes from Q itself; here it is sampled from P.

        With `reply_seen`, Q(z_g | e_g, C, reply): the mean of the reply's word embeddings is an additional input.
        """
        if self.config.observed:
            raise ValueError("this posterior is one of replies whose emotion is known; to reply, draw from the prior")
        posteriors, known = [], [context.summary]
        if self.config.reply_seen:
            if reply is None:
                raise ValueError("this posterior is one of replies that are known; to reply, draw from the prior")
            known.append(mean_over(self.words(reply.tokens), reply.mask))
        for group, latent in zip(self._groups(), drawn, strict=True):
            _, mixed = group.mixture(latent, self.emotion_embeddings)
            assert group.posterior is not None
            posteriors.append(group.posterior(torch.cat([*known, mixed], dim=-1)))
        return posteriors

    def is_positive(self, believed: Tensor, gold: Tensor | None = None) -> Tensor:
        """Whether the speaker's emotion is positive (batch,): the gold one where known, else the most likely one."""
        emotion = believed.argmax(dim=-1)
        if gold is not None:
            emotion = torch.where(gold == ABSENT, emotion, gold)
        return self.positive[emotion]

    def sides(self, mixed: list[Tensor], positive: Tensor) -> Tensor:
        """m and m̃ (sides, batch, width): Eqs 18 and 19. Without groups there is one side."""
        if not self.config.mimicry:
            return torch.stack(mixed)
        first, second = mixed
        swap = ~positive[:, None]
        return torch.stack([torch.where(swap, second, first), torch.where(swap, first, second)])

    def refine(self, context: EncodedContext, sides: Tensor) -> tuple[Tensor, Tensor]:
        """M_fused (batch, k, width) and M_contrib (batch, k, sides · width): Eqs 20–27."""
        read = (context.words + self.emotion_share(sides)[:, :, None]).flatten(0, 1)
        refined = self.refiner(read, context.mask.repeat(len(sides), 1))  # one encoder, all sides in one batch
        joined = torch.cat(refined.chunk(len(sides)), dim=-1)
        contribution = torch.sigmoid(self.contribution(joined))
        return self.fusion(contribution * joined), contribution

    def respond(self, context: EncodedContext, drawn: list[Tensor], positive: Tensor) -> State:
        """From the latents to the memory that the decoder attends to."""
        beliefs, mixed = {"emotion": context.emotion}, []
        for (name, group), latent in zip(self.groups.items(), drawn, strict=True):
            beliefs[name], emotion = group.mixture(latent, self.emotion_embeddings)  # type: ignore[operator]
            mixed.append(emotion)
        sides = self.sides(mixed, positive)
        fused, contribution = self.refine(context, sides)
        with torch.no_grad():
            beliefs["gate"] = mean_over(contribution, context.mask).unflatten(-1, (len(sides), -1)).mean(dim=-1)
        return State(beliefs=beliefs, fixed=self.decoder.remember(fused, context.mask))

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        latent = "prior" if controls is None else controls.latent
        context = self.read(batch)
        noise = self._noise(batch, 2, generator)
        if latent == "mean":
            noise = torch.zeros_like(noise)
        drawn = at(context.priors, noise[:, 0])
        if latent == "posterior" and self.config.stochasticity:
            drawn = at(self.posteriors(context, drawn, batch.reply), noise[:, 1])
        return self.respond(context, drawn, self.is_positive(context.emotion))

    def likelihood(
        self,
        batch: Batch,
        moment: Moment,
        smoothing: float = 0.0,
        emotion_smoothing: float = 0.0,
        anneal: float = 0.0,
        free: float = 0.0,
    ) -> dict[str, Term]:
        """The parts of Eq 32: the reply, the emotion and the KL of both groups.

        In training, the reply is decoded from the posterior under the gold polarity; otherwise as at inference time,
        from the prior under the predicted polarity. With observed emotions, `mixture` is −log P(e_g | z_g, C) of
        Eq 16, the cross-entropy of Eq 9's mixture against the emotion of the gold reply. `anneal` is the fraction of
        the stage over which the KL rises to its full weight; `free` is how many nats of each group's KL, averaged over
        the batch, are not penalised (free bits).
        """
        assert batch.emotion is not None
        context = self.read(batch)
        drawn = [prior.sample() for prior in context.priors]
        kl, observed = None, self._must_observe(batch)
        if self.config.stochasticity:
            posteriors = (
                self.posteriors(context, drawn, batch.reply)
                if observed is None
                else self.posteriors_of(context, observed)
            )
            kl = torch.stack([q.kl(p) for q, p in zip(posteriors, context.priors, strict=True)])
            if self.training:
                drawn = [posterior.sample() for posterior in posteriors]
        positive = self.is_positive(context.emotion, batch.emotion if self.training else None)
        state = self.respond(context, drawn, positive)
        hidden, targets = self.teach(batch, state)
        terms = {"reply": reply_term(hidden, targets, self.words, smoothing)}
        if kl is not None:
            charged = len(batch) * kl.mean(dim=1).clamp_min(free).sum()
            terms["kl"] = Term(annealed(moment.progress, anneal) * charged, len(targets), kl.detach().sum())
        if observed is not None:
            mixtures = [state.beliefs[name] for name in self.groups]
            missed = [-(true * log_weights).sum() for true, log_weights in zip(observed, mixtures, strict=True)]
            terms["mixture"] = Term(torch.stack(missed).sum(), len(targets))
        return terms | classification_terms("emotion", context.emotion, batch.emotion, emotion_smoothing)

    def _must_observe(self, batch: Batch) -> list[Tensor] | None:
        observed = self.observed(batch)
        if self.config.observed and observed is None:
            raise ValueError(
                "observed emotions of replies are learned from, and the data has none; set data.chances_by"
            )
        return observed

    def score(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        """−log of the mean of p(reply | context, draw) over draws from the prior."""
        context = self.read(batch)
        noise = self._noise(batch, SAMPLES if self.config.stochasticity else 1, generator)
        together = max(1, ROOM // context.mask.numel())
        parts = [self._nll(batch, context, part) for part in noise.split(together, dim=1)]
        return average_out(torch.cat(parts, dim=1))

    def _nll(self, batch: Batch, context: EncodedContext, noise: Tensor) -> Tensor:
        """−log p(reply | context, draw) (batch, draws) for noise (batch, draws, groups, width)."""
        draws = noise.shape[1]
        batch, context = map_tensors((batch, context), lambda tensor: tensor.repeat_interleave(draws, dim=0))
        assert batch.reply is not None
        state = self.respond(context, at(context.priors, noise.flatten(0, 1)), self.is_positive(context.emotion))
        hidden, targets = self.teach(batch, state)
        return reply_nll(hidden, targets, self.words, batch.reply.mask).unflatten(0, (-1, draws))

    def reasons(self, state: State, row: int) -> dict[str, Any]:
        """How far the gate opened for the mimicking side and the other one, and the top emotions of each mixture."""
        reasons: dict[str, Any] = {}
        if self.config.mimicry:
            gates = [round(gate, 4) for gate in state.beliefs["gate"][row].tolist()]
            reasons = dict(zip(("mimicry", "contrast"), gates, strict=True))
        for name, group in self.groups.items():
            weights, places = state.beliefs[name][row].exp().topk(SHOWN)
            names = [group.names[place] for place in places.tolist()]  # type: ignore[index]
            reasons[name] = {emotion: round(w, 4) for emotion, w in zip(names, weights.tolist(), strict=True)}
        return reasons

    def _groups(self) -> list[EmotionGroup]:
        return list(self.groups.values())  # type: ignore[arg-type]

    def _noise(self, batch: Batch, draws: int, generator: torch.Generator | None) -> Tensor:
        """(batch, draws, groups, width)"""
        rows = batch.rows or range(len(batch))
        shape = (draws, len(self.groups), self.config.width)
        return row_noise(rows, shape, generator, self.emotion_embeddings.device)


def at(distributions: list[Gaussian], noise: Tensor) -> list[Tensor]:
    """The sample of each distribution for the given noise (batch, distributions, width): Eq 15."""
    return [one.at(noise[:, index]) for index, one in enumerate(distributions)]


def without_ctx(hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """H₁…H_k and their mask. A context with nothing but CTX keeps it: attention needs at least one position."""
    empty = ~mask[:, 1:].any(dim=1, keepdim=True)
    if not bool(empty.any()):
        return hidden[:, 1:], mask[:, 1:]
    return hidden, torch.cat([empty, mask[:, 1:]], dim=1)
