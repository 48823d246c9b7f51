"""The emotions and intents used throughout, MIME's polarity of the emotions, and messages for unknown names.

The ids are MEED2's: the 32 emotions of EmpatheticDialogues in alphabetical order (0-31), the eight
intents of a response (32-39), and neutral (40).
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal

EMOTIONS: tuple[str, ...] = (
    "afraid", "angry", "annoyed", "anticipating", "anxious", "apprehensive", "ashamed", "caring",
    "confident", "content", "devastated", "disappointed", "disgusted", "embarrassed", "excited",
    "faithful", "furious", "grateful", "guilty", "hopeful", "impressed", "jealous", "joyful",
    "lonely", "nostalgic", "prepared", "proud", "sad", "sentimental", "surprised", "terrified",
    "trusting",
)  # fmt: skip

INTENTS: tuple[str, ...] = (
    "agreeing", "acknowledging", "encouraging", "consoling", "sympathizing", "suggesting",
    "questioning", "wishing",
)  # fmt: skip

INTENT_MEANINGS: dict[str, str] = {
    "agreeing": "shares your view",
    "acknowledging": "shows that it understood what you feel",
    "encouraging": "gives you heart to go on",
    "consoling": "comforts you, and hopes for better",
    "sympathizing": "feels with you, and says that it is sorry",
    "suggesting": "offers an idea of what you could do",
    "questioning": "asks about what happened",
    "wishing": "wishes you well, or congratulates you",
}
"""What a reply with each intent does, addressed to the person who reads it."""

NEUTRAL = "neutral"

LABELS: tuple[str, ...] = (*EMOTIONS, *INTENTS, NEUTRAL)
LABEL_ID: dict[str, int] = {name: index for index, name in enumerate(LABELS)}
EMOTION_ID: dict[str, int] = {name: index for index, name in enumerate(EMOTIONS)}

# MIME's Table 1. The paper split them by intuition: "anticipating" counts as negative there.
POSITIVE: frozenset[str] = frozenset(
    {
        "confident", "joyful", "grateful", "impressed", "proud", "excited", "trusting", "hopeful",
        "faithful", "prepared", "content", "surprised", "caring",
    }
)  # fmt: skip
NEGATIVE: frozenset[str] = frozenset(EMOTIONS) - POSITIVE

Polarity = Literal["positive", "negative"]


def polarity(emotion: str) -> Polarity:
    """Returns MIME's group for one of the 32 emotions."""
    if emotion not in EMOTION_ID:
        raise ValueError(unknown_name("emotion", emotion, EMOTIONS))
    return "positive" if emotion in POSITIVE else "negative"


def label_id(name: str) -> int:
    """Returns MEED2's id of an emotion, an intent or neutral."""
    if name not in LABEL_ID:
        raise ValueError(unknown_name("label", name, LABELS))
    return LABEL_ID[name]


FEW = 16
"""Lists of up to this many names are always shown in full."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Returns the message for an unknown name: a similar one, and all if there are few or none is similar."""
    known = list(known)
    near = near_name(name, known)
    if near is None:
        return f"unknown {kind} {name!r}; known: {', '.join(known)}"
    others = f" (known: {', '.join(known)})" if len(known) <= FEW else ""
    return f"unknown {kind} {name!r}; did you mean {near!r}?{others}"


def near_name(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name that was probably meant, ignoring case and treating _ as -."""
    spelled = {one.lower().replace("_", "-"): one for one in known}
    near = get_close_matches(name.strip().lower().replace("_", "-"), spelled, n=1, cutoff=0.6)
    return spelled[near[0]] if near else None


def with_near_name(name: str, known: Iterable[str]) -> str:
    """Returns an unknown name, with the name that was probably meant in brackets."""
    near = near_name(name, known)
    return f"{name} ({near}?)" if near else name
