"""What a person may ask of a reply on the command line."""

from __future__ import annotations

from typing import Any

from listenwell.taxonomy import label_id


def asked(bot: Any, intent: str | None) -> Any:
    """The controls that an intent stands for; a name that is unknown, or a system that would not heed it, is told."""
    from listenwell.models.contract import Controls

    if intent is None:
        return None
    name = intent.strip().lower()
    label_id(name)
    if not getattr(bot, "takes_label", False):
        raise ValueError(f"{bot.name} chooses no intent for its replies and cannot be asked for one; meed2 can")
    return Controls(label=name)
