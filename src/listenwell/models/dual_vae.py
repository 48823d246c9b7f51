"""DualVAE: a conditional VAE whose latent feeds two decoders; the baseline of Dual-Emp's Table 1.

    prior N(c)      posterior N(c, y)      p(y | c, z), and in addition p(y | z): the reply reconstructed from z alone

The second decoder prevents posterior collapse: z is all that it knows about the reply. Both decoders share the word
embedding, and the speaker's emotion is classified from the context, as in the multi-task transformer. At inference time
z is sampled from the prior, and the second decoder is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from listenwell.contract import (
    Batch,
    Controls,
    Moment,
    State,
    Term,
    Vocabulary,
)
from listenwell.layers.latent import Gaussian, GaussianLayer, row_noise
from listenwell.layers.latent import anneal as annealed
from listenwell.layers.transformer import Decoder, Encoder, Memory, mean_over
from listenwell.models.terms import average_out, classification_terms, reply_nll, reply_term
from listenwell.models.trs import Trs, TrsConfig

SAMPLES = 10
"""Samples from the prior that a likelihood is averaged over."""


@dataclass
class DualVaeConfig(TrsConfig):
    """Sizes of the transformer and the latent."""

    emotion: bool = True
    """Classify the speaker's emotion from the context."""
    latent: int = 64
    """Width of z."""


@dataclass(slots=True)
class Reading:
    """An encoded context: hidden states, mask, summary and prior, each batch first."""

    hidden: Tensor
    mask: Tensor
    summary: Tensor
    prior: Gaussian


class DualVae(Trs):
    """p(reply | context) with z marginalised out, and p(emotion | context)."""

    Config: ClassVar[type[TrsConfig]] = DualVaeConfig
    config: DualVaeConfig
    objectives: ClassVar[Mapping[str, str]] = {"likelihood": "likelihood", "situation": "situation"}

    def __init__(self, config: DualVaeConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        sizes = config.layer_sizes
        self.reply_encoder = Encoder(config.encoder_layers, **sizes)
        self.prior = GaussianLayer(config.width, config.latent, inner=config.width)
        self.posterior = GaussianLayer(2 * config.width, config.latent, inner=config.width)
        self.widen = nn.Linear(config.latent, config.width)
        self.autoencoder = Decoder(config.decoder_layers, **sizes)

    def read(self, batch: Batch) -> Reading:
        hidden, mask = self.encode(batch)
        summary = self.summary(hidden, mask)
        return Reading(hidden, mask, summary, self.prior(summary))

    def infer(self, batch: Batch, summary: Tensor) -> Gaussian:
        """The posterior, from the context and the reply."""
        assert batch.reply is not None
        reply = batch.reply.as_source(self.vocabulary.ctx, self.vocabulary.end)
        seen = mean_over(self.reply_encoder(self.embed(reply.tokens, reply.roles), reply.mask), reply.mask)
        return self.posterior(torch.cat([summary, seen], dim=-1))

    def remember(self, reading: Reading, latent: Tensor) -> Memory:
        """What the reply's decoder attends to: z as an extra position before the context."""
        first = self.widen(latent)[:, None]
        mask = torch.cat([torch.ones_like(reading.mask[:, :1]), reading.mask], dim=1)
        return self.decoder.remember(torch.cat([first, reading.hidden], dim=1), mask)

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        reading = self.read(batch)
        noise = self._noise(batch, 1, generator)[:, 0]
        if controls is not None and controls.latent == "mean":
            noise = torch.zeros_like(noise)
        beliefs = {"emotion": self.believe(reading.summary)} if self.emotion is not None else {}
        return State(beliefs=beliefs, fixed=self.remember(reading, reading.prior.at(noise)))

    def likelihood(
        self,
        batch: Batch,
        moment: Moment,
        smoothing: float = 0.0,
        emotion_smoothing: float = 0.0,
        anneal: float = 0.1,
    ) -> dict[str, Term]:
        """The reply given c and z, the reply given z and the KL, each per token of the reply; and the emotion."""
        assert batch.emotion is not None
        assert batch.reply is not None
        reading = self.read(batch)
        posterior = self.infer(batch, reading.summary)
        latent = posterior.sample() if self.training else reading.prior.mean
        kl = posterior.kl(reading.prior).sum()
        alone = self.autoencoder.remember(self.widen(latent)[:, None], torch.ones_like(batch.reply.mask[:, :1]))
        memories = {
            "reply": (self.decoder, self.remember(reading, latent)),
            "autoencoded": (self.autoencoder, alone),
        }
        count = int(batch.reply.mask.sum())
        terms = {"kl": Term(annealed(moment.progress, anneal) * kl, count, kl.detach())}
        for name, (decoder, memory) in memories.items():
            hidden, targets = self._taught(batch, decoder, memory)
            terms[name] = reply_term(hidden, targets, self.words, smoothing, count)
        if self.emotion is not None:
            terms |= classification_terms("emotion", self.believe(reading.summary), batch.emotion, emotion_smoothing)
        return terms

    def _taught(self, batch: Batch, decoder: Decoder, memory: Memory) -> tuple[Tensor, Tensor]:
        assert batch.reply is not None
        hidden, _ = decoder(self.embed(batch.reply.shifted(self.vocabulary.start), batch.reply.roles), memory)
        return self.words.query(hidden[batch.reply.mask]), batch.reply.tokens[batch.reply.mask]

    def score(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        """−log of the mean of p(reply | context, z) over samples from the prior."""
        reading = self.read(batch)
        noise = self._noise(batch, SAMPLES, generator)
        nll = [self._nll(batch, reading, noise[:, draw]) for draw in range(SAMPLES)]
        return average_out(torch.stack(nll, dim=1))

    def _nll(self, batch: Batch, reading: Reading, noise: Tensor) -> Tensor:
        assert batch.reply is not None
        hidden, targets = self._taught(batch, self.decoder, self.remember(reading, reading.prior.at(noise)))
        return reply_nll(hidden, targets, self.words, batch.reply.mask)

    def _noise(self, batch: Batch, draws: int, generator: torch.Generator | None) -> Tensor:
        """(batch, draws, latent)"""
        rows = batch.rows or range(len(batch))
        return row_noise(rows, (draws, self.config.latent), generator, self.words.table.device)
