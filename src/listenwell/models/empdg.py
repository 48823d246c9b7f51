"""EmpDG: the emotional words read once more, alone, and two judges to learn from (Li et al. 2020).

The multi-task transformer with a second, finer look at the context: the words that a lexicon associates with an
emotion form a sequence of their own, with an encoder of its own. The speaker's emotion is classified from both
encodings, and the decoder attends to both. In training, a semantic and an emotional judge tell real replies from
generated ones, each with the speaker's next turn beside them; the generator learns to pass for real. In use there
are no judges and no next turn.

Parameters are named `generator.*` and `judges.*`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from listenwell.configuration import ConfigError
from listenwell.contract import (
    Batch,
    Controls,
    Model,
    Moment,
    Sequence,
    State,
    Term,
    Vocabulary,
    WordPrior,
)
from listenwell.decoding import Decoding, decode
from listenwell.layers.transformer import Encoder, mean_over, sinusoids
from listenwell.models.terms import classification_terms, reply_term
from listenwell.models.trs import LISTENER, Trs, TrsConfig

JUDGES = ("semantic", "emotional")
LONGEST = 40
"""Words of a drawn reply at most, as in use."""
UNHEARD = -1e4
"""The logit of what the judges never read: its probability is 0, and its logarithm still a number."""


@dataclass
class EmpdgConfig(TrsConfig):
    """The transformer's sizes, and the judges'."""

    emotion: bool = True
    """Classify the speaker's emotion, from both encodings."""
    judge_heads: int = 4
    """Of a judge's attention. A judge is as wide as the word table: it reads words and nothing else."""


def to_the_left(picked: Tensor) -> tuple[Tensor, Tensor]:
    """The places of the positions picked (batch, most), in order, and which of these are real, for each row.

    `most` is how many the fullest row has.
    """
    order = picked.int().argsort(dim=1, descending=True, stable=True)[:, : int(picked.sum(dim=1).max())]
    return order, picked.gather(1, order)


def soft_draw(log_p: Tensor, drawn: Tensor, temperature: float = 1.0) -> Tensor:
    """The Gumbel-softmax (positions, words) that goes with the words `drawn` (positions,) from log_p.

    A draw is a race: word i arrives after a time E_i / p_i, where E_i is exponential, and the first one is drawn; −log
    of that time is log p_i with Gumbel noise. The winner's time is exponential too, and says nothing of the others but
    that they come later. So the noise can be drawn after the words, and the softmax is highest at them.
    """
    first = torch.empty_like(log_p[:, :1]).exponential_()
    # −log of a uniform number is exponential too, and nine times faster for so many.
    arrival = torch.rand_like(log_p).log_().neg_().div_(log_p.detach().exp()).add_(first)
    noise = arrival.scatter_(1, drawn[:, None], first).log_().neg_().sub_(log_p.detach())
    return ((log_p + noise) / temperature).softmax(dim=-1)


