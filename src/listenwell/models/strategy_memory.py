"""Strategy memory (`strategy-memory`): empathetic replies that gently lead towards the positive.

    e = MLP(GRU(q))                                 the query (§ 3.2)
    Q(z|M,q) = N(Σ π_i v_i, (Σ π_i λ_i)²)           from the memory of the detected emotion; π = softmax(k·e) (Eqs 2, 3)
    P(z|q)   = N(W_μ e, (W_σ e)²)                   the prior, by which z is drawn in use (Eq 4)
    p(r|z,q)                                        a transformer with z in front of the query's words (§ 3.5)
    L = −E_Q[log p(r|z,q)] + KL(Q‖P) − α P(PSE(r̂) = positive)                                          (Eqs 1, 5)

Phase 1 (`condition`) trains the encoder and the transformer, with e for z. Phase 2 (`strategy`) trains the encoder, the
memory and the mixers; the transformer is frozen. The emotion detector and the sentiment evaluator are trained before
and are parts of the checkpoint, by those names: two `text-encoder`s over the same tokens.

Where the paper's equations disagree: λ and W_σ e are deviations, and Eq 3's sum of λ is weighted by π. So z is drawn
from one Gaussian with the mean of Eq 2's mixture and a smaller variance; `mixture` draws from Eq 2 itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.contract import (
    Batch,
    Controls,
    LabelSets,
    Model,
    Moment,
    Sequence,
    State,
    Term,
    Vocabulary,
    WordPrior,
)
from listenwell.labels.sets import label_set
from listenwell.layers.latent import Gaussian, anneal, row_noise
from listenwell.layers.recurrent import RecurrentEncoder
from listenwell.layers.slot_memory import (
    MemoryOptions,
    Reading,
    StrategyMemory,
    by_memory,
    inverse_softplus,
    log_variance,
)
from listenwell.layers.transformer import Memory as DecoderMemory
from listenwell.layers.transformer import sinusoids
from listenwell.models.sizes import TransformerSizes
from listenwell.models.soft_sentiment import policy_sentiment, soft_sentiment, taught_softly, written_softly
from listenwell.models.terms import average_out, reply_nll, reply_term
from listenwell.models.text_encoder import TextEncoder
from listenwell.models.text_parts import DETECTOR, EVALUATOR, TextParts
from listenwell.models.trs import Trs, TrsConfig

STRATEGY = "strategy"
"""The stage before each epoch of which the memory is written, by the name that it has in a recipe."""

SAMPLES = 10
"""Draws from the prior that a likelihood is averaged over."""
SHOWN = 3
"""Slots that an explanation names."""
NEAREST = 10
"""Slots that those are weighed among."""


@dataclass
class StrategyMemoryConfig(TransformerSizes):
    """The sizes of appendix B, and the choices that Tables 2 and 3 compare."""

    width: int = 512
    """Of every layer, of e, of z, of keys and values."""
    heads: int = 8
    encoder_layers: int = 6
    decoder_layers: int = 6
    feed_forward: int = 2048
    tied: bool = True
    """The transformer reads and chooses words by one table."""
    emotions: str = "nlpcc"
    """What the detector tells apart, a label set by name: one memory and one mixer for each."""
    slots: int = 1000
    """K: slots of each memory at most."""
    queries_per_slot: int = 20
    """A memory has no more slots than its training queries divided by this: that of a rare emotion is small."""
    read: int = 1
    """c: slots that are read. 1 is the hard read, 10 the paper's soft read, 0 reads all."""
    similarity: Literal["dot", "cosine"] = "dot"
    """How a query finds keys. The dot product of Eq 2 favours long keys and soon reads one slot alone."""
    value_start: Literal["spread", "centres"] = "spread"
    """Where values begin at each write: at random with the mean and spread of the emotion's queries, or on the keys."""
    mixer: Literal["gaussian", "mean", "memory"] = "gaussian"
    """gaussian: Eqs 3 and 4. mean: without noise, a squared distance for the KL ("− Gaussian"). memory: what is read
    goes straight to the transformer, in use too ("− SM")."""
    mixture: bool = False
    """Draw from Eq 2's mixture itself; its KL is bounded by that of its components."""
    emotion_memory: bool = True
    """A memory and a mixer for each emotion; else one for all ("− EmoMemory")."""

    def __post_init__(self) -> None:
        for name in ("slots", "queries_per_slot"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least 1")
        if self.read < 0:
            raise ValueError(f"read is {self.read}, expected 0 (all slots) or more")
        if self.mixture and self.mixer != "gaussian":
            raise ValueError(f"mixture draws from Gaussians, so mixer must be gaussian, found {self.mixer}")


class QueryEncoder(nn.Module):
    """§ 3.2: word embeddings, a GRU, and a perceptron of two layers on its last state."""

    def __init__(self, vocabulary: int, width: int, word_width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, word_width or width)
        self.gru = RecurrentEncoder(word_width or width, width, both_ways=False)
        self.perceptron = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, query: Sequence) -> Tensor:
        """e, (batch, width), as long as the embedded words beside which it stands: else it would hardly be seen."""
        _, last = self.gru(self.words(query.tokens), query.mask)
        return self.perceptron(last) * math.sqrt(last.shape[-1])


