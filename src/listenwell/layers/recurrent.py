"""A recurrent encoder and an attentive recurrent decoder with the same step() contract as the transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from listenwell.layers.dropout import Dropout, dropout


class RecurrentEncoder(nn.Module):
    """A unidirectional or bidirectional GRU or LSTM over real positions only."""

    def __init__(
        self,
        input_width: int,
        width: int,
        layers: int = 1,
        dropout: float = 0.0,
        both_ways: bool = True,
        cell: Literal["gru", "lstm"] = "gru",
    ) -> None:
        super().__init__()
        if both_ways and width % 2:
            raise ValueError(f"a width of {width} does not divide into two directions")
        kind = nn.GRU if cell == "gru" else nn.LSTM
        self.cell = kind(
            input_width,
            width // 2 if both_ways else width,
            num_layers=layers,
            batch_first=True,
            bidirectional=both_ways,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.both_ways = both_ways

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """All outputs (batch, time, width), and the last state (batch, width), concatenated over directions."""
        lengths = mask.sum(dim=1).clamp_min(1).cpu()
        with torch.autocast(x.device.type, enabled=False):  # not every CPU has a half-precision LSTM
            x = x.to(next(self.cell.parameters()).dtype)
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            outputs, last = self.cell(packed)
        padded, _ = pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])
        state = last[0] if isinstance(last, tuple) else last
        ends = torch.cat([state[-2], state[-1]], dim=-1) if self.both_ways else state[-1]
        return padded, ends


@dataclass(slots=True)
class Recurrence:
    """The decoder's state: everything that differs between hypotheses, each (batch, …)."""

    hidden: Tensor
    """The cell's state (batch, width)."""
    fed: Tensor
    """The last attentional output h̃ (batch, width), fed back with the next word."""


class AttentiveDecoder(nn.Module):
    """A GRU decoder with Luong's general attention and input feeding.

        s_t = GRU([x_t; h̃_{t−1}], s_{t−1})
        a_t = softmax(s_t W_a Mᵀ),   c_t = a_t M
        h̃_t = tanh(W_c [c_t; s_t])

    `step` advances by one word, with the memory projected by W_a beforehand. `forward` processes a whole reply with a
    custom backward pass: see `_Taught`.
    """

    def __init__(self, input_width: int, width: int, memory_width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.width = width
        self.cell = nn.GRUCell(input_width + width, width)
        self.attention = nn.Linear(memory_width, width, bias=False)
        self.mix = nn.Linear(memory_width + width, width, bias=False)
        self.dropout = Dropout(dropout)

    @property
    def output_weight(self) -> Tensor:
        """The last weight that all of its output passes through."""
        return self.mix.weight

    def start_silent(self) -> None:
        """It already is: its input passes through several layers, each of which makes it smaller."""

    def start(self, state: Tensor) -> Recurrence:
        return Recurrence(state, torch.zeros_like(state))

    def step(self, x: Tensor, memory: Tensor, keys: Tensor, mask: Tensor, at: Recurrence) -> Recurrence:
        """Advance by one word: x is (batch, input width), keys are `self.attention(memory)`."""
        hidden = self.cell(torch.cat([x, at.fed], dim=-1), at.hidden)
        scores = torch.einsum("bw,btw->bt", hidden, keys).masked_fill(~mask, float("-inf"))
        context = torch.einsum("bt,btm->bm", scores.softmax(dim=-1), memory)
        return Recurrence(hidden, self.dropout(torch.tanh(self.mix(torch.cat([context, hidden], dim=-1)))))

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor, state: Tensor) -> Tensor:
        """Teacher forcing: all h̃ (batch, time, width) for the words x (batch, time, input width)."""
        # In full precision: the loop consists of small products that half precision would not speed up.
        with torch.autocast(x.device.type, enabled=False):
            x, memory, state = (side.to(self.mix.weight.dtype) for side in (x, memory, state))
            for_words, for_fed = self.cell.weight_ih.split([x.shape[-1], self.width], dim=1)
            for_context, for_state = self.mix.weight.split([memory.shape[-1], self.width], dim=1)
            # One product for the words of all steps, and another for everything that is computed from a state.
            given = nn.functional.linear(x.transpose(0, 1), for_words, self.cell.bias_ih)
            turn = torch.cat([self.cell.weight_hh.T, self.attention.weight, for_state.T], dim=1)
            shift = nn.functional.pad(self.cell.bias_hh, (0, turn.shape[1] - len(self.cell.bias_hh)))
            bars = torch.zeros_like(mask, dtype=x.dtype).masked_fill_(~mask, float("-inf"))
            noise = dropout(torch.ones_like(given[..., : self.width]), self.dropout.rate, self.training)
            read_again = for_fed.T.contiguous()  # used at every step: a slice of rows twice as long is slower
            said = _Taught.apply(given, read_again, turn, shift, for_context, memory, bars[:, None], state, noise)
            return said.transpose(0, 1)


