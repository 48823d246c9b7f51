"""What a run needs to resume as if it had never stopped, as safetensors and JSON."""

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
    """How far a run has come."""

    fingerprint: str
    """Of the recipe and its training split: a run with another one cannot be resumed from here."""
    stage: int = 0
    rounds: int = 0
    """Rounds of moves in this stage."""
    seen: int = 0
    """Examples of the stage's first stream."""
    update: int = 0
    """Optimizer steps in the whole run."""
    total_seen: int = 0
    """Examples in the whole run."""
    epochs_begun: int = 0
    """Epochs of the stage's first stream whose start was announced to the model."""
    validations: int = 0
    """In this stage."""
    best: float | None = None
    stale: int = 0
    """Validations since the best one."""
    seconds: float = 0.0
    """Spent training and validating."""
    cursors: dict[str, list[int]] = field(default_factory=dict)
    """Epoch and batch of every stream."""
    sums: dict[str, list[float]] = field(default_factory=dict)
    """Of the losses since they were last logged."""
    averaged: int = 0
    """Rounds of this stage whose weights are in their mean."""
    files: dict[str, str] = field(default_factory=dict)
    """Hashes of the data files that the run reads, by what they are; empty in runs of earlier versions."""
    finished: bool = False


MEAN = "mean of weights"
"""Before the names of parameters, among the tensors of a run."""


def write_state(
    folder: Path,
    state: RunState,
    optimizers: dict[str, torch.optim.Optimizer],
    random: list[Tensor],
    mean: Mapping[str, Tensor] | None = None,
) -> None:
    """`random` is the state of every process's generator, the main one's first; `mean` that of the weights, if any."""
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
    """The tensors of optimizers and random state."""
    path = folder / "training.safetensors"
    tensors = read_tensors(path)
    if "random" not in tensors:
        raise CheckpointError(f"{path}: the random state is missing")
    return tensors


def _random(process: int) -> str:
    return f"random/{process}" if process else "random"


def read_mean(folder: Path) -> dict[str, Tensor]:
    """The mean of the weights so far, by the names of the parameters; none where the run had not come to that."""
    tensors = read_training(folder).items()
    return {path.removeprefix(f"{MEAN}/"): value for path, value in tensors if path.startswith(f"{MEAN}/")}


def read_state(folder: Path, optimizers: dict[str, torch.optim.Optimizer], process: int = 0) -> None:
    """Puts optimizers and random state back. An optimizer that had not stepped yet has nothing to put back.

    A process that was not there when the run was saved keeps the random state it has.
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
