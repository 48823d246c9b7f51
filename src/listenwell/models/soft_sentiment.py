"""The sentiment loss of a strategy-memory model (§ 3.6): −P(PSE(r̂) = positive).

A reply r̂ is a discrete choice of words, which has no gradient. Either the words stay soft: the evaluator reads each as
a straight-through sample, or as the mean of all words, and the gradient flows through it and the transformer to z. Or
replies are sampled, and the evaluator's prediction is the reward of a policy gradient.
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
"""Maximum number of tokens of a reply generated during training."""


def taught_softly(model: StrategyMemoryModel, reply: Sequence, hidden: Tensor, draw: str, temperature: float) -> Tensor:
    """Soft words (words, vocabulary) for every word of the reply at once: from the decoder's outputs under teacher
    forcing, each given the words before it in the gold reply."""
    words = model.conversation.words
    hidden = hidden[judged_words(model, reply)[reply.mask]]
    return softened(F.linear(hidden, words.choices, words.bias), draw, temperature)


def written_softly(
    model: StrategyMemoryModel, reply: Sequence, memory: DecoderMemory, draw: str, temperature: float
) -> Tensor:
    """The same, but autoregressive: each word given the soft words before it."""
    return write_softly(model, reply, memory, draw, temperature)[judged_words(model, reply)]


def write_softly(
    model: StrategyMemoryModel, reply: Sequence, memory: DecoderMemory, draw: str, temperature: float
) -> Tensor:
    """Soft words (batch, time, vocabulary), as many as the gold reply has."""
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
    """(batch, time): the positions of a reply that the evaluator reads, all but its end."""
    return reply.mask & (reply.tokens != model.vocabulary.end)


def softened(logits: Tensor, draw: str, temperature: float) -> Tensor:
    """Weights over all words (…, vocabulary): a one-hot sample with the gradient of the soft one; or the softmax."""
    if draw == "mean":
        return (logits / temperature).softmax(dim=-1)
    return straight_through(logits.log_softmax(dim=-1), temperature)


def soft_sentiment(model: StrategyMemoryModel, reply: Sequence, weights: Tensor) -> Term:
    """The evaluator's prediction for soft words (words, vocabulary), as a loss."""
    log_probs = model.part(EVALUATOR).soft_log_probs(weights, judged_words(model, reply))
    positive = model.parts.positive(log_probs)
    return Term(-positive.sum(), len(positive), positive.detach().sum())


def policy_sentiment(model: StrategyMemoryModel, batch: Batch, memory: DecoderMemory, moment: Moment) -> Term:
    """The policy gradient with the transformer's sampled replies as actions, rewarded by the evaluator."""
    transformer, state = model.conversation, State(fixed=memory)
    options = Decoding(method="sample", max_length=LONGEST, seed=moment.step)
    written = write(transformer, state, options, model.vocabulary, LISTENER, batch.rows)
    reward = model.parts.positive(model.parts.judge(written, model.vocabulary))
    return policy_term(transformer, batch, state, written, reward)
