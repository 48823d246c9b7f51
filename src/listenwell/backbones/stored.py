"""Weights in a safetensors file, read one at a time, so that the whole model need not be in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

FILE = "model.safetensors"


class StoredWeights(Mapping[str, Tensor]):
    """Weights by name. The file is reopened for each one, so that pages read before do not stay in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with safe_open(path, "pt") as file:
            self._shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118

    @classmethod
    def find(cls, folder: Path) -> StoredWeights | None:
        """The weights in a pretrained model's folder; None if they are in several files or another format."""
        try:
            return cls(folder / FILE) if (folder / FILE).is_file() else None
        except (SafetensorError, OSError):
            return None

    def only(self, names: Iterable[str]) -> StoredWeights:
        """Only the weights with these names, as far as the file has them."""
        fewer = copy(self)
        fewer._shapes = {name: self._shapes[name] for name in names if name in self._shapes}
        return fewer

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._shapes:
            raise KeyError(name)
        with safe_open(self.path, "pt") as file:
            return file.get_tensor(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)


def mapped_weights(folder: Path, names: Collection[str]) -> dict[str, Tensor] | None:
    """These weights of a pretrained model's folder, memory-mapped, so that all processes share the file's pages.

    None if the file does not have all of them in float32: converting them would make a copy.
    """
    if not (folder / FILE).is_file():
        return None
    try:
        with safe_open(folder / FILE, "pt") as file:
            if not set(names) <= set(file.keys()):
                return None
            weights = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError):
        return None
    return weights if all(weight.dtype == torch.float32 for weight in weights.values()) else None
