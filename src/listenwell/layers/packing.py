"""Converting batches between padded form and packed form, where texts are concatenated without padding."""

from __future__ import annotations

from torch import Tensor


class Places:
    """Where the real tokens of a padded batch are: products need only these, packed; attention needs padded texts."""

    def __init__(self, mask: Tensor) -> None:
        """`mask` (batch, time) is True at real positions."""
        self.shape = tuple(mask.shape)
        self.count = int(mask.sum())
        self.padded = self.count < mask.numel()
        """Whether any position is padding; without padding nothing is copied."""
        self._real = mask.flatten().nonzero()[:, 0] if self.padded else None

    def pack(self, spread: Tensor) -> Tensor:
        """(batch, time, …) to (positions, …)."""
        rows = spread.flatten(0, 1)
        return rows if self._real is None else rows.index_select(0, self._real)

    def spread(self, packed: Tensor) -> Tensor:
        """(positions, …) to (batch, time, …), zero at padding."""
        if self._real is not None:
            rows = packed.new_zeros(self.shape[0] * self.shape[1], *packed.shape[1:])
            packed = rows.index_copy_(0, self._real, packed)
        return packed.unflatten(0, self.shape)
