"""Training Dual-Emp on unpaired data (Shen et al. 2021, Eqs 15–19): one side of an example is missing.

The model generates the missing side and reconstructs the given side from it. Reconstruction is trained by likelihood.
The sampled words in between have no gradient, so generation is trained by the reward
exp(mean log p(source | written, z)), minus the reward of the greedy text as a baseline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from listenwell.contract import Batch, Direction, Moment, Sequence, Term, map_tensors
from listenwell.layers.latent import anneal, entropy
from listenwell.models.policy import write_drawn_and_greedy

if TYPE_CHECKING:
    from listenwell.models.dual_emp import DualEmp

OTHER: dict[Direction, Direction] = {"forward": "backward", "backward": "forward"}

LONGEST = 30
"""Maximum number of tokens of a generated side, as in the paper's decoding."""


def unpaired_terms(
    model: DualEmp,
    batch: Batch,
    moment: Moment,
    direction: Direction,
    temperature: float = 1.0,
    kl_annealed: float = 0.0,
    free: float = 0.0,
) -> dict[str, Term]:
    """`direction` reads the given side and generates the other; the other direction reconstructs the given one."""
    back = OTHER[direction]
    source = model.source(batch, direction)
    hidden = model.encode(source, direction)
    log_q = model.model(direction).infer(hidden, source.mask)
    embedding = model.drawn_embedding(log_q, temperature)
    target = model.target(batch, back)
    count = float(target.mask.sum())
    written, greedy = write_missing_side(model, batch, direction, embedding.detach(), moment)
    loss, nll = write_back(model, batch, written, embedding, back)
    with torch.no_grad():
        _, baseline = write_back(model, batch, greedy, embedding, back)
    lengths = target.mask.sum(dim=1)
    reward, usual = (-nll.detach() / lengths).exp(), (-baseline / lengths).exp()
    memory = model.model(direction).decoder.remember(hidden, source.mask, embedding.detach())
    policy, _ = model.cost(written, memory, direction, weights=reward - usual)
    name = f"from-{'context' if direction == 'forward' else 'reply'}"
    rise = anneal(moment.progress, kl_annealed)
    latent = model.latent_terms(log_q, batch, count, rise, 0.0, "forward", free)
    size = len(batch)
    return {
        f"back-{name}": Term(loss, count, nll.detach().sum()),
        f"policy-{name}": Term(policy, count),
        **{f"{key}-{name}": term for key, term in latent.items()},
        f"reward-{name}": Term(reward.sum(), size, learned=False),
        f"advantage-variance-{name}": Term(size * (reward - usual).var(correction=0), size, learned=False),
        f"entropy-{name}": Term(entropy(log_q.detach()).sum(), size, learned=False),
        f"copied-{name}": Term(copied(written, source).sum(), size, learned=False),
    }


@torch.no_grad()
def write_missing_side(
    model: DualEmp, batch: Batch, direction: Direction, embedding: Tensor, moment: Moment
) -> tuple[Sequence, Sequence]:
    """The missing side, sampled and greedy, as at inference time: without dropout, at most LONGEST tokens."""
    learns = model.training
    model.eval()
    source = model.source(batch, direction)
    hidden = model.encode(source, direction)
    log_q = model.model(direction).infer(hidden, source.mask)
    state = model.begin(hidden, source.mask, log_q, embedding, direction)
    role = model.role_written(direction)
    written = write_drawn_and_greedy(model, state, model.vocabulary, role, batch.rows, moment.step, LONGEST)
    model.train(learns)
    device = model.words.table.device
    drawn, greedy = (map_tensors(side, lambda tensor: tensor.to(device)) for side in written)
    return drawn, greedy


def write_back(
    model: DualEmp, batch: Batch, written: Sequence, embedding: Tensor, back: Direction
) -> tuple[Tensor, Tensor]:
    """−log p(given side | generated side, z), summed and by row."""
    ids = model.vocabulary
    source = written.as_source(ids.ctx, ids.end)
    memory = model.model(back).decoder.remember(model.encode(source, back), source.mask, embedding)
    return model.cost(model.target(batch, back), memory, back)


def copied(written: Sequence, source: Sequence) -> Tensor:
    """The share of a text's bigrams that also occur in its source, by row: the reward favours copying."""
    base = int(max(written.tokens.max(), source.tokens.max())) + 1
    ours, ours_real = _pairs(written, base)
    theirs, theirs_real = _pairs(source, base)
    again = ((ours[:, :, None] == theirs[:, None, :]) & theirs_real[:, None, :]).any(dim=2) & ours_real
    return again.sum(dim=1) / ours_real.sum(dim=1).clamp_min(1)


def _pairs(side: Sequence, base: int) -> tuple[Tensor, Tensor]:
    return side.tokens[:, :-1] * base + side.tokens[:, 1:], side.mask[:, :-1] & side.mask[:, 1:]
