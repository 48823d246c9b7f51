"""Averages the weights over the last part of a stage. Each step follows a few examples; the mean evens them out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn


class Average:
    """The running mean of some of a model's parameters."""

    def __init__(self, model: nn.Module, names: Iterable[str], mean: Mapping[str, Tensor], count: int = 0) -> None:
        """`mean` and `count`: the mean so far and how many sets of weights are in it, to resume from."""
        wanted = set(names)
        self.parameters = {name: p for name, p in model.named_parameters() if name in wanted}
        self.mean = {name: mean[name].to(p.device) for name, p in self.parameters.items() if name in mean}
        self.count = count

    @torch.no_grad()
    def add(self) -> None:
        """Add the current weights to the mean."""
        self.count += 1
        for name, parameter in self.parameters.items():
            if self.count == 1:
                self.mean[name] = parameter.detach().clone()
            else:
                self.mean[name].lerp_(parameter, 1 / self.count)

    @torch.no_grad()
    def put(self) -> None:
        """Set the model's weights to the mean."""
        for name, parameter in self.parameters.items():
            parameter.copy_(self.mean[name])
