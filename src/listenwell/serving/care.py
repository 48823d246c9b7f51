"""Care in the server: asked before the queue, so that it answers at once however many wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from listenwell.contract import Controls
from listenwell.data.dialogue import Turn
from listenwell.systems.reply import Reply
from listenwell.systems.safety import Resources, SafetyWrapper
from listenwell.systems.safety.detector import Kind, LanguageCode
from listenwell.systems.safety.replies import care_given
from listenwell.systems.safety.resources import KINDS

if TYPE_CHECKING:
    from torch import Tensor

    from listenwell.systems.safety.classifier import CrisisClassifier, Read

THREADS = 4
"""Messages that are looked at beside each other. To read them is work for the processor, so that more gain nothing."""

MARGIN = 0.5
"""How far below every threshold, in log-odds, half precision is trusted."""

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
    """Lets the crisis classifier, where there is one, read what several threads ask at the same time as one batch.

    Where the processor has products in bfloat16, it reads in these first: see `ReadTwice`.
    """
    from listenwell.systems.safety.classifier import english_classifier
    from listenwell.systems.safety.detector import rules

    classifier = english_classifier(rules("en").normal)
    if classifier is not None and not isinstance(classifier.read, ReadTogether):
        classifier.read = ReadTogether(ReadTwice(classifier) if has_bf16() else classifier.read)


def has_bf16() -> bool:
    """Whether the processor multiplies bfloat16 faster than float32."""
    import torch

    return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)())


class ReadTwice:
    """Reads in half precision, and again in full what may be a sign.

    The decisions are those of full precision. No threshold of the classifier lies below BACKED, and half precision is
    wrong by some hundredths: what it finds further below than MARGIN is below all thresholds in full precision too.
    """

    def __init__(self, classifier: CrisisClassifier) -> None:
        import torch

        self.classifier = classifier
        self.precise = classifier.read
        self.encoder = deepcopy(classifier.encoder).to(torch.bfloat16)

    def __call__(self, parts: set[tuple[int, ...]]) -> dict[tuple[int, ...], Tensor]:
        from listenwell.systems.safety.classifier import AT_ONCE, log_odds, padded
        from listenwell.systems.safety.detector import BACKED

        found: dict[tuple[int, ...], Tensor] = {}
        ordered = sorted(parts, key=len)
        for begin in range(0, len(ordered), AT_ONCE):
            some = ordered[begin : begin + AT_ONCE]
            tokens, mask = padded(some)
            rows = self.encoder(self.classifier.embed(tokens).bfloat16(), mask).float().log_softmax(-1)
            found |= dict(zip(some, rows, strict=True))
        unsure = {part for part, row in found.items() if not log_odds(row) < BACKED - MARGIN}
        return found | self.precise(unsure) if unsure else found


@dataclass(eq=False, slots=True)
class _Question:
    parts: set[tuple[int, ...]]
    answer: dict[tuple[int, ...], Tensor] | None = None


class ReadTogether:
    """A reader for many threads: while one batch is read, others gather for the next."""

    def __init__(self, read: Read) -> None:
        self.read = read
        self._waiting: list[_Question] = []
        self._adding, self._reading = threading.Lock(), threading.Lock()

    def __call__(self, parts: set[tuple[int, ...]]) -> dict[tuple[int, ...], Tensor]:
        own = _Question(parts)
        with self._adding:
            self._waiting.append(own)
        with self._reading:
            if own.answer is None:  # else it was read with another's
                self._read_waiting()
        return self.read(parts) if own.answer is None else own.answer

    def _read_waiting(self) -> None:
        with self._adding:
            some, self._waiting = self._waiting, []
        answers = self.read(set().union(*(one.parts for one in some)))
        for one in some:
            one.answer = {part: answers[part] for part in one.parts}


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
