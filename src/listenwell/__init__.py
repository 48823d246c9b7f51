"""listenwell: empathetic dialogue systems that talk, train, are measured and compared.

import listenwell
bot = listenwell.load("house")
reply = bot.reply(["I lost my job today"])
reply.text, reply.emotion, reply.label
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from listenwell.layers.cpu import let_waiting_threads_sleep

if TYPE_CHECKING:
    from listenwell.contract import Controls
    from listenwell.data.dialogue import Dialogue, Turn
    from listenwell.loading import load
    from listenwell.systems.bot import Bot
    from listenwell.systems.reply import Reply
    from listenwell.systems.safety import SafetyWrapper

__version__ = "0.1.0"
__all__ = ["Bot", "Controls", "Dialogue", "Reply", "SafetyWrapper", "Turn", "load"]

let_waiting_threads_sleep()  # must come before torch is imported

# Imported on first use: `import listenwell` alone stays fast.
_HOMES = {
    "Bot": "listenwell.systems.bot",
    "SafetyWrapper": "listenwell.systems.safety",
    "Controls": "listenwell.contract",
    "Dialogue": "listenwell.data.dialogue",
    "Reply": "listenwell.systems.reply",
    "Turn": "listenwell.data.dialogue",
    "load": "listenwell.loading",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'listenwell' has no attribute {name!r}")
