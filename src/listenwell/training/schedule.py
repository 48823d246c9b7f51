"""Learning-rate schedules as plain functions of a stage's progress."""

from __future__ import annotations

from listenwell.training.recipe import Optimizer


def rate(optimizer: Optimizer, step: int, progress: float) -> float:
    """The learning rate at this step. `progress` counts examples, so that decay does not depend on batch size."""
    rise = min(1.0, (step + 1) / max(1, optimizer.warmup))
    if optimizer.schedule == "linear":
        return optimizer.rate * rise * (optimizer.floor + (1 - optimizer.floor) * (1 - min(progress, 1.0)))
    if optimizer.schedule == "noam":
        warmup = max(1, optimizer.warmup)
        return optimizer.rate * min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5)
    return optimizer.rate * rise
