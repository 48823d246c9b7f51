"""Capabilities: what a system can do besides replying, collected in one place."""

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
"""The method by which a system declares each capability. It is looked up with getattr, because a runtime protocol check
does not see the methods that a wrapper forwards to its system."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """A system declares these as attributes of the same names; the defaults apply to those it does not declare.

    The `can_…` fields are declared by having a method; see `METHODS`.
    """

    takes_label: bool = False
    """Can reply with a requested label."""
    takes_positivity: bool = False
    """Can lean towards lifting the mood as far as requested."""
    directions: tuple[Direction, ...] = ("forward",)
    decoding: Decoding | None = None
    """Its decoding options; None if it has none."""
    can_stream: bool = False
    """Can show a reply while it is written."""
    can_change_decoding: bool = False
    """Can be copied with other decoding options."""
    can_plan: bool = False
    """Can tell what it would reply with, and why, before it writes."""
    can_recognise: bool = False
    """Can tell what it recognises in a conversation, without replying."""
    can_write_together: bool = False
    """Can write for several people at once, one decoding step at a time."""
    precision: str = ""
    emotions: LabelSet = EMOTION
    """The emotions it predicts."""
    emotion_of: LabelPlace = "dialogue"
    """Whether it is the emotion of the dialogue or of a turn."""
    label_set: LabelSet = EMOTION_INTENT
    """The labels of replies that it chooses from and that can be requested."""

    @classmethod
    def of(cls, system: Any) -> Capabilities:
        """Returns the capabilities of any system, including one that knows nothing of this class."""
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
