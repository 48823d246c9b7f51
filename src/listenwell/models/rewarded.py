"""Transformers trained by rewards for their own replies: the baselines Trs+RL and Trs+Dual of strategy memory.

`trs-rl` (after Shin et al. 2020): likelihood, and a policy gradient whose reward is the evaluator's P(reply is
positive).

`trs-dual` (after Shen and Feng 2020): a forward model generates a reply with a given polarity, a backward model the
query from the reply. The reward of a sampled reply is λ P(polarity | reply) + (1 − λ) p(query | reply)^(1/length).
A curriculum goes from easy to hard: examples whose polarity the evaluator is sure of come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from listenwell.contract import (
    Batch,
    Controls,
    LabelSets,
    Moment,
    Sequence,
    State,
    Term,
    Vocabulary,
    WordPrior,
    chosen,
)
from listenwell.decoding import Decoding
from listenwell.labels.sets import POLARITY
from listenwell.models.policy import policy_term, write
from listenwell.models.terms import reply_nll, reply_term
from listenwell.models.text_parts import EVALUATOR, POSITIVE, TextParts
from listenwell.models.trs import LISTENER, Trs, TrsConfig

LONGEST = 30
"""Maximum number of tokens of a sampled reply."""
EASY = 0.3
"""The share of each batch, the most confident examples, that training by rewards starts with."""


class Rewarded(Trs):
    """A transformer with an evaluator as a part."""

    same_text: ClassVar[tuple[str, ...]] = (EVALUATOR,)

    def __init__(self, config: TrsConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        self.parts = TextParts("a rewarded transformer", self.same_text)

    def label_sets(self, objective: str) -> LabelSets:
        """No labels from the corpus: the evaluator predicts the polarity of a reply."""
        return LabelSets(None, None)

    def attach(self, parts: Mapping[str, Any]) -> None:
        self.parts.attach(parts)

    def reply_terms(self, batch: Batch, state: State) -> dict[str, Term]:
        hidden, targets = self.teach(batch, state)
        return {"reply": reply_term(hidden, targets, self.words)}

    def likelihood(self, batch: Batch, moment: Moment) -> dict[str, Term]:  # type: ignore[override]
        """The reply's negative log-likelihood."""
        return self.reply_terms(batch, self.understand(batch))

    def draw(self, batch: Batch, state: State, moment: Moment) -> Sequence:
        """Sample replies from the model."""
        options = Decoding(method="sample", max_length=LONGEST, seed=moment.step)
        learns = self.training
        self.eval()
        written = write(self, state, options, self.vocabulary, LISTENER, batch.rows)
        self.train(learns)
        return written


class TrsRl(Rewarded):
    """Likelihood and a reward for positive replies, weighted as the recipe says."""

    objectives: ClassVar[Mapping[str, str]] = {"likelihood": "likelihood", "reward": "reward"}

    def reward(self, batch: Batch, moment: Moment) -> dict[str, Term]:
        state = self.understand(batch)
        written = self.draw(batch, state, moment)
        earned = self.parts.positive(self.parts.judge(written, self.vocabulary))
        return {**self.reply_terms(batch, state), "reward": policy_term(self, batch, state, written, earned)}


