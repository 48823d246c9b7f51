"""EmpDG: an extra encoder for emotional words, and adversarial training against two judges (Li et al. 2020).

The multi-task transformer with a second, finer-grained view of the context: the words that a lexicon associates with
an emotion form a separate sequence with its own encoder. The speaker's emotion is classified from both encodings, and
the decoder attends to both. In training, two discriminators (a semantic and an emotional judge) tell real replies from
generated ones, given the speaker's next turn, and the generator learns to fool them. At inference time there are no
judges and no next turn.

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
"""Maximum length of a sampled reply in tokens, as at inference time."""
UNHEARD = -1e4
"""The logit of tokens that the judges never read: probability 0, but a finite log-probability."""


@dataclass
class EmpdgConfig(TrsConfig):
    """Sizes of the transformer and the judges."""

    emotion: bool = True
    """Classify the speaker's emotion from both encodings."""
    judge_heads: int = 4
    """Attention heads of a judge. A judge is as wide as the word table, since it reads nothing but words."""


def to_the_left(picked: Tensor) -> tuple[Tensor, Tensor]:
    """Indices of the picked positions of each row (batch, most), in order, and a mask of the real ones.

    `most` is the largest number of picked positions in any row.
    """
    order = picked.int().argsort(dim=1, descending=True, stable=True)[:, : int(picked.sum(dim=1).max())]
    return order, picked.gather(1, order)


def soft_draw(log_p: Tensor, drawn: Tensor, temperature: float = 1.0) -> Tensor:
    """The Gumbel-softmax (positions, words) conditioned on the words `drawn` (positions,) from log_p.

    A draw is a race: word i arrives at time E_i / p_i, where E_i is exponential, and the first to arrive is drawn;
    −log of that time is log p_i plus Gumbel noise. The winner's time is exponential too, and tells nothing about the
    others except that they come later. So the noise can be sampled after the words, and the softmax peaks at them.
    """
    first = torch.empty_like(log_p[:, :1]).exponential_()
    # −log of a uniform number is exponential too, and nine times faster at this size.
    arrival = torch.rand_like(log_p).log_().neg_().div_(log_p.detach().exp()).add_(first)
    noise = arrival.scatter_(1, drawn[:, None], first).log_().neg_().sub_(log_p.detach())
    return ((log_p + noise) / temperature).softmax(dim=-1)


class Generator(Trs):
    """p(reply | context) and p(emotion | context), from the context and its emotional words."""

    emotional: Tensor
    """(vocabulary,) True for emotional words. Saved with the weights, so that inference needs no lexicon."""

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
        """A CTX token followed by the emotional words of the context, if there are any."""
        order, mask = to_the_left(self.emotional[context.tokens] & context.mask)
        tokens = context.tokens.gather(1, order).masked_fill(~mask, self.vocabulary.pad)
        return Sequence(
            F.pad(tokens, (1, 0), value=self.vocabulary.ctx),
            F.pad(mask, (1, 0), value=True),
            F.pad(context.roles.gather(1, order), (1, 0)),
        )

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The encoded context followed by the encoded emotional words: one memory (batch, time, width) and its mask.

        The decoder's attention thus has a single softmax over all positions of both.
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
        """The terms of the likelihood, given the encoded context."""
        assert batch.emotion is not None
        hidden, targets = self.teach(batch, state)
        terms = {"reply": reply_term(hidden, targets, self.words, smoothing)}
        if self.emotion is not None:
            terms |= classification_terms("emotion", state.beliefs["emotion"], batch.emotion, emotion_smoothing)
        return terms

    def draw(self, batch: Batch, state: State, seed: int) -> Sequence:
        """Sample a reply for each row, token by token as at inference time, without its end token.

        Its maximum length does not depend on the batch, whose replies are of similar length: a judge could otherwise
        tell a generated reply by being cut at that length.
        """
        ids = self.vocabulary
        options = Decoding(method="sample", max_length=LONGEST, seed=seed)
        # Unknown words are not banned: the real replies have them too.
        banned = (ids.pad, ids.start, ids.ctx)
        decoded = decode(self, state, options, start=ids.start, end=ids.end, banned=banned, items=batch.rows or None)
        rows = [torch.tensor(drawn.tokens, dtype=torch.long) for [drawn] in decoded]
        tokens = pad_sequence(rows, batch_first=True, padding_value=ids.pad).to(self.words.table.device)
        # Padding is never sampled, so everything else was.
        return Sequence(tokens, tokens != ids.pad, torch.full_like(tokens, LISTENER))


