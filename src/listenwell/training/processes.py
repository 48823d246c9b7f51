"""Distributed training: one process, or as many as `accelerate launch` started, on one or several machines.

A recipe's batch is split among the processes, and every loss is divided by its count over all of them. So the same
recipe takes the same steps on any number of processes, except for dropout noise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.utils import DistributedType, broadcast, broadcast_object_list, gather_object
from torch import Tensor, nn

from listenwell.configuration import ConfigError
from listenwell.contract import LENGTH_STEP, Batch, Term
from listenwell.training.signals import ignore_termination

Precision = Literal["float32", "bf16"]

LOST = ("connection closed", "connection reset", "broken pipe", "timed out", "timeout", "gloo", "nccl", "peer")
"""Parts of the error messages of the underlying libraries when another process does not respond."""


class TrainingError(RuntimeError):
    """Training cannot continue; the message says where it stopped and why."""


def is_main() -> bool:
    """Whether this is the main process; works before the process group is set up."""
    return int(os.environ.get("RANK", "0")) == 0


class Processes:
    """This process and the others it trains with."""

    def __init__(self, precision: Precision | None = None, device: Literal["auto", "cpu"] = "auto") -> None:
        # The parameters in use differ from move to move: adversaries take turns, parts are frozen.
        distributed = DistributedDataParallelKwargs(find_unused_parameters=True, broadcast_buffers=False)
        self._accelerator = Accelerator(cpu=device == "cpu", mixed_precision="no", kwargs_handlers=[distributed])
        kind = self._accelerator.distributed_type
        if kind not in (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU):
            raise ConfigError(
                f"accelerate is configured for {kind.value}, expected MULTI_CPU or MULTI_GPU: every process holds the "
                "whole model and a share of the batch. Say so with `accelerate config`, or launch with --multi_gpu"
            )
        self.precision = precision or _launched_precision()

    @property
    def count(self) -> int:
        return self._accelerator.num_processes

    @property
    def index(self) -> int:
        return self._accelerator.process_index

    @property
    def main(self) -> bool:
        return self._accelerator.is_main_process

    @property
    def device(self) -> torch.device:
        return self._accelerator.device

    def wrap(self, model: nn.Module) -> nn.Module:
        """Move the model to its device and wrap it so that gradients are averaged over the processes."""
        return self._accelerator.prepare_model(model)

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    @property
    def length_step(self) -> int:
        """Pad batches to a multiple of this length for speed."""
        return LENGTH_STEP if self.precision == "bf16" and self.device.type == "cpu" else 1

    def share(self, batch: Batch) -> tuple[Batch, bool]:
        """This process's rows of a batch, and whether they count: if there are fewer rows than processes, some get a
        dummy row."""
        if self.count == 1:
            return batch, True
        rows = torch.arange(self.index, len(batch), self.count)
        return batch.select(rows if len(rows) else torch.zeros(1, dtype=torch.long)), len(rows) > 0

    def sum_terms(self, terms: dict[str, Term]) -> dict[str, Term]:
        """Sum the terms over all processes, without gradient."""
        if self.count == 1:
            return terms
        rows = [
            torch.stack([value.detach().double().to(self.device) for value in (term.total, _shown(term))])
            for term in terms.values()
        ]
        counts = torch.tensor([term.count for term in terms.values()], dtype=torch.float64, device=self.device)
        with self._detect_lost_process():
            summed = self._accelerator.reduce(torch.cat([torch.stack(rows), counts[:, None]], dim=1), "sum")
        return {
            name: Term(total, float(count), shown, term.learned)
            for (name, term), (total, shown, count) in zip(terms.items(), summed, strict=True)
        }

    def any(self, *flags: bool) -> list[bool]:
        """A logical OR of each flag over all processes, so that all of them act alike."""
        if self.count == 1:
            return list(flags)
        with self._detect_lost_process():
            summed = self._accelerator.reduce(torch.tensor(flags, dtype=torch.float32, device=self.device), "sum")
        return [bool(value) for value in summed > 0]

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes, in order."""
        if self.count == 1:
            return [value]
        with self._detect_lost_process():
            return gather_object([value])

    def from_main(self, value: Any) -> Any:
        """The main process's value."""
        if self.count == 1:
            return value
        with self._detect_lost_process():
            return broadcast_object_list([value])[0]

    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Set parameters or buffers in all processes to the main process's values."""
        if self.count == 1:
            return
        with self._detect_lost_process(), torch.no_grad():
            for value in tensors.values():
                sent = value.to(torch.uint8) if value.dtype == torch.bool else value.clone()  # some cannot send bools
                value.copy_(broadcast(sent))

    def wait(self) -> None:
        with self._detect_lost_process():
            self._accelerator.wait_for_everyone()

    def end(self) -> None:
        """Shut down the process group once all processes are done. One that simply exited could be killed by its own
        threads and look as if it had failed."""
        if self.count > 1:
            self.wait()
            self._accelerator.state.destroy_process_group()

    def backward(self, loss: Tensor) -> None:
        with self._detect_lost_process():
            loss.backward()

    @contextmanager
    def _detect_lost_process(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as problem:
            if self.count > 1 and any(sign in str(problem).lower() for sign in LOST):
                ignore_termination()
                raise TrainingError(
                    f"another of the {self.count} processes does not answer: it was stopped or its machine was lost. "
                    "The last checkpoint is whole; launch again with --resume"
                ) from problem
            raise


def _shown(term: Term) -> Tensor:
    return term.total if term.plain is None else term.plain


def _launched_precision() -> Precision:
    """The precision set by `accelerate launch --mixed_precision`."""
    precision = os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
    if precision not in ("no", "bf16"):
        raise ConfigError(f"accelerate is configured for {precision}, expected bf16 or no")
    return "bf16" if precision == "bf16" else "float32"