class TrsDual(Rewarded):
    """p(reply | query, polarity) and p(query | reply); at inference time a positive reply is requested."""

    objectives: ClassVar[Mapping[str, str]] = {"likelihood": "likelihood", "dual": "dual"}

    def __init__(self, config: TrsConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        self.polarity = nn.Embedding(len(POLARITY), config.width)
        nn.init.normal_(self.polarity.weight, std=0.1)
        self.backward_model = Trs(config, vocabulary)

    def initialise(self, prior: WordPrior) -> None:
        super().initialise(prior)
        self.backward_model.initialise(prior)

    # Forward: the polarity is added to every decoder input

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        positive = torch.full((len(batch),), POLARITY.ids[POSITIVE], device=self.words.table.device)
        return self.encode_with_polarity(batch, positive)

    def encode_with_polarity(self, batch: Batch, polarity: Tensor) -> State:
        hidden, mask = self.encode(batch)
        return State(fixed={"memory": self.decoder.remember(hidden, mask), "polarity": polarity})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        x = self.embed(tokens[:, None], torch.full_like(tokens[:, None], LISTENER), first=state.length)
        x = x + self.polarity(state.fixed["polarity"])[:, None]
        hidden, caches = self.decoder(x, state.fixed["memory"], state.moving)
        return self.words.logits(hidden[:, 0]), State(state.beliefs, state.fixed, caches, state.length + 1)

    def teach(self, batch: Batch, state: State) -> tuple[Tensor, Tensor]:
        reply = batch.reply
        assert reply is not None
        x = self.embed(reply.shifted(self.vocabulary.start), reply.roles)
        x = x + self.polarity(state.fixed["polarity"])[:, None]
        hidden, _ = self.decoder(x, state.fixed["memory"])
        return self.words.query(hidden[reply.mask]), reply.tokens[reply.mask]

    # Backward: the query from a reply

    def reversed_batch(self, batch: Batch, reply: Sequence) -> Batch:
        """The reply as the input, the query as the target."""
        assert batch.context is not None
        ids = self.vocabulary
        query = batch.context.as_target(ids.ctx, ids.start, ids.end, ids.pad)
        return Batch(context=reply.as_source(ids.ctx, ids.end), reply=query, rows=batch.rows)

    def judged(self, reply: Sequence) -> Tensor:
        """log p(polarity | reply), (batch, polarities)."""
        return self.parts.judge(reply, self.vocabulary)

    def likelihood(self, batch: Batch, moment: Moment) -> dict[str, Term]:  # type: ignore[override]
        """Both directions on pairs, the reply conditioned on its own polarity."""
        assert batch.reply is not None
        terms = self.reply_terms(batch, self.encode_with_polarity(batch, self.judged(batch.reply).argmax(dim=-1)))
        return {**terms, "query": self._query_term(self.reversed_batch(batch, batch.reply))}

    def _query_term(self, batch: Batch) -> Term:
        hidden, targets = self.backward_model.teach(batch, self.backward_model.understand(batch))
        return reply_term(hidden, targets, self.backward_model.words)

    # Rewards

    def dual(self, batch: Batch, moment: Moment, emotion_share: float = 0.5) -> dict[str, Term]:
        """Likelihood of both directions, and the policy gradient of both rewards on the easier examples.

        emotion_share is λ. The share of a batch that is used grows from EASY to all of it.
        """
        assert batch.reply is not None
        terms = self.likelihood(batch, moment)
        judged = self.judged(batch.reply)
        count = max(2, round(len(batch) * (EASY + (1 - EASY) * moment.progress)))
        easy = judged.max(dim=-1).values.topk(min(count, len(batch))).indices
        batch, polarity = _rows(batch, easy), judged.argmax(dim=-1)[easy]
        state = self.encode_with_polarity(batch, polarity)
        written = self.draw(batch, state, moment)
        felt = self.judged(written).gather(1, polarity[:, None])[:, 0].exp()
        rebuilt = self._rebuilt(self.reversed_batch(batch, written))
        earned = emotion_share * felt + (1 - emotion_share) * rebuilt
        return {
            **terms,
            "reward": policy_term(self, batch, state, written, earned),
            "emotion-reward": Term(felt.sum(), len(felt), learned=False),
            "query-reward": Term(rebuilt.sum(), len(rebuilt), learned=False),
        }

    @torch.no_grad()
    def _rebuilt(self, batch: Batch) -> Tensor:
        """p(query | reply)^(1/length), (batch,)."""
        assert batch.reply is not None
        hidden, targets = self.backward_model.teach(batch, self.backward_model.understand(batch))
        nll = reply_nll(hidden, targets, self.backward_model.words, batch.reply.mask)
        return (-nll / batch.reply.mask.sum(dim=1)).exp()


def _rows(batch: Batch, rows: Tensor) -> Batch:
    """These rows of the context and the reply."""
    numbers = tuple(batch.rows[row] for row in rows.tolist()) if batch.rows else ()
    return Batch(context=chosen(batch.context, rows), reply=chosen(batch.reply, rows), rows=numbers)