@dataclass(slots=True)
class EmbeddedText:
    """An utterance as the judges read it: tokens and mask (batch, time), word vectors (batch, time, width)."""

    tokens: Tensor
    mask: Tensor
    vectors: Tensor


class Judge(nn.Module):
    """Logit (batch,) of whether a reply is real, given the reply and the turn that follows it."""

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
    """Two judges that share their own word table: one reads every word, the other only the emotional ones."""

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
        """Embed the same words, but let the gradient flow as if `soft` (real positions, words) had been the input."""
        text = self.embed(said)
        expected = self._scaled(soft @ self.table).to(text.vectors.dtype)  # which may be half precision
        slope = torch.zeros_like(text.vectors).masked_scatter(text.mask[..., None], expected - expected.detach())
        return replace(text, vectors=text.vectors + slope)

    def _scaled(self, vectors: Tensor) -> Tensor:
        return vectors * math.sqrt(self.table.shape[1])

    def only(self, text: EmbeddedText, emotional: Tensor) -> EmbeddedText:
        """A CTX token followed by the emotional words of an utterance, if there are any."""
        order, mask = to_the_left(emotional[text.tokens] & text.mask)
        vectors = text.vectors.gather(1, order[..., None].expand(-1, -1, text.vectors.shape[2]))
        ctx = torch.full_like(text.tokens[:, :1], self.vocabulary.ctx)
        return EmbeddedText(
            torch.cat([ctx, text.tokens.gather(1, order)], dim=1),
            F.pad(mask, (1, 0), value=True),
            torch.cat([self._scaled(F.embedding(ctx, self.table)), vectors], dim=1),
        )

    def forward(self, reply: EmbeddedText, following: EmbeddedText, emotional: Tensor) -> dict[str, Tensor]:
        """Each judge's logits (batch,), above 0 where it takes the reply to be real."""
        return {
            "semantic": self.semantic(reply, following),
            "emotional": self.emotional(self.only(reply, emotional), self.only(following, emotional)),
        }


class Empdg(Model):
    """The generator, and the judges that it is trained against."""

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
        with torch.no_grad():  # the judges start from the generator's word vectors
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
        """The negative log-likelihood of the reply and of the emotion."""
        return self.generator.likelihood(batch, moment, smoothing, emotion_smoothing)

    def situation(self, batch: Batch, moment: Moment, emotion_smoothing: float = 0.0) -> dict[str, Term]:
        """The negative log-likelihood of the emotion only."""
        return self.generator.situation(batch, moment, emotion_smoothing)

    def discriminate(self, batch: Batch, moment: Moment) -> dict[str, Term]:
        """The judges' cross-entropy on the real replies and as many sampled from the generator, and their accuracy."""
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
        """The likelihood, and −log of each judge's probability that a sampled reply is real.

        The gradient reaches the generator through straight-through Gumbel-softmax samples.
        """
        _, following = self._real(batch)
        state = self.generator.understand(batch)
        terms = self.generator.losses(batch, state, smoothing, emotion_smoothing)
        drawn = self._drawn(batch, moment)
        hidden, words = self.generator.teach(replace(batch, reply=drawn), state)
        logits = F.linear(hidden, self.generator.words.choices, self.generator.words.bias)
        # The judges never read some tokens, notably the end token: their loss must not change those logits.
        ids = self.vocabulary
        log_p = logits.index_fill(1, words.new_tensor([ids.pad, ids.start, ids.end, ids.ctx]), UNHEARD).log_softmax(1)
        text = self.judges.embed_softly(drawn, soft_draw(log_p, words, temperature))
        verdicts = self.judges(text, following, self.generator.emotional)
        return terms | {judge: Term(F.softplus(-verdicts[judge]).sum(), len(batch)) for judge in JUDGES}

    def _drawn(self, batch: Batch, moment: Moment) -> Sequence:
        """Replies sampled without dropout, as at inference time, so that both objectives see the same generator."""
        learns = self.generator.training
        self.generator.eval()
        with torch.no_grad():
            drawn = self.generator.draw(batch, self.generator.understand(batch), moment.step)
        self.generator.train(learns)
        return drawn

    def _real(self, batch: Batch) -> tuple[EmbeddedText, EmbeddedText]:
        """The real reply without its end token, like a sampled one, and the turn that follows it."""
        if batch.reply is None or batch.following is None or not bool(batch.following.mask.any(dim=1).all()):
            raise ConfigError(
                "the judges of empdg read the turn that follows each reply, but an example has none: "
                "the stream needs sides: [context, reply, following]"
            )
        mask = batch.reply.mask & (batch.reply.tokens != self.vocabulary.end)
        return self.judges.embed(replace(batch.reply, mask=mask)), self.judges.embed(batch.following)
