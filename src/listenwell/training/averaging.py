"""The mean of the weights over the last part of a stage. Every step follows a few examples; their mean follows none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn


class Average:
    """The running mean of some of a model's parameters."""

    def __init__(self, model: nn.Module, names: Iterable[str], mean: Mapping[str, Tensor], count: int = 0) -> None:
        """Goes on from the mean of `count` times, where there were any."""
        wanted = set(names)
        self.parameters = {name: p for name, p in model.named_parameters() if name in wanted}
        self.mean = {name: mean[name].to(p.device) for name, p in self.parameters.items() if name in mean}
        self.count = count

    @torch.no_grad()
    def add(self) -> None:
        """Takes the weights as they are now into the mean."""
        self.count += 1
        for name, parameter in self.parameters.items():
            if self.count == 1:
                self.mean[name] = parameter.detach().clone()
            else:
                self.mean[name].lerp_(parameter, 1 / self.count)

    @torch.no_grad()
    def put(self) -> None:
        """Gives the model the mean for its weights."""
        for name, parameter in self.parameters.items():
            parameter.copy_(self.mean[name])