class Generator(Trs):
    """p(reply | context) and p(emotion | context), from the context and its emotional words."""

    emotional: Tensor
    """(vocabulary,) which words are emotional; kept with the weights, so that in use no lexicon is needed."""

    def __init__(self, config: EmpdgConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        sizes = config.layer_sizes
        self.emotional_encoder = Encoder(config.encoder_layers, **sizes)
        self.emotion = nn.Linear(2 * config.width, len(self.emotions)) if config.emotion else None
        self.register_buffer("emotional", torch.zeros(vocabulary.size, dtype=torch.bool))

    def initialise(self, prior: WordPrior) -> None:
        if prior.emotional is None:
            raise ConfigError(
                "empdg reads the emotional words of a context alone: the recipe needs a lexicon to tell them by, "
                "such as lexicon: lexicons/nrc_emolex_en.json"
            )
        super().initialise(prior)
        self.emotional.copy_(prior.emotional)

    def emotional_words(self, context: Sequence) -> Sequence:
        """The emotional words of a context behind a CTX token, which stands alone where there are none."""
        order, mask = to_the_left(self.emotional[context.tokens] & context.mask)
        tokens = context.tokens.gather(1, order).masked_fill(~mask, self.vocabulary.pad)
        return Sequence(
            F.pad(tokens, (1, 0), value=self.vocabulary.ctx),
            F.pad(mask, (1, 0), value=True),
            F.pad(context.roles.gather(1, order), (1, 0)),
        )

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The context, and behind it in time its emotional words, as one memory (batch, time, width) with its mask.

        One softmax of the decoder's attention thus weighs all positions of both against each other.
        """
        assert batch.context is not None
        hidden, mask = super().encode(batch)
        words = self.emotional_words(batch.context)
        felt = self.emotional_encoder(self.embed(words.tokens, words.roles), words.mask)
        return torch.cat([hidden, felt], dim=1), torch.cat([mask, words.mask], dim=1)

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        assert batch.context is not None
        memory, mask = self.encode(batch)
        beliefs = {}
        if self.emotion is not None:
            time = batch.context.tokens.shape[1]
            both = [self.summary(memory[:, part], mask[:, part]) for part in (slice(time), slice(time, None))]
            beliefs["emotion"] = self.believe(torch.cat(both, dim=-1))
        return State(beliefs=beliefs, fixed=self.decoder.remember(memory, mask))

    def classify_emotion(self, batch: Batch) -> Tensor:
        return self.understand(batch).beliefs["emotion"]

    def likelihood(
        self, batch: Batch, moment: Moment, smoothing: float = 0.0, emotion_smoothing: float = 0.0
    ) -> dict[str, Term]:
        return self.losses(batch, self.understand(batch), smoothing, emotion_smoothing)

    def losses(self, batch: Batch, state: State, smoothing: float, emotion_smoothing: float) -> dict[str, Term]:
        """The terms of the likelihood, once the context is understood."""
        assert batch.emotion is not None
        hidden, targets = self.teach(batch, state)
        terms = {"reply": reply_term(hidden, targets, self.words, smoothing)}
        if self.emotion is not None:
            terms |= classification_terms("emotion", state.beliefs["emotion"], batch.emotion, emotion_smoothing)
        return terms

    def draw(self, batch: Batch, state: State, seed: int) -> Sequence:
        """A reply drawn for each row, word by word as in use, without its end.

        How long it may be has nothing to do with the batch, whose replies are of like length: who hears a reply cut
        there would know it by that.
        """
        ids = self.vocabulary
        options = Decoding(method="sample", max_length=LONGEST, seed=seed)
        # Unknown words are not banned: the real replies have them too.
        banned = (ids.pad, ids.start, ids.ctx)
        decoded = decode(self, state, options, start=ids.start, end=ids.end, banned=banned, items=batch.rows or None)
        rows = [torch.tensor(drawn.tokens, dtype=torch.long) for [drawn] in decoded]
        tokens = pad_sequence(rows, batch_first=True, padding_value=ids.pad).to(self.words.table.device)
        # No padding is drawn, so that what is no padding was.
        return Sequence(tokens, tokens != ids.pad, torch.full_like(tokens, LISTENER))


@dataclass(slots=True)
class EmbeddedText:
    """An utterance as the judges read it: tokens and mask (batch, time), word vectors (batch, time, width)."""

    tokens: Tensor
    mask: Tensor
    vectors: Tensor


class Judge(nn.Module):
    """Whether a reply is real, as a logit (batch,), from the reply and the turn that follows it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.sides = nn.Embedding(2, width)
        nn.init.normal_(self.sides.weight, std=0.02)
        self.encoder = Encoder(1, width, heads, 2 * width, dropout)
        self.verdict = nn.Linear(width, 1)

    def forward(self, reply: EmbeddedText, following: EmbeddedText) -> Tensor:
        parts = [
            text.vectors + sinusoids(text.vectors.shape[1], text.vectors.shape[2], text.vectors.device) + side
            for text, side in zip((reply, following), self.sides.weight, strict=True)
        ]
        mask = torch.cat([reply.mask, following.mask], dim=1)
        return self.verdict(mean_over(self.encoder(torch.cat(parts, dim=1), mask), mask))[:, 0]


class Judges(nn.Module):
    """Two judges over one word table of their own: one hears every word, the other the emotional ones alone."""

    def __init__(self, config: EmpdgConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        width = config.word_width or config.width
        self.vocabulary = vocabulary
        self.table = nn.Parameter(torch.randn(vocabulary.size, width) * width**-0.5)
        self.semantic = Judge(width, config.judge_heads, config.dropout)
        self.emotional = Judge(width, config.judge_heads, config.dropout)

    def embed(self, said: Sequence) -> EmbeddedText:
        return EmbeddedText(said.tokens, said.mask, self._scaled(F.embedding(said.tokens, self.table)))

    def embed_softly(self, said: Sequence, soft: Tensor) -> EmbeddedText:
        """The same words; the gradient flows as if `soft` (real positions, words) had been text in their place."""
        text = self.embed(said)
        expected = self._scaled(soft @ self.table).to(text.vectors.dtype)  # which may be half as precise
        slope = torch.zeros_like(text.vectors).masked_scatter(text.mask[..., None], expected - expected.detach())
        return replace(text, vectors=text.vectors + slope)

    def _scaled(self, vectors: Tensor) -> Tensor:
        return vectors * math.sqrt(self.table.shape[1])

    def only(self, text: EmbeddedText, emotional: Tensor) -> EmbeddedText:
        """The emotional words of an utterance behind a CTX token, which stands alone where there are none."""
        order, mask = to_the_left(emotional[text.tokens] & text.mask)
        vectors = text.vectors.gather(1, order[..., None].expand(-1, -1, text.vectors.shape[2]))
        ctx = torch.full_like(text.tokens[:, :1], self.vocabulary.ctx)
        return EmbeddedText(
            torch.cat([ctx, text.tokens.gather(1, order)], dim=1),
            F.pad(mask, (1, 0), value=True),
            torch.cat([self._scaled(F.embedding(ctx, self.table)), vectors], dim=1),
        )

    def forward(self, reply: EmbeddedText, following: EmbeddedText, emotional: Tensor) -> dict[str, Tensor]:
        """Each judge's logits (batch,), above 0 where it takes the reply for real."""
        return {
            "semantic": self.semantic(reply, following),
            "emotional": self.emotional(self.only(reply, emotional), self.only(following, emotional)),
        }


class Empdg(Model):
    """The generator, and in training the judges that it learns from."""

    Config = EmpdgConfig
    objectives: ClassVar[Mapping[str, str]] = {
        name: name for name in ("likelihood", "situation", "adversarial", "discriminate")
    }

    def __init__(self, config: EmpdgConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.generator = Generator(config, vocabulary)
        self.emotions = self.generator.emotions
        self.judges = Judges(config, vocabulary)

    def initialise(self, prior: WordPrior) -> None:
        self.generator.initialise(prior)
        with torch.no_grad():  # the judges know as much of the words as the generator does
            self.judges.table.copy_(self.generator.words.table)

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        return self.generator.understand(batch, controls, direction, generator)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        return self.generator.step(tokens, state)

    def score(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        return self.generator.score(batch, generator)

    def likelihood(
        self, batch: Batch, moment: Moment, smoothing: float = 0.0, emotion_smoothing: float = 0.0
    ) -> dict[str, Term]:
        """The reply's and the emotion's negative log-likelihood."""
        return self.generator.likelihood(batch, moment, smoothing, emotion_smoothing)

    def situation(self, batch: Batch, moment: Moment, emotion_smoothing: float = 0.0) -> dict[str, Term]:
        """The emotion's negative log-likelihood alone."""
        return self.generator.situation(batch, moment, emotion_smoothing)

    def discriminate(self, batch: Batch, moment: Moment) -> dict[str, Term]:
        """The judges' cross-entropy on the real replies and on as many drawn from the generator, and their accuracy."""
        real, following = self._real(batch)
        drawn = self._drawn(batch, moment)
        on_real = self.judges(real, following, self.generator.emotional)
        on_drawn = self.judges(self.judges.embed(drawn), following, self.generator.emotional)
        terms = {}
        for judge in JUDGES:
            loss = F.softplus(-on_real[judge]).sum() + F.softplus(on_drawn[judge]).sum()
            right = (on_real[judge] > 0).sum() + (on_drawn[judge] <= 0).sum()
            terms[f"{judge}-judge"] = Term(loss, 2 * len(batch))
            terms[f"{judge}-judge-accuracy"] = Term(right, 2 * len(batch), learned=False)
        return terms

    def adversarial(
        self,
        batch: Batch,
        moment: Moment,
        smoothing: float = 0.0,
        emotion_smoothing: float = 0.0,
        temperature: float = 1.0,
    ) -> dict[str, Term]:
        """The likelihood, and −log of how real each judge takes a drawn reply to be.

        The gradient reaches the generator through straight-through Gumbel-softmax draws.
        """
        _, following = self._real(batch)
        state = self.generator.understand(batch)
        terms = self.generator.losses(batch, state, smoothing, emotion_smoothing)
        drawn = self._drawn(batch, moment)
        hidden, words = self.generator.teach(replace(batch, reply=drawn), state)
        logits = F.linear(hidden, self.generator.words.choices, self.generator.words.bias)
        # The judges never read some tokens, the end above all: their loss must not change those logits.
        ids = self.vocabulary
        log_p = logits.index_fill(1, words.new_tensor([ids.pad, ids.start, ids.end, ids.ctx]), UNHEARD).log_softmax(1)
        text = self.judges.embed_softly(drawn, soft_draw(log_p, words, temperature))
        verdicts = self.judges(text, following, self.generator.emotional)
        return terms | {judge: Term(F.softplus(-verdicts[judge]).sum(), len(batch)) for judge in JUDGES}

    def _drawn(self, batch: Batch, moment: Moment) -> Sequence:
        """Replies of the generator as in use, with no dropout: so both moves see the same generator."""
        learns = self.generator.training
        self.generator.eval()
        with torch.no_grad():
            drawn = self.generator.draw(batch, self.generator.understand(batch), moment.step)
        self.generator.train(learns)
        return drawn

    def _real(self, batch: Batch) -> tuple[EmbeddedText, EmbeddedText]:
        """The real reply without its end, as a drawn one is, and the turn that follows it."""
        if batch.reply is None or batch.following is None or not bool(batch.following.mask.any(dim=1).all()):
            raise ConfigError(
                "the judges of empdg read the turn that follows each reply, but an example has none: "
                "the stream needs sides: [context, reply, following]"
            )
        mask = batch.reply.mask & (batch.reply.tokens != self.vocabulary.end)
        return self.judges.embed(replace(batch.reply, mask=mask)), self.judges.embed(batch.following)
