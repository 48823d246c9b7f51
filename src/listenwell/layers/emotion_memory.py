"""The two memories of the emotional chatting machine (Zhou et al. 2018), on top of any decoder.

Internal memory: an emotion state that every step uses up a little, so that the emotion is spent when the reply ends:

    M_{t+1} = g_t ⊙ M_t,   g_t = sigmoid(W_w h_t);     o_t = h_t + W_o (sigmoid(W_r h_t) ⊙ M_t)

External memory: a gate α_t chooses between emotional and other words, each with its own softmax:

    p(w) = α_t softmax_emotional(w)  or  (1 − α_t) softmax_other(w)

In ECM the state is read before the recurrent cell; here it is read after the decoder. So the gates of all positions are
known at once, the states are their cumulative products, and one layer serves recurrent and transformer decoders.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.layers.embedding import WordEmbedding


class EmotionMemory(nn.Module):
    """An embedding and an internal memory for each emotion, and the gate between two vocabularies."""

    emotional: Tensor
    """(vocabulary,) True for emotional words. Saved with the weights, so that inference needs no lexicon."""

    def __init__(self, emotions: int, width: int, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(emotions, width)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.states = nn.Parameter(torch.empty(emotions, width))
        nn.init.uniform_(self.states, 0.0, 1.0)
        self.read_gate = nn.Linear(width, width)
        self.write_gate = nn.Linear(width, width)
        self.out = nn.Linear(width, width, bias=False)
        nn.init.zeros_(self.out.weight)
        self.choice = nn.Linear(width, 1)
        nn.init.zeros_(self.choice.weight)
        self.register_buffer("emotional", torch.zeros(vocabulary, dtype=torch.bool))

    @torch.no_grad()
    def start(self, emotional: Tensor, counts: Tensor) -> None:
        """Start the gate at the share of emotional words, so that every word starts at its frequency."""
        self.emotional.copy_(emotional)
        smoothed = counts.float() + 0.5
        share = smoothed[emotional].sum() / smoothed.sum()
        self.choice.bias.fill_(float(torch.logit(share)))

    def read(
        self, hidden: Tensor, emotion: Tensor, spent: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The decoder's output (batch, time, width) with the emotion added, and how much of it is spent afterwards.

        emotion (batch,). spent (batch, width): Σ log g over all previous positions; None at the start. Where the mask
        (batch, time) is False, nothing is spent.
        """
        gates = F.logsigmoid(self.write_gate(hidden).float())
        if mask is not None:
            gates = gates * mask[..., None]
        total = gates.cumsum(dim=1) + (0.0 if spent is None else spent[:, None])
        left = self.states[emotion][:, None] * (total - gates).exp()  # before each position's own gate
        return hidden + self.out(torch.sigmoid(self.read_gate(hidden)) * left.to(hidden.dtype)), total[:, -1]

    def left_over(self, emotion: Tensor, spent: Tensor) -> Tensor:
        """‖M‖ after the end of the reply, (batch,): ECM's regulariser drives it to zero."""
        return (self.states[emotion] * spent.exp()).norm(dim=-1)

    def log_probs(self, spoken: Tensor, words: WordEmbedding) -> Tensor:
        """log p(word), (…, vocabulary), from outputs (…, width)."""
        logits = words.logits(spoken)
        gate = self.choice(spoken).float()  # (…, 1)
        split = [logits.masked_fill(other, -torch.inf).logsumexp(-1, keepdim=True) for other in self._others()]
        offset = torch.where(self.emotional, F.logsigmoid(gate) - split[0], F.logsigmoid(-gate) - split[1])
        return logits + offset

    def _others(self) -> tuple[Tensor, Tensor]:
        return ~self.emotional, self.emotional

    def choice_loss(self, spoken: Tensor, targets: Tensor) -> Tensor:
        """Σ −log p of the gate choosing the right vocabulary, over positions."""
        gate = self.choice(spoken).float()[..., 0]
        return F.binary_cross_entropy_with_logits(gate, self.emotional[targets].float(), reduction="sum")
