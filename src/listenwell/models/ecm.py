"""ECM, the emotional chatting machine (Zhou et al. 2018), on a transformer (`trs-ecm`) or a GRU (`seq2seq-ecm`).

The emotion is the polarity of the reply, predicted by the evaluator during training; at inference time a positive reply
is requested, as in strategy memory's Table 1. It is embedded at every position, kept in an internal memory that is used
up along the reply, and taken into account in the choice between emotional and other words (`layers/emotion_memory.py`).

    L = −Σ log p(w) − Σ log p(emotional or other) + ‖M at the end‖
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell.contract import Batch, Controls, LabelSets, Moment, Sequence, State, Term, Vocabulary, WordPrior
from listenwell.labels.sets import POLARITY
from listenwell.layers.emotion_memory import EmotionMemory
from listenwell.models.seq2seq import Seq2Seq
from listenwell.models.terms import sum_by_row
from listenwell.models.text_parts import EVALUATOR, POSITIVE, TextParts
from listenwell.models.trs import LISTENER, Trs


@dataclass(slots=True)
class EmotionalInput:
    """What the decoder attends to, and the emotion requested for the reply."""

    memory: Any
    emotion: Tensor
    """(batch,) polarity ids."""


@dataclass(slots=True)
class EmotionalPast:
    """The decoding state of a reply."""

    caches: Any
    spent: Tensor
    """(batch, width) how much of the emotion is used up: Σ log g."""


class Ecm(Trs):
    """p(reply | context, polarity)."""

    same_text: ClassVar[tuple[str, ...]] = (EVALUATOR,)
    objectives: ClassVar[Mapping[str, str]] = {"likelihood": "likelihood"}

    def __init__(self, config: Any, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        self.feeling = EmotionMemory(len(POLARITY), config.width, vocabulary.size)
        self.parts = TextParts("ecm", self.same_text)

    def label_sets(self, objective: str) -> LabelSets:
        """No labels from the corpus: the evaluator predicts the polarity of a reply."""
        return LabelSets(None, None)

    def attach(self, parts: Mapping[str, Any]) -> None:
        self.parts.attach(parts)

    def initialise(self, prior: WordPrior) -> None:
        if prior.emotional is None or not bool(prior.emotional.any()) or bool(prior.emotional.all()):
            raise ValueError(
                "ecm chooses between emotional and other words: the recipe needs a lexicon to tell them by, "
                "such as lexicon: lexicons/nrc_emolex_en.json"
            )
        super().initialise(prior)
        self.feeling.start(prior.emotional, prior.counts)

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        """Requests a positive reply."""
        hidden, mask = self.encode(batch)
        positive = torch.full((len(batch),), POLARITY.ids[POSITIVE], device=hidden.device)
        return self._begin(hidden, mask, positive)

    def _begin(self, hidden: Tensor, mask: Tensor, emotion: Tensor) -> State:
        return State(fixed=EmotionalInput(self.decoder.remember(hidden, mask), emotion))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        given: EmotionalInput = state.fixed
        past: EmotionalPast | None = state.moving
        x = self.embed(tokens[:, None], torch.full_like(tokens[:, None], LISTENER), first=state.length)
        x = x + self.feeling.embedding(given.emotion)[:, None]
        hidden, caches = self.decoder(x, given.memory, None if past is None else past.caches)
        spoken, spent = self.feeling.read(hidden, given.emotion, None if past is None else past.spent)
        logits = self.feeling.log_probs(spoken[:, 0], self.words)
        return logits, State(state.beliefs, state.fixed, EmotionalPast(caches, spent), state.length + 1)

    def speak(self, reply: Sequence, state: State) -> tuple[Tensor, Tensor]:
        """Teacher forcing: the outputs at real positions (positions, width), and ‖M‖ after the end (batch,)."""
        given: EmotionalInput = state.fixed
        x = self.embed(reply.shifted(self.vocabulary.start), reply.roles)
        hidden, _ = self.decoder(x + self.feeling.embedding(given.emotion)[:, None], given.memory)
        spoken, spent = self.feeling.read(hidden, given.emotion, mask=reply.mask)
        return spoken[reply.mask], self.feeling.left_over(given.emotion, spent)

    def likelihood(self, batch: Batch, moment: Moment) -> dict[str, Term]:  # type: ignore[override]
        """The reply's negative log-likelihood under its own polarity, the gate's loss, and ‖M‖ at the end."""
        assert batch.reply is not None
        hidden, mask = self.encode(batch)
        polarity = self.parts.judge(batch.reply, self.vocabulary).argmax(dim=-1)
        spoken, left = self.speak(batch.reply, self._begin(hidden, mask, polarity))
        targets = batch.reply.tokens[batch.reply.mask]
        nll = F.nll_loss(self.feeling.log_probs(spoken, self.words), targets, reduction="sum")
        return {
            "reply": Term(nll, len(targets)),
            "choice": Term(self.feeling.choice_loss(spoken, targets), len(targets)),
            "left-over": Term(left.sum(), len(left)),
        }

    def score(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        """As at inference time, under the requested polarity."""
        assert batch.reply is not None
        spoken, _ = self.speak(batch.reply, self.understand(batch))
        targets = batch.reply.tokens[batch.reply.mask]
        nll = -self.feeling.log_probs(spoken, self.words).gather(1, targets[:, None])[:, 0]
        return sum_by_row(nll, batch.reply.mask)


class EcmSeq2Seq(Ecm, Seq2Seq):
    """ECM as it was published, on GRUs."""
