"""Fused vocabulary projection and cross-entropy, in chunks, on real positions only.

Projecting onto 24,000 words is most of the work of these small models. Padding never gets here; the
logits of a chunk are turned into their own gradient in place, so neither the logits of a whole batch
nor their gradient are ever materialised, and nothing is computed twice.

If the layers train in bf16, so does the output layer: its three products then take half the time. A logit is rounded
to one part in 256 of itself, differently for each word, which is small compared to the noise of a batch. Likelihoods
that are only measured stay in full precision.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from listenwell.layers.cpu import with_spare_rows

CHUNK = 256
"""How many positions' logits to process at once, so that they stay in cache."""
BLOCK = 4 * CHUNK
"""How many positions' logits to keep at once: the table's gradient is accumulated once per block."""


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
        kind: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        # The bias is an extra column of the table, multiplied by ones: adding it costs no pass over the logits.
        wide_hidden, wide_table = _with_bias(hidden, table, bias, kind)
        turned = wide_table.T
        if kind != table.dtype:
            # Logits of padding rows are zeros: they add nothing to a gradient.
            wide_hidden = with_spare_rows(wide_hidden)
            # In half precision, a product is fastest with its larger operand transposed.
            turned = turned.contiguous()
        learns_table = any(ctx.needs_input_grad[1:3])
        grad_hidden = hidden.new_empty(len(hidden), wide_hidden.shape[1])
        grad_table: Tensor | None = None
        loss = hidden.new_zeros((), dtype=torch.float64)
        nll = hidden.new_empty(len(hidden))
        words = len(table)
        # One buffer for all blocks: allocating this much memory costs as much as the product that fills it.
        buffer = wide_hidden.new_empty(min(BLOCK, len(wide_hidden)), words)
        for first in range(0, len(hidden), BLOCK):
            block = wide_hidden[first : first + BLOCK]
            for begin in range(0, len(block), CHUNK):
                part = slice(first + begin, first + begin + CHUNK)
                rows, gold = wide_hidden[part], targets[part, None]
                logits_all = torch.mm(rows, turned, out=buffer[begin : begin + len(rows)])
                logits = logits_all[: len(gold)]
                summed = logits.sum(dim=1, dtype=nll.dtype) if smoothing else None
                wanted = logits.gather(1, gold)[:, 0].to(nll.dtype)
                delta = torch.softmax(logits, dim=1, out=logits)
                chances = delta.gather(1, gold)
                nll[part] = -chances[:, 0].to(nll.dtype).clamp_min(TINY).log()
                each = (1 - smoothing) * nll[part]
                if summed is not None:
                    each += smoothing * (wanted + nll[part] - summed / words)  # wanted + nll is the logsumexp
                loss += (each if weights is None else each * weights[part]).sum(dtype=torch.float64)
                if smoothing:
                    delta -= smoothing / words
                # Not `scatter_`, which makes a pass over all logits in half precision.
                every = torch.arange(len(gold), device=rows.device)
                delta[every, gold[:, 0]] = chances[:, 0] - (1 - smoothing + smoothing / words)
                if weights is not None:
                    delta *= weights[part, None]
                grad_hidden[part] = (logits_all @ wide_table)[: len(gold)]
            if learns_table:
                grad_table = _table_gradient(grad_table, block, buffer[: len(block)], table.dtype)
        if learns_table and grad_table is None:  # there were no positions
            grad_table = torch.zeros_like(wide_table, dtype=table.dtype)
        ctx.save_for_backward(grad_hidden, grad_table)
        ctx.widths = hidden.shape[1], bias is not None
        ctx.mark_non_differentiable(nll)
        return loss.to(nll.dtype), nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad_hidden, grad_table), (width, biased) = ctx.saved_tensors, ctx.widths
        hidden = grad_hidden[:, :width] * grads[0]
        if grad_table is None:
            return hidden, None, None, None, None, None, None
        table = grad_table[:, :width] * grads[0]
        return hidden, table, grad_table[:, width] * grads[0] if biased else None, None, None, None, None


def _table_gradient(total: Tensor | None, rows: Tensor, deltas: Tensor, kind: torch.dtype) -> Tensor:
    """Add one more block to the gradient of the table (words, width)."""
    if rows.dtype != kind:
        product = (deltas.T @ rows).to(kind)
        return product if total is None else total.add_(product)
    # Transposed, (width, words): that product reads its larger operand in memory order.
    return (rows.T @ deltas).T if total is None else total.T.addmm_(rows.T, deltas).T


TINY = 1e-37
"""Lower bound on a probability before its logarithm is taken in training: 85 nats."""


def _with_bias(hidden: Tensor, table: Tensor, bias: Tensor | None, kind: torch.dtype) -> tuple[Tensor, Tensor]:
    if bias is None:
        return hidden.to(kind), table.to(kind)
    ones = hidden.new_ones(len(hidden), 1)
    return torch.cat([hidden, ones], dim=1).to(kind), torch.cat([table, bias[:, None]], dim=1).to(kind)


def _measured(
    hidden: Tensor, table: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float, weights: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The same in full precision, with nothing saved for a backward pass."""
    loss, nll = hidden.new_zeros((), dtype=torch.float64), hidden.new_empty(len(hidden))
    for begin in range(0, len(hidden), CHUNK):
        part = slice(begin, begin + CHUNK)
        logits = hidden[part] @ table.T if bias is None else torch.addmm(bias, hidden[part], table.T)
        log_p = logits.log_softmax(dim=1)
        nll[part] = -log_p.gather(1, targets[part, None])[:, 0]
        each = (1 - smoothing) * nll[part]
        if smoothing:
            each = each - smoothing / len(table) * log_p.sum(dim=1)
        loss += (each if weights is None else each * weights[part]).sum(dtype=torch.float64)
    return loss.to(nll.dtype), nll


def packed_cross_entropy(
    hidden: Tensor,
    table: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float = 0.0,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The summed loss with label smoothing, and each position's plain −log p (no gradient).

    hidden (positions, width), table (vocabulary, width), targets (positions,): real positions only. A frozen table
    costs a third less.
    weights (positions,) weight the positions, as a policy gradient does by their reward.
    """
    device = hidden.device.type
    lower = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else table.dtype
    hidden = hidden.to(table.dtype)
    with torch.autocast(device, enabled=False):
        if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (hidden, table, bias)):
            return _PackedCrossEntropy.apply(hidden, table, bias, targets, smoothing, weights, lower)
        return _measured(hidden, table, bias, targets, smoothing, weights)
