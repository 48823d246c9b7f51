"""Recomputes scores from what an evaluation stores, without a model: from its texts, or from its statistics.

So a number can be checked long after the weights are gone, and a change in a metric shows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from listenwell.data.dialogue import Example, Label, Turn
from listenwell.evaluation.store import StoredEvaluation
from listenwell.labels.taxonomy import LABEL_ID
from listenwell.metrics import registry
from listenwell.metrics.material import Material, UnavailableError

FROM_TEXTS = frozenset({"references", "contexts", "chosen labels", "likeliest labels", "reference labels"})
"""Inputs of metrics that are available from the stored replies."""

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Rescored:
    """A stored score and its recomputed value."""

    name: str
    kept: float
    again: float
    by: Literal["texts", "statistics"]

    @property
    def agrees(self) -> bool:
        return abs(self.kept - self.again) <= TOLERANCE * max(1.0, abs(self.kept))


def rescore(evaluation: StoredEvaluation) -> tuple[list[Rescored], list[str]]:
    """The scores that could be recomputed, and the names of the others."""
    kept = evaluation.scores
    wanted = [one for one in registry.known().values() if one.name in kept and set(one.needs) <= FROM_TEXTS]
    texts = {score.name: score for score in registry.run(wanted, _material(evaluation)).scores}
    done, left = [], []
    for name, score in kept.items():
        if name in texts:
            done.append(Rescored(name, score.value, texts[name].value, "texts"))
        elif score.statistics is not None:
            done.append(Rescored(name, score.value, score.statistics.value(), "statistics"))
        else:
            left.append(name)
    return done, left


def check(evaluations: Sequence[StoredEvaluation]) -> int:
    """Recompute scores and return their number; raises ValueError if one differs from what was stored."""
    number = 0
    for evaluation in evaluations:
        done, _ = rescore(evaluation)
        number += len(done)
        if wrong := [one for one in done if not one.agrees]:
            listed = ", ".join(f"{one.name} {one.again:g} instead of {one.kept:g}" for one in wrong)
            raise ValueError(
                f"{evaluation.place}: its replies do not give its scores ({listed}); "
                "remove the folder and run the command again"
            )
    return number


def _material(evaluation: StoredEvaluation) -> Material:
    records, language = evaluation.records, str(evaluation.about.get("language", "en"))
    items = [_item(record, language) for record in records]
    providers = {
        "chosen labels": lambda: _labels(records, "label"),
        "likeliest labels": lambda: _labels(records, "likeliest label"),
        "reference labels": lambda: _labels(records, "gold label", absent=True),
    }
    return Material([record["reply"] for record in records], items, providers, resamples=0)


def _item(record: dict[str, Any], language: str) -> Example:
    last = len(record["context"]) - 1
    turns = (
        Turn("speaker" if (last - place) % 2 == 0 else "listener", text) for place, text in enumerate(record["context"])
    )
    reply = None if record.get("reference") is None else Turn("listener", record["reference"])
    emotion = Label(record["gold emotion"]) if record.get("gold emotion") else None
    return Example(record["id"], tuple(turns), reply, emotion=emotion, language=language)


def _labels(records: Sequence[dict[str, Any]], key: str, absent: bool = False) -> np.ndarray:
    names = [record.get(key) for record in records]
    known = [name in LABEL_ID for name in names]
    if not any(known) or not (absent or all(known)):
        raise UnavailableError(f"the replies kept have no {key}")
    return np.array([LABEL_ID.get(name or "", -100) for name in names])
