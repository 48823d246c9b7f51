"""The contents of a strategy memory as plain values: its slots by emotion, what they stand for, how often they are
read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from listenwell.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True)
class SlotView:
    """One slot of one emotion's memory."""

    slot: int
    reads: float
    """Number of training queries that read it, counted by their read weights."""
    words: str
    """The words that distinguish its queries from the emotion's other queries."""
    queries: tuple[int, ...]
    """Indices of its nearest training queries."""


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The memory of one emotion."""

    emotion: str
    filled: int
    """Number of slots that hold something."""
    read: int
    """Number of slots that at least one training query reads."""
    slots: tuple[SlotView, ...]
    """The most-read slots, in descending order of reads."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def view_memory(trained: Checkpoint, count: int = 10) -> list[MemoryView]:
    """Returns each emotion's memory with its `count` most-read slots. A missing or empty memory is an error."""
    from listenwell.models.strategy_memory import StrategyMemoryModel

    model = trained.model
    if not isinstance(model, StrategyMemoryModel):
        raise ValueError(f"{trained.name} has no strategy memory; strategy-memory has one")
    memory = model.memory
    if not memory.written:
        raise ValueError(f"{trained.name}: its memory is empty: phase 2, which writes it, has not begun")
    views = []
    for index, filled in enumerate(memory.filled.tolist()):
        if not filled:
            continue
        reads = memory.reads[index, :filled]
        order = reads.argsort(descending=True, stable=True)[:count].tolist()
        slots = [
            SlotView(
                slot,
                round(float(reads[slot]), 1),
                model.slot_words(index, slot),
                tuple(number for number in memory.nearest[index, slot].tolist() if number >= 0),
            )
            for slot in order
        ]
        views.append(MemoryView(model.memory_name(index), filled, int((reads > 0).sum()), tuple(slots)))
    return views
