"""listenwell: empathetic dialogue systems that talk, train, are measured and compared.

import listenwell
bot = listenwell.load("house")
reply = bot.reply(["I lost my job today"])
reply.text, reply.emotion, reply.label
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from listenwell.care import Cared
    from listenwell.dialogue import Dialogue, Turn
    from listenwell.finding import load
    from listenwell.models.contract import Controls
    from listenwell.reply import Reply
    from listenwell.system import Bot

__version__ = "0.1.0"
__all__ = ["Bot", "Cared", "Controls", "Dialogue", "Reply", "Turn", "load"]

# Imported when first asked for: `import listenwell` alone takes no second to bring up tensors.
_HOMES = {
    "Bot": "listenwell.system",
    "Cared": "listenwell.care",
    "Controls": "listenwell.models.contract",
    "Dialogue": "listenwell.dialogue",
    "Reply": "listenwell.reply",
    "Turn": "listenwell.dialogue",
    "load": "listenwell.finding",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'listenwell' has no attribute {name!r}")
