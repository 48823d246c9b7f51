"""Batches of texts assembled from parts, such as a context, a header and a reply, as input to a language model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from listenwell.backbones.encoder import PretrainedEncoder
from listenwell.contract import Batch, Sequence

READ, REPLY = range(2)
"""How the loss treats a position: as input only, or as a token of a reply."""


@dataclass(slots=True)
class Text:
    """Token ids (batch, time) with their mask, and how the loss treats each position."""

    tokens: Tensor
    mask: Tensor
    use: Tensor

    @classmethod
    def of(cls, side: Sequence, use: int | Tensor = READ) -> Text:
        return cls(side.tokens, side.mask, use if isinstance(use, Tensor) else torch.full_like(side.tokens, use))

    @classmethod
    def same(cls, ids: list[int], like: Tensor) -> Text:
        """The same tokens in every row."""
        tokens = torch.tensor(ids, device=like.device).expand(len(like), -1)
        return cls(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.full_like(tokens, READ))

    @classmethod
    def joined(cls, *parts: Text) -> Text:
        """The parts of each row concatenated without gaps; padding comes last."""
        mask = torch.cat([part.mask for part in parts], dim=1)
        # Stable, so that real tokens keep their order.
        order = (~mask).byte().sort(dim=1, stable=True).indices[:, : int(mask.sum(dim=1).max())]
        tokens, use = (torch.cat([getattr(part, name) for part in parts], dim=1) for name in ("tokens", "use"))
        return cls(tokens.gather(1, order), mask.gather(1, order), use.gather(1, order))


def read_pair(backbone: PretrainedEncoder, batch: Batch) -> tuple[Tensor, Tensor]:
    """Encode context and reply as a text pair: the output at each position, and the mask of the reply's positions."""
    if batch.context is None or batch.reply is None:
        raise ValueError("a reply is judged beside what it answers: an example needs a context and a reply")
    text = Text.joined(Text.of(batch.context), Text.of(batch.reply, REPLY))
    most = backbone.longest
    tokens, mask, use = text.tokens[:, :most], text.mask[:, :most], text.use[:, :most]
    return backbone(tokens, mask, segments=use), mask & (use == REPLY)
