"""Care in the server: asked before the queue, so that it answers at once however many wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from listenwell.contract import Controls
from listenwell.data.dialogue import Turn
from listenwell.systems.reply import Reply
from listenwell.systems.safety import Resources, SafetyWrapper
from listenwell.systems.safety.detector import Kind, LanguageCode
from listenwell.systems.safety.replies import care_given
from listenwell.systems.safety.resources import KINDS

THREADS = 8
"""Messages that are looked at beside each other, and read together."""

TIERS = {"direct": "card", "asking": "question", "shorter": "card"}
"""What the page shows for each text of care."""

EMERGENCY: dict[LanguageCode, str] = {"en": "In an emergency", "zh": "紧急情况"}


class CarePool:
    """Threads that ask care, apart from those that write."""

    def __init__(self, threads: int = THREADS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="care")
        read_together()

    async def ask(self, wrapper: SafetyWrapper, turns: Sequence[Turn], controls: Controls | None) -> Reply | None:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, wrapper.care, list(turns), controls)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def read_together() -> None:
    """Lets the crisis classifier, where there is one, read what several threads ask at the same time as one batch."""
    from listenwell.serving.crisis_reading import ReadTogether, ReadTwice, has_bf16
    from listenwell.systems.safety.classifier import english_classifier
    from listenwell.systems.safety.detector import rules

    classifier = english_classifier(rules("en").normal)
    if classifier is not None and not isinstance(classifier.read, ReadTogether):
        classifier.read = ReadTogether(ReadTwice(classifier) if has_bf16() else classifier.read)


def care_record(reply: Reply, resources: Resources) -> dict[str, Any]:
    """A reply of care as the API tells it: what it is, and whom to turn to."""
    reason = str(reply.reasons.get("care", ""))
    if reason.startswith("language:"):
        return {"kind": "language", "sign": None, "language": reason.partition(": ")[2], "resources": []}
    given = care_given(reply.text)
    if given is not None:
        lines = resource_list(resources, given.language, given.kind)
        return {"kind": TIERS[given.tier], "sign": given.kind, "language": given.language, "resources": lines}
    sign = next((kind for kind in KINDS if reason.startswith(kind)), None)
    return {"kind": "card", "sign": sign, "language": "other", "resources": resource_list(resources, "en", sign)}


def resource_list(resources: Resources, language: LanguageCode, kind: Kind | None = None) -> list[dict[str, str]]:
    """Whom to turn to, the emergency number first; of all kinds of danger if none is given."""
    lines = [line for line in resources.lines if kind is None or kind in line.kinds]
    return [
        {"name": EMERGENCY[language], "contact": resources.emergency[language], "note": ""},
        *({"name": line.name[language], "contact": line.contact[language], "note": ""} for line in lines),
    ]
