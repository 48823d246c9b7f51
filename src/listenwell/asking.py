"""What a person may ask of a reply, by name."""

from __future__ import annotations

from typing import Any, TypedDict

from listenwell.taxonomy import label_id


class Asked(TypedDict, total=False):
    """The names that `asked` takes, for those who pass them on."""

    intent: str | None
    positivity: float | None
    situation: str | None


def asked(bot: Any, intent: str | None = None, positivity: float | None = None, situation: str | None = None) -> Any:
    """The controls that an intent, a positivity from 0 to 1 and a situation stand for; None if none is given.

    A name that is unknown, a number that is no share, or a system that would not heed them, is told.
    """
    from listenwell.models.contract import Controls

    if intent is None and positivity is None and situation is None:
        return None
    return Controls(
        label=None if intent is None else _intent(bot, intent),
        positivity=None if positivity is None else _positivity(bot, positivity),
        situation=situation,
    )


def lean(bot: Any, positivity: float | None) -> None:
    """Lets a system lean so far in all its replies, which its decoding then tells; its own way for None."""
    from dataclasses import replace

    if positivity is not None:
        leaning = replace(bot.decoding.lean, positivity=_positivity(bot, positivity))
        bot.decoding = replace(bot.decoding, lean=leaning)


def _intent(bot: Any, intent: str) -> str:
    name = intent.strip().lower()
    label_id(name)
    if not getattr(bot, "takes_label", False):
        raise ValueError(
            f"{bot.name} chooses no intent for its replies and cannot be asked for one; house and meed2 can"
        )
    return name


def _positivity(bot: Any, positivity: float) -> float:
    if not 0 <= positivity <= 1:
        raise ValueError(f"positivity is a number from 0 to 1, found {positivity}")
    if not getattr(bot, "takes_positivity", False):
        raise ValueError(f"{bot.name} does not lean towards a mood and cannot be asked to; house can")
    return positivity
