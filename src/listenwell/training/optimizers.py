"""The optimizers of a stage: which parameters each one updates, at what rate, and which one is active."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch
from typing import Any

import torch
from torch import Tensor, nn

from listenwell.configuration import ConfigError
from listenwell.contract import Model
from listenwell.training.recipe import Optimizer
from listenwell.training.schedule import rate


def trained_parameters(model: nn.Module, options: Optimizer) -> dict[str, nn.Parameter]:
    """The parameters that an optimizer updates, by name. Borrowed weights are excluded."""
    borrowed = model.borrowed() if isinstance(model, Model) else frozenset()
    named = ((name, p) for name, p in model.named_parameters() if name not in borrowed)
    chosen = {name: p for name, p in named if _like(name, options.learns)}
    if not chosen:
        raise ConfigError(f"no parameter of the model matches {', '.join(options.learns)}")
    for pattern in options.factors:
        if not any(fnmatch(name, pattern) for name in chosen):
            raise ConfigError(f"a rate factor is given for {pattern}, but no trained parameter has such a name")
    return chosen


def _like(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


class OptimizerSet:
    """A stage's optimizers by name. One is active at a time."""

    def __init__(self, model: nn.Module, options: dict[str, Optimizer]) -> None:
        self.model = model
        self.options = options
        self.optimizers = {name: self._make(chosen) for name, chosen in options.items()}
        self._active: str | None = None

    def _make(self, options: Optimizer) -> torch.optim.Optimizer:
        groups: dict[tuple[float, float], list[Tensor]] = {}
        for name, parameter in trained_parameters(self.model, options).items():
            factor = next((f for pattern, f in options.factors.items() if fnmatch(name, pattern)), 1.0)
            # No weight decay for norms, biases and other vectors.
            decay = options.decay if parameter.ndim > 1 else 0.0
            groups.setdefault((factor, decay), []).append(parameter)
        parameter_groups: list[dict[str, Any]] = [
            {"params": parameters, "weight_decay": decay, "factor": factor}
            for (factor, decay), parameters in groups.items()
        ]
        kind = torch.optim.AdamW if options.kind == "adamw" else torch.optim.Adam
        return kind(parameter_groups, lr=options.rate, betas=options.betas, eps=options.eps, fused=True)

    def activate(self, name: str) -> None:
        """Let only this optimizer's parameters accumulate gradients; gradients still flow through the others.

        Modules without trained parameters are set to eval mode, since dropout in frozen modules would only add noise.
        """
        if self._active == name:
            return
        chosen = trained_parameters(self.model, self.options[name])
        for key, parameter in self.model.named_parameters():
            parameter.requires_grad_(key in chosen)
        for module in self.model.modules():  # parents first; a module without parameters keeps its parent's mode
            if parameters := list(module.parameters()):
                module.train(any(p.requires_grad for p in parameters))
        self._active = name

    def reset_active(self) -> None:
        """Call this after changing train/eval modes elsewhere, so that the next `activate` sets them again."""
        self._active = None

    def step(self, name: str, rounds: int, progress: float) -> Tensor:
        """Take one step with one optimizer on the current gradients; returns their norm before clipping."""
        optimizer, options = self.optimizers[name], self.options[name]
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        norm = nn.utils.clip_grad_norm_(parameters, options.clip or float("inf"))
        if torch.isfinite(norm):
            for group in optimizer.param_groups:
                group["lr"] = rate(options, rounds, progress) * group["factor"]
            optimizer.step()
        self.model.zero_grad(set_to_none=True)
        return norm

    def forget(self, names: Iterable[str]) -> None:
        """Drop the optimizer state of parameters that were reset, since their old moments no longer apply."""
        patterns = list(names)
        renewed = {p for name, p in self.model.named_parameters() if _like(name, patterns)}
        for optimizer in self.optimizers.values():
            for parameter in renewed & set(optimizer.state):
                del optimizer.state[parameter]

    def rates(self) -> dict[str, float]:
        return {f"rate-{name}": optimizer.param_groups[0]["lr"] for name, optimizer in self.optimizers.items()}
