"""A linear classifier over character n-grams, for Chinese: is a message like those in which somebody was in danger?

There is no small Chinese encoder that ships with a package, as MiniLM does for English. Its weights are learned by
`chinese_learning`.
"""

from __future__ import annotations

import zlib
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

LONGEST = 4
"""Characters of an n-gram."""
BUCKETS = 1 << 16
"""N-grams share this many weights, by their hash."""


def ngram_buckets(text: str) -> list[int]:
    """The buckets of all n-grams of a normalised text, each n-gram once."""
    text = f"^{text}$"
    ngrams = {text[start : start + n] for n in range(1, LONGEST + 1) for start in range(len(text) - n + 1)}
    return sorted(zlib.crc32(ngram.encode()) % BUCKETS for ngram in ngrams)


class NgramClassifier:
    """Weighs a text; longer texts are scaled down."""

    def __init__(self, weights: np.ndarray, bias: float) -> None:
        self.weights, self.bias = weights.astype(np.float32), bias

    def odds(self, text: str) -> float:
        """Of a normalised text: the logarithm of how much likelier a sign is than none."""
        buckets = ngram_buckets(text)
        return float(self.weights[buckets].sum() / np.sqrt(len(buckets)) + self.bias)


def weights_file() -> Path:
    return Path(str(files("listenwell.systems.safety").joinpath("chinese.safetensors")))


@cache
def chinese_classifier() -> NgramClassifier:
    """Read once, when first asked for."""
    tensors = load_file(weights_file())
    return NgramClassifier(tensors["weights"], float(tensors["bias"][0]))
