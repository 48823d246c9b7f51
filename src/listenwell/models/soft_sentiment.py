"""How positive a strategy-memory model's replies are while it learns (§ 3.6): −P(PSE(r̂) = positive).

A reply r̂ is a choice of words, which has no gradient. Either it stays undecided: the evaluator reads each word as a
straight-through draw, or as the mean of all words, and the gradient goes through it and through the transformer to z.
Or replies are drawn, and the evaluator's verdict is the reward of a policy gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell.contract import Batch, Moment, Sequence, State, Term
from listenwell.decoding import Decoding
from listenwell.layers.latent import straight_through
from listenwell.layers.transformer import Memory as DecoderMemory
from listenwell.layers.transformer import sinusoids
from listenwell.models.policy import policy_term, write
from listenwell.models.text_parts import EVALUATOR
from listenwell.models.trs import LISTENER

if TYPE_CHECKING:
    from listenwell.models.strategy_memory import StrategyMemoryModel

LONGEST = 30
"""Tokens of a reply that is written while learning, at most."""


def taught_softly(model: StrategyMemoryModel, reply: Sequence, hidden: Tensor, draw: str, temperature: float) -> Tensor:
    """Weights of all words (words, vocabulary) at every word of the reply, all at once: from the decoder's outputs,
    each given the words before it in the true reply."""
    words = model.conversation.words
    hidden = hidden[judged_words(model, reply)[reply.mask]]
    return softened(F.linear(hidden, words.choices, words.bias), draw, temperature)


def written_softly(
    model: StrategyMemoryModel, reply: Sequence, memory: DecoderMemory, draw: str, temperature: float
) -> Tensor:
    """The same, but one after another: each word given the soft words before it."""
    return write_softly(model, reply, memory, draw, temperature)[judged_words(model, reply)]


def write_softly(
    model: StrategyMemoryModel, reply: Sequence, memory: DecoderMemory, draw: str, temperature: float
) -> Tensor:
    """(batch, time, vocabulary): as long as the true reply."""
    transformer, state = model.conversation, State(fixed=memory)
    fed = transformer.words(torch.full_like(reply.tokens[:, :1], model.vocabulary.start))
    role = transformer.speakers(torch.full_like(reply.tokens[:, :1], LISTENER))
    places = sinusoids(reply.tokens.shape[1], model.config.width, fed.device)
    weights, past = [], None
    for place in places:
        hidden, past = transformer.decoder(fed + place + role, state.fixed, past)
        weights.append(softened(transformer.words.logits(hidden[:, 0]), draw, temperature))
        fed = transformer.words.mix(weights[-1])[:, None]
    return torch.stack(weights, dim=1)


def judged_words(model: StrategyMemoryModel, reply: Sequence) -> Tensor:
    """(batch, time): what the evaluator reads of a reply, all but its end."""
    return reply.mask & (reply.tokens != model.vocabulary.end)


def softened(logits: Tensor, draw: str, temperature: float) -> Tensor:
    """Weights of all words (…, vocabulary): one word, drawn, with the gradient of the soft draw; or the mean."""
    if draw == "mean":
        return (logits / temperature).softmax(dim=-1)
    return straight_through(logits.log_softmax(dim=-1), temperature)


def soft_sentiment(model: StrategyMemoryModel, reply: Sequence, weights: Tensor) -> Term:
    """The evaluator's verdict on undecided words, (words, vocabulary)."""
    log_probs = model.part(EVALUATOR).soft_log_probs(weights, judged_words(model, reply))
    positive = model.parts.positive(log_probs)
    return Term(-positive.sum(), len(positive), positive.detach().sum())


def policy_sentiment(model: StrategyMemoryModel, batch: Batch, memory: DecoderMemory, moment: Moment) -> Term:
    """The policy gradient of the evaluator's verdict, with the replies that the transformer writes as its actions."""
    transformer, state = model.conversation, State(fixed=memory)
    options = Decoding(method="sample", max_length=LONGEST, seed=moment.step)
    written = write(transformer, state, options, model.vocabulary, LISTENER, batch.rows)
    reward = model.parts.positive(model.parts.judge(written, model.vocabulary))
    return policy_term(transformer, batch, state, written, reward)
