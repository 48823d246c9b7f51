"""Options that can be requested for a reply by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar, cast

from listenwell.labels.taxonomy import unknown_name
from listenwell.systems.capabilities import Capabilities

if TYPE_CHECKING:
    from listenwell.contract import Controls, Direction
    from listenwell.systems.house.options import Lean, Rerank


class DecodingOptions(TypedDict, total=False):
    """Decoding options for one reply: those of `Decoding`. The system's own values apply for options not given."""

    method: Literal["greedy", "sample", "beam"]
    max_length: int
    min_length: int
    temperature: float
    top_k: int
    top_p: float
    beams: int
    length_penalty: float
    early: bool
    block_ngrams: int
    guidance: float
    candidates: int
    seed: int
    rerank: Rerank | Mapping[str, float]
    lean: Lean | Mapping[str, float]
    plans: int
    pairs: int
    turns: int


class ReplyOptions(DecodingOptions, total=False):
    """All options that can be requested for a reply by name."""

    intent: str | None
    positivity: float | None
    situation: str | None
    direction: Direction


OF_CONTROLS = ("intent", "positivity", "situation")
METHOD_OF = {"temperature": "sample", "top_k": "sample", "top_p": "sample", "beams": "beam"}
"""The method that an option implies if no method is given."""


class Named(Protocol):
    """Any system. What else it can do is declared by attributes."""

    name: str


S = TypeVar("S", bound=Named)


def for_this_call(system: S, controls: Controls | None, named: Mapping[str, Any]) -> tuple[S, Controls | None]:
    """Returns the system and the controls for one call. The given system is not changed."""
    from listenwell.contract import Controls

    if controls is not None and not isinstance(controls, Controls):
        raise TypeError(f"controls are {controls!r}, expected Controls; or ask by name, such as intent='consoling'")
    for name in named:
        if name not in ReplyOptions.__annotations__:
            raise TypeError(unknown_name("option of a reply", name, ReplyOptions.__annotations__))
    request = {name: value for name, value in named.items() if name in OF_CONTROLS}
    requested = controls_from_request(system, **request)
    if requested is not None and controls is not None:
        raise ValueError(f"{', '.join(request)}: ask by name or by controls, not both")
    if "direction" in named:
        check_direction(system, named["direction"])
    changes = {name: value for name, value in named.items() if name not in (*OF_CONTROLS, "direction")}
    return _with_decoding(system, changes) if changes else system, requested or controls


def check_direction(system: Named, direction: str) -> None:
    """Raises ValueError if the system cannot write in a direction, naming models that can."""
    from typing import get_args

    from listenwell.contract import Direction
    from listenwell.models import writing

    if direction not in get_args(Direction):
        raise ValueError(unknown_name("direction", str(direction), get_args(Direction)))
    if direction not in Capabilities.of(system).directions:
        others = ", ".join(writing(direction)) or "none of the models here"
        raise ValueError(f"{system.name} does not write {direction}, from a reply to what it answers; {others} can")


def _with_decoding(system: S, changes: dict[str, Any]) -> S:
    """Returns a copy of the system with these decoding options."""
    if not Capabilities.of(system).can_change_decoding:
        raise ValueError(f"{system.name} writes in one way alone and cannot be given {', '.join(changes)}")
    implied = next((METHOD_OF[name] for name in changes if name in METHOD_OF), None)
    if implied and "method" not in changes:
        changes = {**changes, "method": implied}
    changed: S = cast("Any", system).with_decoding(**changes)
    return changed


def controls_from_request(
    bot: Any, intent: str | None = None, positivity: float | None = None, situation: str | None = None
) -> Any:
    """Returns the controls for an intent, a positivity from 0 to 1 and a situation; None if none of them is given.

    An unknown name, a number out of range, or a system that would ignore the control is an error.
    """
    from listenwell.contract import Controls

    if intent is None and positivity is None and situation is None:
        return None
    return Controls(
        label=None if intent is None else _intent(bot, intent),
        positivity=None if positivity is None else _positivity(bot, positivity),
        situation=None if situation is None else _situation(situation),
    )


def lean(bot: Any, positivity: float | None) -> None:
    """Sets how far a system leans in all its replies, as part of its decoding; None leaves it unchanged."""
    from dataclasses import replace

    if positivity is not None:
        wanted = _positivity(bot, positivity)  # raises if the system's decoding has no lean
        bot.decoding = replace(bot.decoding, lean=replace(bot.decoding.lean, positivity=wanted))


def _intent(bot: Any, intent: str) -> str:
    if not isinstance(intent, str):
        raise TypeError(f"intent is {intent!r}, expected the name of a label, such as 'consoling'")
    name = intent.strip().lower()
    capabilities = Capabilities.of(bot)
    capabilities.label_set.id_of(name)
    if not capabilities.takes_label:
        raise ValueError(f"{bot.name} does not take an intent; house and meed2 do")
    return name


def _positivity(bot: Any, positivity: float) -> float:
    from listenwell.systems.house.options import check_positivity

    check_positivity(positivity)
    if not Capabilities.of(bot).takes_positivity:
        raise ValueError(f"{bot.name} does not take a positivity; house does")
    return positivity


def _situation(situation: str) -> str:
    if not isinstance(situation, str):
        raise TypeError(f"situation is {situation!r}, expected a text")
    return situation
