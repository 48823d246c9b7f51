"""Care in the server. It runs before the queue, so it answers at once no matter how many requests are waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from listenwell.contract import Controls
from listenwell.data.dialogue import Turn
from listenwell.layers.cpu import compute_with, cores
from listenwell.systems.base import as_context
from listenwell.systems.reply import Reply
from listenwell.systems.safety import Resources, SafetyWrapper
from listenwell.systems.safety.conversation import rules_speak
from listenwell.systems.safety.detector import Kind, LanguageCode
from listenwell.systems.safety.once import Memory, remembering
from listenwell.systems.safety.replies import care_given
from listenwell.systems.safety.resources import KINDS

THREADS = 8
"""Messages checked in parallel, and read by the classifier as one batch."""

URGENT_THREADS = 2
"""For messages in which the rules find a sign while others are waiting."""

TIERS = {"direct": "card", "asking": "question", "shorter": "card"}
"""What the page shows for each tier of care."""

EMERGENCY: dict[LanguageCode, str] = {"en": "In an emergency", "zh": "紧急情况"}


class CarePool:
    """Threads that run care, separate from the threads that write replies.

    The learned classifier takes far longer than the rules. When many messages are waiting, the rules check each one
    first, and a message in which they find a sign overtakes the others. The decisions are the same; only the order
    differs.
    """

    def __init__(self, threads: int = THREADS) -> None:
        self.threads = threads
        self.asked = 0
        """Conversations that care has not decided on yet."""
        self._pool = _pool(threads, "care")
        self._rules = _pool(1, "care-rules")
        self._urgent = _pool(URGENT_THREADS, "care-urgent")
        read_together()

    async def ask(self, wrapper: SafetyWrapper, turns: Sequence[Turn], controls: Controls | None) -> Reply | None:
        run = asyncio.get_running_loop().run_in_executor
        asked: _Asked = (wrapper, list(turns), controls, {})
        self.asked += 1
        try:
            if self.asked <= self.threads:
                return await run(self._pool, _care, *asked)
            urgent = await run(self._rules, _is_urgent, *asked)
            return await run(self._urgent if urgent else self._pool, _care, *asked)
        finally:
            self.asked -= 1

    def close(self) -> None:
        for pool in (self._rules, self._urgent, self._pool):
            pool.shutdown(wait=False, cancel_futures=True)


def _pool(threads: int, name: str) -> ThreadPoolExecutor:
    # Several batches run in parallel, each on one core: that wastes less than splitting small matrix products.
    return ThreadPoolExecutor(threads, name, initializer=compute_with, initargs=(1,))


_Asked = tuple[SafetyWrapper, list[Turn], Controls | None, Memory]
"""The arguments of a check, and the memory that the rules and the full check share."""


def _is_urgent(wrapper: SafetyWrapper, turns: list[Turn], controls: Controls | None, memory: Memory) -> bool:
    with remembering(memory):
        return rules_speak(as_context(turns, controls))


def _care(wrapper: SafetyWrapper, turns: list[Turn], controls: Controls | None, memory: Memory) -> Reply | None:
    with remembering(memory):
        return wrapper.care(turns, controls)


def read_together() -> None:
    """Make the crisis classifier, if there is one, batch the texts that several threads ask about at the same time."""
    from listenwell.serving.crisis_reading import EightBitReader, LikeLengthReader, ReadTogether, has_vnni
    from listenwell.systems.safety.classifier import english_classifier
    from listenwell.systems.safety.detector import rules

    classifier = english_classifier(rules("en").normal)
    if classifier is not None and not isinstance(classifier.read, ReadTogether):
        exact = LikeLengthReader(classifier.model.token_logits)
        classifier.rough = ReadTogether(EightBitReader(classifier), cores()) if has_vnni() else None
        classifier.read = ReadTogether(exact, cores())


def care_record(reply: Reply, resources: Resources) -> dict[str, Any]:
    """A reply of care as the API returns it: its kind, and the resources to turn to."""
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
    """Resources to turn to, the emergency number first; for all kinds of danger if `kind` is None."""
    lines = [line for line in resources.lines if kind is None or kind in line.kinds]
    return [
        {"name": EMERGENCY[language], "contact": resources.emergency[language], "note": ""},
        *({"name": line.name[language], "contact": line.contact[language], "note": ""} for line in lines),
    ]