class StrategyMixer(nn.Module):
    """The prior network of one emotion (Eq 4): W_μ and W_σ."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mean = nn.Linear(width, width)
        self.deviation = nn.Linear(width, width)

    def forward(self, query: Tensor) -> Tensor:
        """Mean and log-variance side by side, (batch, 2 width)."""
        return torch.cat([self.mean(query), log_variance(F.softplus(self.deviation(query)))], dim=-1)

    @torch.no_grad()
    def start(self, spread: Tensor) -> None:
        """z begins as e, which the transformer knows, with half the spread that e has."""
        nn.init.eye_(self.mean.weight)
        nn.init.zeros_(self.deviation.weight)
        nn.init.zeros_(self.mean.bias)
        self.deviation.bias.fill_(float(inverse_softplus(0.5 * spread.clamp_min(1e-3))))


@dataclass(slots=True)
class EncodedQuery:
    """A query that was read, each with the batch first."""

    vector: Tensor
    """e (batch, width)."""
    emotion: Tensor
    """log p(emotion | query), (batch, emotions)."""
    home: Tensor
    """(batch,) the memory of that emotion."""


@dataclass(slots=True)
class DecoderInput:
    """What the decoder attends to, and the slots next to the query, which the prior does not read."""

    memory: DecoderMemory
    home: Tensor
    slots: Tensor
    """(batch, SHOWN) the nearest slots."""
    weights: Tensor
    """(batch, SHOWN) their shares among the NEAREST, 0 where there are fewer."""


Where = Literal["prior", "posterior", "mean"]


class StrategyMemoryModel(Model):
    """p(reply | query) with z averaged out."""

    Config = StrategyMemoryConfig
    config: StrategyMemoryConfig
    objectives: ClassVar[Mapping[str, str]] = {"condition": "condition", "strategy": "strategy"}
    # Phase 2 writes these itself, so that all its variants start from one phase 1.
    renewable: ClassVar[tuple[str, ...]] = ("memory.*", "mixers.*")
    same_text: ClassVar[tuple[str, ...]] = (DETECTOR, EVALUATOR)

    def __init__(self, config: StrategyMemoryConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.emotions = label_set(config.emotions)
        sizes = {field.name: getattr(config, field.name) for field in fields(TransformerSizes)}
        self.conversation = Trs(TrsConfig(**sizes, tied=config.tied), vocabulary)
        self.encoder = QueryEncoder(vocabulary.size, config.width, config.word_width)
        memories = len(self.emotions) if config.emotion_memory else 1
        options = {field: getattr(config, field) for field in MemoryOptions.__dataclass_fields__}
        self.memory = StrategyMemory(MemoryOptions(**options), len(self.emotions), memories)
        self.mixers = nn.ModuleList(StrategyMixer(config.width) for _ in self.memory.filled)
        self.parts = TextParts("strategy-memory", self.same_text, self.emotions)

    def label_sets(self, objective: str) -> LabelSets:
        """It reads no gold labels: the emotion is what the detector predicts."""
        return LabelSets(None, None)

    def initialise(self, prior: WordPrior) -> None:
        self.conversation.initialise(prior)

    def attach(self, parts: Mapping[str, Any]) -> None:
        self.parts.attach(parts)

    def part(self, name: str) -> TextEncoder:
        return self.parts.get(name, self.memory.keys.device)

    # Reading the query and the memory

    def read_query(self, batch: Batch) -> EncodedQuery:
        """The query as e, its emotion by the detector, and which memory that leads to."""
        assert batch.context is not None
        with torch.no_grad():
            emotion = self.part(DETECTOR).log_probs_of(batch.context)
        return EncodedQuery(self.encoder(batch.context), emotion, self.memory.home[emotion.argmax(dim=-1)])

    def prior(self, query: EncodedQuery) -> Gaussian:
        """P(z|q), Eq 4."""
        both = by_memory(query.home, lambda memory, rows: self.mixers[memory](query.vector[rows]))
        return Gaussian(*both.chunk(2, dim=-1))

    def strategy_vector(self, query: EncodedQuery, where: Where, noise: Tensor) -> Tensor:
        """z as it is in use. Before phase 2 has begun it is e."""
        if not self.memory.written:
            return query.vector
        if self.config.mixer == "memory":
            return self.memory.read(query.vector, query.home).mean
        if self.config.mixer == "mean" or where == "mean":
            noise = torch.zeros_like(noise)
        gaussian = self.memory.read(query.vector, query.home).gaussian if where == "posterior" else self.prior(query)
        return gaussian.at(noise)

    def condition_on(self, batch: Batch, condition: Tensor, hidden: Tensor | None = None) -> DecoderMemory:
        """The query with the condition in front of its words, read by the transformer (§ 3.5). Of the rows that are
        `hidden` (batch,) it sees the condition alone."""
        assert batch.context is not None
        model = self.conversation
        words = model.embed(batch.context.tokens, batch.context.roles, first=1)
        front = condition + sinusoids(1, self.config.width, condition.device)
        seen = batch.context.mask if hidden is None else batch.context.mask & ~hidden[:, None]
        mask = torch.cat([torch.ones_like(seen[:, :1]), seen], dim=1)
        return model.decoder.remember(model.encoder(torch.cat([front[:, None], words], dim=1), mask), mask)

    # Talking

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        """z is drawn from the prior, as in the paper; `latent: posterior` reads the memory, which needs no reply."""
        query = self.read_query(batch)
        noise = self._noise(batch, 1, generator)[:, 0]
        condition = self.strategy_vector(query, "prior" if controls is None else controls.latent, noise)
        weights = self.memory.weigh(self.memory.scores(query.vector, query.home), NEAREST).nan_to_num()
        near = weights.topk(min(SHOWN, weights.shape[1]), dim=-1)
        attended = DecoderInput(self.condition_on(batch, condition), query.home, near.indices, near.values)
        return State({"emotion": query.emotion}, attended)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        inner = State(fixed=state.fixed.memory, moving=state.moving, length=state.length)
        logits, after = self.conversation.step(tokens, inner)
        return logits, State(state.beliefs, state.fixed, after.moving, after.length)

    def score(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        """−log of the mean, over draws from the prior, of p(reply | query, z)."""
        query = self.read_query(batch)
        drawn = self.memory.written and self.config.mixer == "gaussian"
        noise = self._noise(batch, SAMPLES if drawn else 1, generator)
        nll = [self._nll(batch, self.strategy_vector(query, "prior", one)) for one in noise.unbind(dim=1)]
        return average_out(torch.stack(nll, dim=1))

    def _nll(self, batch: Batch, condition: Tensor) -> Tensor:
        assert batch.reply is not None
        hidden, targets = self.conversation.teach(batch, State(fixed=self.condition_on(batch, condition)))
        return reply_nll(hidden, targets, self.conversation.words, batch.reply.mask)

    def _noise(self, batch: Batch, draws: int, generator: torch.Generator | None) -> Tensor:
        """(batch, draws, width)"""
        rows = batch.rows or range(len(batch))
        return row_noise(rows, (draws, self.config.width), generator, self.memory.keys.device)

    # Phase 1

    def condition(self, batch: Batch, moment: Moment, smoothing: float = 0.0, hide: float = 0.0) -> dict[str, Term]:
        """The reply's negative log-likelihood, with e as the condition (§ 3.7).

        A transformer that sees the query's words has no need of e, and does not learn to read it: then no strategy
        reaches it in phase 2. So the words of a share of the queries, `hide`, are hidden, and e tells them.
        """
        assert batch.context is not None
        hidden = moment.draw(batch, hide) if hide and self.training else None
        memory = self.condition_on(batch, self.encoder(batch.context), hidden)
        hidden, targets = self.conversation.teach(batch, State(fixed=memory))
        return {"reply": reply_term(hidden, targets, self.conversation.words, smoothing)}

    # Phase 2

    def on_epoch_start(self, stage: str, epoch: int, batches: Callable[[], Iterable[Batch]]) -> Iterable[str]:
        """Writes the memory. The paper writes after each epoch for the next; so the last values are learned too."""
        if stage != STRATEGY:
            return ()
        queries, emotions, tokens, rows = [], [], [], []
        for batch in batches():
            assert batch.context is not None
            queries.append(self.encoder(batch.context))
            emotions.append(self.part(DETECTOR).log_probs_of(batch.context).argmax(dim=-1))
            real = batch.context.mask & (batch.context.tokens > self.vocabulary.ctx)
            tokens += [text[words].cpu().numpy() for text, words in zip(batch.context.tokens, real, strict=True)]
            rows.append(torch.tensor(batch.rows, device=queries[-1].device))
        vectors = torch.cat(queries)
        self.memory.write(vectors, torch.cat(emotions), tokens, torch.cat(rows), seed=epoch)
        if epoch:
            return ("memory.*",)
        for mixer in self.mixers:
            mixer.start(vectors.std(dim=0, correction=0).mean())  # type: ignore[operator]
        return ("memory.*", "mixers.*")

    def strategy(
        self,
        batch: Batch,
        moment: Moment,
        kl_annealed: float = 0.0,
        sentiment_by: Literal["soft", "steps", "policy"] = "soft",
        sentiment_from: Literal["posterior", "prior"] = "posterior",
        draw: Literal["gumbel", "mean"] = "gumbel",
        temperature: float = 1.0,
    ) -> dict[str, Term]:
        """−L_SM and −P(PSE(r̂) = positive), whose weight α is the recipe's (Eq 5).

        `reply` and `kl` are divided by the tokens of the replies, so that they stay one bound; `sentiment` is a mean
        over replies. In validation z is the prior's mean, as close to use as a loss without noise comes.
        """
        assert batch.reply is not None
        query = self.read_query(batch)
        reading = self.memory.read(query.vector, query.home)
        prior = self.prior(query)
        condition, distance = self._drawn(query, reading, prior)
        memory = self.condition_on(batch, condition)
        hidden, targets = self.conversation.teach(batch, State(fixed=memory))
        reply = reply_term(hidden, targets, self.conversation.words)
        if sentiment_from == "prior" and self.config.mixer != "memory" and self.training:
            memory = self.condition_on(batch, prior.sample() if self.config.mixer == "gaussian" else prior.mean)
            hidden, _ = self.conversation.teach(batch, State(fixed=memory))
        if sentiment_by == "policy":
            sentiment = policy_sentiment(self, batch, memory, moment)
        elif sentiment_by == "soft":
            sentiment = soft_sentiment(self, batch.reply, taught_softly(self, batch.reply, hidden, draw, temperature))
        else:
            sentiment = soft_sentiment(self, batch.reply, written_softly(self, batch.reply, memory, draw, temperature))
        rise = anneal(moment.progress, kl_annealed) if self.training else 1.0
        count = len(targets)
        return {
            "reply": reply,
            "kl": Term(rise * distance.sum(), count, distance.detach().sum()),
            "sentiment": sentiment,
            **self._memory_terms(query, reading),
        }

    def _drawn(self, query: EncodedQuery, reading: Reading, prior: Gaussian) -> tuple[Tensor, Tensor]:
        """z from the posterior, or in validation as in use; and how far the posterior is from the prior, (batch,)."""
        if self.config.mixer == "memory":
            return reading.mean, torch.zeros_like(reading.mean[:, 0])
        if self.config.mixer == "mean":
            distance = 0.5 * (reading.mean - prior.mean).square().sum(dim=-1)
            return (reading.mean if self.training else prior.mean), distance
        if self.config.mixture:
            drawn, distance = self.memory.draw_mixture(reading, query.home, prior)
        else:
            drawn, distance = reading.gaussian.sample(), reading.gaussian.kl(prior)
        return (drawn if self.training else prior.mean), distance

    def _memory_terms(self, query: EncodedQuery, reading: Reading) -> dict[str, Term]:
        """Whether the memory is used: the entropy of π, slots per row of this batch, slots that anybody reads."""
        size, best = len(query.home), reading.weights.argmax(dim=-1)
        distinct = torch.stack([query.home, best], dim=1).unique(dim=0)
        used = (self.memory.reads > 0).sum()
        return {
            "pi-entropy": Term(reading.entropy.detach().sum(), size, learned=False),
            "slots-in-batch": Term(best.new_tensor(float(len(distinct)), dtype=torch.float), size, learned=False),
            "slots-used": Term(used.float(), float(self.memory.filled.sum()), learned=False),
        }

    # Explaining

    def slot_words(self, memory: int, slot: int) -> str:
        """The words by which a slot's queries differ from the emotion's others."""
        tokens = [token for token in self.memory.words[memory, slot].tolist() if token]
        return " ".join(map(self.parts.token, tokens))

    def memory_name(self, memory: int) -> str:
        return self.emotions.labels[memory] if self.config.emotion_memory else "all"

    def reasons(self, state: State, row: int) -> dict[str, Any]:
        """The detected emotion and the nearest slots with their shares. The prior reads none: they are only nearest."""
        attended: DecoderInput = state.fixed
        emotion = self.emotions.labels[int(state.beliefs["emotion"][row].argmax())]
        memory = int(attended.home[row])
        nearby = zip(attended.slots[row].tolist(), attended.weights[row].tolist(), strict=True)
        nearest = {
            f"{self.memory_name(memory)} {slot} ({self.slot_words(memory, slot)})": round(weight, 4)
            for slot, weight in nearby
            if weight > 0
        }
        return {"emotion": emotion, **({"nearest slots": nearest} if nearest else {})}
