"""The vocabulary projection and its cross-entropy, fused, in chunks, on real positions only.

Projecting onto 24,000 words is most of the work of these small models. Padding never gets here; the
logits of one chunk are turned into their own gradient in place, so that neither the logits nor their
gradient of a whole batch ever exist, and nothing is computed twice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK = 256


class _PackedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        table: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        weights: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        needed = ctx.needs_input_grad[:3]
        grad_hidden = torch.empty_like(hidden) if needed[0] else None
        grad_table = torch.zeros_like(table) if needed[1] else None
        grad_bias = torch.zeros_like(bias) if bias is not None and needed[2] else None
        loss = hidden.new_zeros((), dtype=torch.float64)
        nll = hidden.new_empty(len(hidden))
        words = len(table)
        for begin in range(0, len(hidden), CHUNK):
            part = slice(begin, begin + CHUNK)
            rows, gold = hidden[part], targets[part, None]
            logits = rows @ table.T if bias is None else torch.addmm(bias, rows, table.T)
            log_p = logits.log_softmax(dim=1)
            nll[part] = -log_p.gather(1, gold)[:, 0]
            each = (1 - smoothing) * nll[part]
            if smoothing:
                each = each - smoothing / words * log_p.sum(dim=1)
            loss += (each if weights is None else each * weights[part]).sum(dtype=torch.float64)
            if any(needed):
                delta = log_p.exp_()
                if smoothing:
                    delta -= smoothing / words
                delta.scatter_add_(1, gold, delta.new_full(gold.shape, smoothing - 1))
                if weights is not None:
                    delta *= weights[part, None]
                if grad_hidden is not None:
                    torch.mm(delta, table, out=grad_hidden[part])
                if grad_table is not None:
                    grad_table.addmm_(delta.T, rows)
                if grad_bias is not None:
                    grad_bias += delta.sum(dim=0)
        if any(needed):
            ctx.save_for_backward(grad_hidden, grad_table, grad_bias)
        ctx.mark_non_differentiable(nll)
        return loss.to(hidden.dtype), nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        scale = grads[0]
        return *(None if grad is None else grad * scale for grad in ctx.saved_tensors), None, None, None


def packed_cross_entropy(
    hidden: Tensor,
    table: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float = 0.0,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The summed loss with label smoothing, and each position's plain −log p (no gradient).

    hidden (positions, width), table (vocabulary, width), targets (positions,): real positions only. A table that does
    not learn costs a third less.
    weights (positions,) count positions differently, as a policy gradient counts them by their reward.
    """
    if not torch.is_grad_enabled():  # a parameter asks for its gradient all the same
        table, bias = table.detach(), None if bias is None else bias.detach()
    # In full precision also where the layers below are not: a sum over 24,000 words forgives no rounding.
    with torch.autocast(hidden.device.type, enabled=False):
        return _PackedCrossEntropy.apply(hidden.to(table.dtype), table, bias, targets, smoothing, weights)
