"""Capabilities: what a system can do besides replying, read in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from listenwell.labels.sets import EMOTION, LabelSet

if TYPE_CHECKING:
    from listenwell.contract import Direction
    from listenwell.data.dialogue import LabelPlace
    from listenwell.decoding import Decoding


@dataclass(frozen=True, slots=True)
class Capabilities:
    """A system declares these as attributes of the same names; one that declares nothing has the defaults.

    A system with a method `stream` can stream, and one with `with_decoding` can be copied with other decoding options.
    """

    takes_label: bool = False
    """Replies with a requested label."""
    takes_positivity: bool = False
    """Leans as far towards lifting the mood as requested."""
    directions: tuple[Direction, ...] = ("forward",)
    decoding: Decoding | None = None
    """How it writes replies; None where it has no such options."""
    can_stream: bool = False
    can_change_decoding: bool = False
    precision: str = ""
    emotions: LabelSet = EMOTION
    """The emotions it predicts."""
    emotion_of: LabelPlace = "dialogue"
    """Whose emotion that is."""

    @classmethod
    def of(cls, system: Any) -> Capabilities:
        """Those of any system, also of one that knows nothing of this class."""
        decoding = getattr(system, "decoding", None)
        return cls(
            takes_label=getattr(system, "takes_label", False),
            takes_positivity=getattr(system, "takes_positivity", False),
            directions=getattr(system, "directions", ("forward",)),
            decoding=decoding,
            can_stream=hasattr(system, "stream"),
            can_change_decoding=decoding is not None and hasattr(system, "with_decoding"),
            precision=getattr(system, "precision", ""),
            emotions=getattr(system, "emotions", EMOTION),
            emotion_of=getattr(system, "emotion_of", "dialogue"),
        )
