"""A linear classifier for Chinese: is a message like those in which somebody was in danger?

Its features are character n-grams, the concepts that a message mentions (`chinese_concepts.yaml`), and pairs of
concepts in the message and in one sentence: "药", "攒" and "今晚" together say what no n-gram says. The weights are
trained by `chinese_learning`; `chinese_classifier` combines this classifier with a small encoder.
"""

from __future__ import annotations

import math
import re
import zlib
from functools import cache
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import numpy as np
import yaml
from safetensors.numpy import load_file

LONGEST = 4
"""Maximum number of characters in an n-gram."""
BUCKETS = 1 << 16
"""Number of weights that n-grams share by hashing."""
MOST = 400
"""Number of characters of a text that are read."""
NGRAM_SCALE, PAIR_SCALE = 6.0, 3.0
"""The weight of a text's n-grams, and of its pairs of concepts, relative to the concepts: the norm of each."""


@cache
def concepts() -> tuple[re.Pattern[str], ...]:
    text = files("listenwell.systems.safety").joinpath("chinese_concepts.yaml").read_text(encoding="utf-8")
    return tuple(re.compile(pattern) for pattern in yaml.safe_load(text).values())


def size() -> int:
    """Returns the number of weights: n-grams, concepts, pairs in a text, pairs in a sentence."""
    count = len(concepts())
    return BUCKETS + count + 2 * count * count


def ngram_buckets(text: str) -> list[int]:
    """Returns the buckets of all n-grams of a normalised text, each bucket once."""
    text = f"^{text}$"
    ngrams = {text[start : start + n] for n in range(1, LONGEST + 1) for start in range(len(text) - n + 1)}
    return sorted({zlib.crc32(ngram.encode()) % BUCKETS for ngram in ngrams})


def concepts_in(text: str) -> list[int]:
    """Returns the indices in `concepts` of those that a normalised text mentions."""
    return [place for place, concept in enumerate(concepts()) if concept.search(text)]


def concept_pairs(text: str, places: list[int]) -> list[int]:
    """Returns the weight indices of the pairs among these concepts, in the text and within a sentence."""
    count = len(concepts())
    pairs = {first * count + second for first, second in combinations(places, 2)}
    close: set[int] = set()
    for sentence in text.split("。"):
        here = [place for place in places if concepts()[place].search(sentence)]
        close |= {count * count + first * count + second for first, second in combinations(here, 2)}
    return sorted(BUCKETS + count + pair for pair in pairs | close)


def features(text: str) -> tuple[list[int], list[float]]:
    """Returns the indices of the weights that a normalised text uses, and the amount of each."""
    text = text.strip("，。")[:MOST]  # the ending of a message only tells which corpus it is from
    ngrams, places = ngram_buckets(text), concepts_in(text)
    pairs = concept_pairs(text, places)
    parts = (
        (ngrams, NGRAM_SCALE / math.sqrt(len(ngrams))),
        ([BUCKETS + place for place in places], 1.0),
        (pairs, PAIR_SCALE / math.sqrt(len(pairs) + len(places) or 1)),
    )
    return [one for weights, _ in parts for one in weights], [scale for weights, scale in parts for _ in weights]


class NgramClassifier:
    """A linear classifier; longer texts are scaled down."""

    def __init__(self, weights: np.ndarray, bias: float) -> None:
        self.weights, self.bias = weights.astype(np.float32), bias

    def odds(self, text: str) -> float:
        """Returns the log-odds of a sign against none for a normalised text."""
        used, amounts = features(text)
        return float(self.weights[used] @ np.array(amounts, dtype=np.float32) + self.bias)


def weights_file() -> Path:
    return Path(str(files("listenwell.systems.safety").joinpath("chinese.safetensors")))


@cache
def ngram_classifier() -> NgramClassifier:
    """Returns the classifier, which is loaded on first use."""
    tensors = load_file(weights_file())
    return NgramClassifier(tensors["weights"], float(tensors["bias"][0]))
