"""Capabilities: what a system can do besides replying, read in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from listenwell.labels.sets import EMOTION, EMOTION_INTENT, LabelSet

if TYPE_CHECKING:
    from listenwell.contract import Direction
    from listenwell.data.dialogue import LabelPlace
    from listenwell.decoding import Decoding


METHODS: dict[str, str] = {
    "can_stream": "stream",
    "can_change_decoding": "with_decoding",
    "can_plan": "plan",
    "can_recognise": "recognise",
    "can_write_together": "write_together",
}
"""The method by which a system declares each capability. It is looked up as it would be called: a wrapper hands
calls on to its system, which a runtime check of protocols does not see."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """A system declares these as attributes of the same names; one that declares nothing has the defaults.

    What it can do is declared by a method: `METHODS` says by which.
    """

    takes_label: bool = False
    """Replies with a requested label."""
    takes_positivity: bool = False
    """Leans as far towards lifting the mood as requested."""
    directions: tuple[Direction, ...] = ("forward",)
    decoding: Decoding | None = None
    """How it writes replies; None where it has no such options."""
    can_stream: bool = False
    """Shows a reply while it is written."""
    can_change_decoding: bool = False
    """Can be copied with other decoding options."""
    can_plan: bool = False
    """Says what it would reply with, and why, before it writes."""
    can_recognise: bool = False
    """Says what it recognises in a conversation, without a reply."""
    can_write_together: bool = False
    """Writes for several people at once, a decoding step at a time."""
    precision: str = ""
    emotions: LabelSet = EMOTION
    """The emotions it predicts."""
    emotion_of: LabelPlace = "dialogue"
    """Whose emotion that is."""
    label_set: LabelSet = EMOTION_INTENT
    """The labels of replies: what it chooses from, and what it can be asked for."""

    @classmethod
    def of(cls, system: Any) -> Capabilities:
        """Those of any system, also of one that knows nothing of this class."""
        decoding = getattr(system, "decoding", None)
        can = {name: callable(getattr(system, method, None)) for name, method in METHODS.items()}
        can["can_change_decoding"] &= decoding is not None
        return cls(
            takes_label=getattr(system, "takes_label", False),
            takes_positivity=getattr(system, "takes_positivity", False),
            directions=getattr(system, "directions", ("forward",)),
            decoding=decoding,
            precision=getattr(system, "precision", ""),
            emotions=getattr(system, "emotions", EMOTION),
            emotion_of=getattr(system, "emotion_of", "dialogue"),
            label_set=getattr(system, "label_set", EMOTION_INTENT),
            **can,
        )
