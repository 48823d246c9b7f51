"""The optimizers of a stage: which parameters each moves, at what rate, and which of them learns now."""

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


def learned(model: nn.Module, options: Optimizer) -> dict[str, nn.Parameter]:
    """The parameters that an optimizer moves, by name. What a model borrows is not its own to move."""
    borrowed = model.borrowed() if isinstance(model, Model) else frozenset()
    named = ((name, p) for name, p in model.named_parameters() if name not in borrowed)
    chosen = {name: p for name, p in named if _like(name, options.learns)}
    if not chosen:
        raise ConfigError(f"no parameter of the model is named like {', '.join(options.learns)}")
    for pattern in options.factors:
        if not any(fnmatch(name, pattern) for name in chosen):
            raise ConfigError(f"a rate's factor is given for {pattern}, but no parameter learned is named so")
    return chosen


def _like(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


class Learners:
    """A stage's optimizers by name. One at a time learns."""

    def __init__(self, model: nn.Module, options: dict[str, Optimizer]) -> None:
        self.model = model
        self.options = options
        self.optimizers = {name: self._make(chosen) for name, chosen in options.items()}
        self._now: str | None = None

    def _make(self, options: Optimizer) -> torch.optim.Optimizer:
        groups: dict[tuple[float, float], list[Tensor]] = {}
        for name, parameter in learned(self.model, options).items():
            factor = next((f for pattern, f in options.factors.items() if fnmatch(name, pattern)), 1.0)
            # Norms, biases and single vectors are not pulled towards zero.
            decay = options.decay if parameter.ndim > 1 else 0.0
            groups.setdefault((factor, decay), []).append(parameter)
        parameter_groups: list[dict[str, Any]] = [
            {"params": parameters, "weight_decay": decay, "factor": factor}
            for (factor, decay), parameters in groups.items()
        ]
        kind = torch.optim.AdamW if options.kind == "adamw" else torch.optim.Adam
        return kind(parameter_groups, lr=options.rate, betas=options.betas, eps=options.eps, fused=True)

    def let_learn(self, name: str) -> None:
        """Only what this optimizer moves collects gradients; they still flow through the rest.

        A module none of whose parameters learn does as in use: frozen weights with live dropout would be a
        noisy judge of what they judge.
        """
        if self._now == name:
            return
        chosen = learned(self.model, self.options[name])
        for key, parameter in self.model.named_parameters():
            parameter.requires_grad_(key in chosen)
        for module in self.model.modules():  # parents first; what has no parameters does as its parent does
            if parameters := list(module.parameters()):
                module.train(any(p.requires_grad for p in parameters))
        self._now = name

    def look_up(self) -> None:
        """After the model's modes were changed from outside: the next to learn sets them again."""
        self._now = None

    def step(self, name: str, rounds: int, progress: float) -> Tensor:
        """One step of one optimizer on the gradients at hand; returns their norm before clipping."""
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
        """Drops what was remembered of parameters that were set anew: their old moments would push them about."""
        patterns = list(names)
        renewed = {p for name, p in self.model.named_parameters() if _like(name, patterns)}
        for optimizer in self.optimizers.values():
            for parameter in renewed & set(optimizer.state):
                del optimizer.state[parameter]

    def rates(self) -> dict[str, float]:
        return {f"rate-{name}": optimizer.param_groups[0]["lr"] for name, optimizer in self.optimizers.items()}
