"""The state a run needs to resume as if it had never stopped, as safetensors and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from listenwell.checkpoint import CheckpointError, read_json, read_tensors, write_json, write_tensors


@dataclass
class RunState:
    """The progress of a run."""

    fingerprint: str
    """A hash of the recipe and its training split: only a run with the same one can resume from here."""
    stage: int = 0
    rounds: int = 0
    """Rounds of moves so far in this stage."""
    seen: int = 0
    """Examples seen in this stage, counting only its first stream."""
    update: int = 0
    """Moves made in the whole run, each on one batch."""
    total_seen: int = 0
    """Examples seen in the whole run, in all streams."""
    epochs_begun: int = 0
    """Epochs of the stage's first stream for which `on_epoch_start` was called."""
    validations: int = 0
    """Validations in this stage."""
    best: float | None = None
    stale: int = 0
    """Validations since the best one."""
    seconds: float = 0.0
    """Time spent on training and validation."""
    cursors: dict[str, list[int]] = field(default_factory=dict)
    """The epoch and batch of every stream."""
    sums: dict[str, list[float]] = field(default_factory=dict)
    """Sums of the losses since they were last logged."""
    averaged: int = 0
    """Number of rounds in this stage's weight average."""
    files: dict[str, str] = field(default_factory=dict)
    """Hashes of the data files that the run reads, keyed by what they are; empty in runs of earlier versions."""
    finished: bool = False


MEAN = "mean of weights"
"""Prefix of the averaged parameters among the saved tensors."""


def write_state(
    folder: Path,
    state: RunState,
    optimizers: dict[str, torch.optim.Optimizer],
    random: list[Tensor],
    mean: Mapping[str, Tensor] | None = None,
) -> None:
    """`random` holds the generator state of every process, the main one first; `mean` the averaged weights, if any."""
    tensors = {_random(index): generator for index, generator in enumerate(random)}
    tensors |= {f"{MEAN}/{name}": value.contiguous() for name, value in (mean or {}).items()}
    for name, optimizer in optimizers.items():
        for index, moments in optimizer.state_dict()["state"].items():
            for key, value in moments.items():
                tensors[f"{name}/{index}/{key}"] = value.detach().contiguous()
    write_tensors(folder / "training.safetensors", tensors)
    write_json(folder / "training.json", asdict(state))


def read_run_state(folder: Path) -> RunState:
    record = read_json(folder / "training.json")
    try:
        return RunState(**record)
    except TypeError as problem:
        raise CheckpointError(f"{folder}/training.json: not written by this version ({problem})") from problem


def read_training(folder: Path) -> dict[str, Tensor]:
    """The saved tensors: optimizer states, random states and averaged weights."""
    path = folder / "training.safetensors"
    tensors = read_tensors(path)
    if "random" not in tensors:
        raise CheckpointError(f"{path}: the random state is missing")
    return tensors


def _random(process: int) -> str:
    return f"random/{process}" if process else "random"


def read_mean(folder: Path) -> dict[str, Tensor]:
    """The averaged weights so far, by parameter name; empty if averaging had not started."""
    tensors = read_training(folder).items()
    return {path.removeprefix(f"{MEAN}/"): value for path, value in tensors if path.startswith(f"{MEAN}/")}


def read_state(folder: Path, optimizers: dict[str, torch.optim.Optimizer], process: int = 0) -> None:
    """Restore the optimizers and the random state. An optimizer that had not stepped yet has no state.

    A process that did not exist when the run was saved keeps its current random state.
    """
    tensors = read_training(folder)
    states: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in optimizers}
    for path, value in tensors.items():
        if path.split("/")[0] in ("random", MEAN):
            continue
        name, index, key = path.rsplit("/", 2)
        if name not in states:
            raise CheckpointError(f"{folder}/training.safetensors: an optimizer {name!r} that the recipe does not have")
        states[name].setdefault(int(index), {})[key] = value
    for name, optimizer in optimizers.items():
        whole = optimizer.state_dict()
        whole["state"] = states[name]
        optimizer.load_state_dict(whole)
    if _random(process) in tensors:
        torch.set_rng_state(tensors[_random(process)])
