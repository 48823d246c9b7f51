"""Calibrates the emotion predictions of the house system's writer on dialogues with gold emotions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

import numpy as np

from listenwell.checkpoint import Checkpoint
from listenwell.classifiers.calibration import Calibration, fit_head
from listenwell.data.batching import Targets
from listenwell.data.dialogue import Example
from listenwell.systems.house.writer import HouseWriter

CHUNK = 256
"""Number of dialogues that a writer reads at a time."""


def calibrate_writer(
    ckpt: Checkpoint, items: Sequence[Example], done: Callable[[int], None] | None = None
) -> dict[str, Calibration]:
    """Fits the temperature of a writer's emotion head on dialogues with gold emotions."""
    voice = HouseWriter(ckpt)
    targets = Targets(emotions=voice.model.emotions)
    gold = np.array([targets.emotion(item) for item in items])
    voice.model.emotion.temperature.fill_(1.0)
    log_probs = []
    for begin in range(0, len(items), CHUNK):
        log_probs.append(voice.feel(items[begin : begin + CHUNK]))
        if done is not None:
            done(len(log_probs[-1]))
    calibration = fit_head(voice.model.emotion, np.concatenate(log_probs), gold) if log_probs else None
    if calibration is None:
        raise ValueError("there is nothing to calibrate by: no dialogue has an emotion")
    ckpt.meta["calibration"] = {"emotion": asdict(calibration)}
    return {"emotion": calibration}
