"""Care: signs of danger are heard before any model sees a message, and answered by fixed, humane words.

from listenwell.care import Cared, detect
detect("I want to die").kind
Cared(system).reply("I want to die")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from listenwell.care.replies import care_reply, is_care
from listenwell.care.resources import Line, Resources, load_resources
from listenwell.care.signs import Sign, detect

if TYPE_CHECKING:
    from listenwell.care.cared import Cared

__all__ = ["Cared", "Line", "Resources", "Sign", "care_reply", "detect", "is_care", "load_resources"]


def __getattr__(name: str) -> Any:
    if name == "Cared":  # brings up tensors; the detector alone does not
        from listenwell.care.cared import Cared

        return Cared
    raise AttributeError(f"module 'listenwell.care' has no attribute {name!r}")