class _Taught(torch.autograd.Function):
    """All steps of a known reply, with a custom backward pass.

    Input feeding of h̃ keeps the steps in a loop, but only what depends on the previous step has to be in it. Autograd
    would accumulate every weight's gradient step by step, which moves more memory than the steps themselves; here each
    is a single product over all steps, after the loop. W_a is applied to the query instead of the memory, which is
    longer than a reply. All buffers are time first.
    """

    @staticmethod
    def forward(
        ctx: Any,
        given: Tensor,
        for_fed: Tensor,
        turn: Tensor,
        shift: Tensor,
        for_context: Tensor,
        memory: Tensor,
        bars: Tensor,
        state: Tensor,
        noise: Tensor,
    ) -> Tensor:
        """given (time, batch, 3 width): the words' part of the gates. turn (width, …): the projections of a state.

        These are its part of the next step's gates (3 width), the query (memory width) and its part of h̃ (width).
        """
        (time, batch, three), (_, _, read) = given.shape, memory.shape
        width = three // 3
        hidden = given.new_empty(time + 1, batch, width)
        fed = given.new_zeros(time + 1, batch, width)
        turned = given.new_empty(time + 1, batch, turn.shape[1])
        gates = torch.empty_like(given)
        shares = given.new_empty(time, batch, memory.shape[1])
        contexts = given.new_empty(time, batch, read)
        said = given.new_empty(time, batch, width)
        positions = memory.transpose(1, 2)
        hidden[0] = state
        torch.addmm(shift, state, turn, out=turned[0])
        for now in range(time):
            after = now + 1
            own = turned[now][:, :three]
            gate = torch.addmm(given[now], fed[now], for_fed, out=gates[now])
            gate[:, : 2 * width].add_(own[:, : 2 * width]).sigmoid_()
            reset, update, new = gate.split(width, dim=1)
            new.addcmul_(reset, own[:, 2 * width :]).tanh_()
            torch.lerp(new, hidden[now], update, out=hidden[after])
            torch.addmm(shift, hidden[after], turn, out=turned[after])
            query, from_state = turned[after][:, three:].split([read, width], dim=1)
            # Row times matrix, never matrix times column: that form is ten times slower in batches.
            torch.softmax(torch.baddbmm(bars, query[:, None], positions)[:, 0], dim=1, out=shares[now])
            torch.bmm(shares[now][:, None], memory, out=contexts[now][:, None])
            torch.addmm(from_state, contexts[now], for_context.T, out=said[now]).tanh_()
            torch.mul(said[now], noise[now], out=fed[after])
        ctx.save_for_backward(
            for_fed, turn, for_context, memory, noise, hidden, fed, turned, gates, shares, contexts, said
        )
        return fed[1:]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        for_fed, turn, for_context, memory, noise, hidden, fed, turned, gates, shares, contexts, said = (
            ctx.saved_tensors
        )
        (time, _, width), read = said.shape, memory.shape[2]
        three, positions = 3 * width, memory.transpose(1, 2)
        d_turned = torch.zeros_like(turned)
        d_gates, d_shares, d_contexts = (torch.empty_like(like) for like in (gates, shares, contexts))
        d_fed, d_hidden = grads[0][-1], torch.zeros_like(hidden[0])
        for now in reversed(range(time)):
            after = now + 1
            d_own, (d_query, d_kept) = d_turned[now][:, :three], d_turned[after][:, three:].split([read, width], dim=1)
            torch.mul(d_fed, noise[now] * (1 - said[now].square()), out=d_kept)
            torch.mm(d_kept, for_context, out=d_contexts[now])
            d_share = torch.bmm(d_contexts[now][:, None], positions)[:, 0]
            mean = (d_share * shares[now]).sum(dim=1, keepdim=True)
            d_score = torch.mul(d_share - mean, shares[now], out=d_shares[now])
            d_query.copy_(torch.bmm(d_score[:, None], memory)[:, 0])
            d_hidden = torch.addmm(d_hidden, d_turned[after], turn.T)
            reset, update, new = gates[now].split(width, dim=1)
            d_reset, d_update, d_new = d_gates[now].split(width, dim=1)
            torch.mul(d_hidden * (1 - update), 1 - new.square(), out=d_new)
            torch.mul(d_new * turned[now][:, 2 * width : three], reset * (1 - reset), out=d_reset)
            torch.mul(d_hidden * (hidden[now] - new), update * (1 - update), out=d_update)
            d_own[:, : 2 * width] = d_gates[now][:, : 2 * width]
            torch.mul(d_new, reset, out=d_own[:, 2 * width :])
            d_hidden = d_hidden * update
            if now:
                d_fed = torch.addmm(grads[0][now - 1], d_gates[now], for_fed.T)
        d_state = torch.addmm(d_hidden, d_turned[0], turn.T)
        queries = turned[1:, :, three : three + read]
        read_twice = torch.cat([shares, d_shares]).permute(1, 2, 0), torch.cat([d_contexts, queries]).transpose(0, 1)
        d_kepts = d_turned[1:, :, three + read :].flatten(0, 1)
        return (
            d_gates,
            fed[:-1].flatten(0, 1).T @ d_gates.flatten(0, 1),
            hidden.flatten(0, 1).T @ d_turned.flatten(0, 1),
            d_turned.sum(dim=(0, 1)),
            d_kepts.T @ contexts.flatten(0, 1),
            torch.bmm(*read_twice),
            None,
            d_state,
            None,
        )
