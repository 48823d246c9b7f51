"""ChatML text for a model: the headers of replies, and what a context, a reply and a turn consist of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from listenwell.backbones.reading import Memory
from listenwell.contract import Batch, Model, Sequence, Vocabulary, map_tensors
from listenwell.data.dialogue import ROLES
from listenwell.models.joined_text import READ, REPLY, Text
from listenwell.text.chatml import ANSWERED, LINE, LISTENER, voice_header

PLAIN = -1
"""In the place of a plan's label: no plan, a plain header. It is the last row of the table of headers."""


@dataclass(slots=True)
class Read:
    """What was read before the reply begins. Every tensor has the batch first."""

    memory: Memory
    """Keys and values of each layer."""
    mask: Tensor
    """(batch, time), True at real positions."""
    first: Tensor
    """(batch,) the last token of the header: not yet read, it takes the place of the start token."""
    plan: Tensor
    """(batch,) the label of the plan, PLAIN where there is none."""


class ChatText(Model):
    """A model that reads dialogues in ChatML, by the headers' token ids in its config."""

    vocabulary: Vocabulary
    plan_tokens: Tensor
    plan_mask: Tensor

    def _tabulate(self, voice: str = "") -> None:
        """The headers of a reply as tables, one row per label and the plain one last: people's, and the voice's, which
        are people's where there is no voice."""
        people = [self.config.headers[name] for name in (*self.label_set, LISTENER)]
        own = [self.config.headers[voice_header(voice, label)] for label in (*self.label_set, "")] if voice else people
        longest = max(map(len, [*people, *own]))
        tables = [[header + [0] * (longest - len(header)) for header in headers] for headers in (people, own)]
        lengths = torch.tensor([[len(header) for header in headers] for headers in (people, own)])
        self.register_buffer("plan_tokens", torch.tensor(tables), persistent=False)
        self.register_buffer("plan_mask", torch.arange(longest) < lengths[:, :, None], persistent=False)

    def header(self, plan: Tensor, own: bool = False) -> Text:
        """The header of a reply with each row's plan (batch,): a label id, or PLAIN. With `own` it is that of the
        model's own voice, in which it talks; else that of people, whose replies are learned and measured."""
        tokens = self.plan_tokens[int(own)][plan]
        return Text(tokens, self.plan_mask[int(own)][plan], torch.full_like(tokens, READ))

    def context(self, batch: Batch, inner: bool = False) -> Text:
        """The context, whose earlier replies are learned too if `inner`."""
        side = batch.context
        assert side is not None
        if side.tokens[0, :2].tolist() not in [self.config.headers[role][:2] for role in ROLES]:
            raise ValueError("the context's turns have no headers: write encoding: {turns: chatml}")
        return Text.of(side, self._earlier_replies(side) if inner else READ)

    def _earlier_replies(self, side: Sequence) -> Tensor:
        """REPLY at the words and ends of the listener's turns, their headers and line breaks left out."""
        # A turn is its header, its words, the end, and a line: the marks and how far they reach tell all but the words.
        starts, ends = (side.tokens == mark for mark in (self.vocabulary.start, self.vocabulary.end))
        around = torch.zeros_like(side.mask)
        reaches = [(starts, step) for step in range(len(self.config.headers[LISTENER]))]
        reaches += [(ends, step + 1) for step in range(len(self.config.headers[LINE]))]
        for marks, step in reaches:
            around[:, step:] |= marks[:, : marks.shape[1] - step]
        return torch.where(side.mask & (side.roles == ROLES.index("listener")) & ~around, REPLY, READ)

    def last_turn(self, context: Sequence) -> Sequence:
        """The words and the end of each context's last turn, without header and line break."""
        places = torch.arange(context.tokens.shape[1], device=context.tokens.device)
        begins = torch.where(context.tokens == self.vocabulary.start, places, 0).amax(dim=1, keepdim=True)
        headers = torch.tensor([len(self.config.headers[role]) for role in ROLES], device=places.device)
        begins = begins + headers[context.roles.gather(1, begins)]
        ends = context.mask.sum(dim=1, keepdim=True) - len(self.config.headers[LINE])
        longest = int((ends - begins).max())
        index = (begins + torch.arange(longest, device=places.device)).clamp_max(len(places) - 1)
        turn = map_tensors(context, lambda tensor: tensor.gather(1, index))
        return replace(turn, mask=turn.mask & (index < ends))

    def answered(self, reply: Sequence) -> Text:
        """A reply, and the header of the turn that it answers."""
        before, line, behind = (
            Text.same(self.config.headers[name], reply.tokens) for name in (LISTENER, LINE, ANSWERED)
        )
        return Text.joined(before, Text.of(reply), line, behind)

    @staticmethod
    def opening(text: Text) -> tuple[Text, Tensor]:
        """What is read before writing begins: the text without the last token of each row; and those tokens."""
        last = text.mask.sum(dim=1, keepdim=True) - 1
        places = torch.arange(text.mask.shape[1], device=last.device)
        shorter = replace(text, mask=text.mask & (places < last))
        return map_tensors(shorter, lambda tensor: tensor[:, :-1]), text.tokens.gather(1, last)[:, 0]
