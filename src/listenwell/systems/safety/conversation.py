from __future__ import annotations

from collections.abc import Sequence

RECENT = 4


def joined(messages: Sequence[str]) -> str:
    return " ".join(text if text[-1:] in ".!?…" else f"{text}." for text in map(str.strip, messages) if text)
