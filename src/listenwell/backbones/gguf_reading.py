"""Reads a GGUF file with the `gguf` package: its metadata, and its tensors as float32."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[Any]]

DAMAGED = (ValueError, IndexError, KeyError, OverflowError, MemoryError)
"""What the package may raise, depending on where a file is damaged."""


class GgufError(ValueError):
    """Not a GGUF file, or one with unsupported content."""


class GgufFile:
    """`metadata` by key; `names` of the tensors; `tensors()` iterates over the weights."""

    def __init__(self, path: Path) -> None:
        gguf = _gguf()
        self.path = path
        try:
            # Memory-mapped: the weights are most of the file, and are needed one at a time.
            reader = gguf.GGUFReader(path)
            self.metadata: dict[str, Any] = {key: field.contents() for key, field in reader.fields.items()}
        except DAMAGED as problem:
            raise GgufError(f"{path}: not a GGUF file that can be read, or damaged: {problem}") from problem
        self.names = [tensor.name for tensor in reader.tensors]
        self._tensors, self._dequantize = reader.tensors, gguf.dequantize

    def tensors(self) -> Iterator[tuple[str, Values]]:
        for tensor in self._tensors:
            try:
                yield tensor.name, np.asarray(self._dequantize(tensor.data, tensor.tensor_type))
            except NotImplementedError as problem:
                raise GgufError(f"{self.path}: {tensor.name} cannot be read: {problem}") from problem


def _gguf() -> Any:
    try:
        import gguf
    except ImportError as problem:
        raise ImportError("a packed language model (GGUF) needs gguf: pip install 'listenwell[house]'") from problem
    return gguf
