"""Care: detects signs of danger before any model sees a message, and answers them with fixed, humane words.

from listenwell.systems.safety import SafetyWrapper, detect
detect("I want to die").kind
SafetyWrapper(system).reply("I want to die")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from listenwell.systems.safety.detector import Sign, detect
from listenwell.systems.safety.replies import care_reply, help_lines, is_care
from listenwell.systems.safety.resources import Line, Resources, load_resources

if TYPE_CHECKING:
    from listenwell.systems.safety.wrapper import SafetyWrapper

__all__ = [
    "Line",
    "Resources",
    "SafetyWrapper",
    "Sign",
    "care_reply",
    "detect",
    "help_lines",
    "is_care",
    "load_resources",
]


def __getattr__(name: str) -> Any:
    if name == "SafetyWrapper":  # imports torch, which the detector alone does not
        from listenwell.systems.safety.wrapper import SafetyWrapper

        return SafetyWrapper
    raise AttributeError(f"module 'listenwell.systems.safety' has no attribute {name!r}")
