"""Similarity of the words of replies and references by word vectors: three metrics, as in nlg-eval.

A word without a vector gets the mean of all vectors. Words are those of `listenwell.text.words`, not nltk's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from listenwell.configuration import ConfigError
from listenwell.data.sources import data_roots
from listenwell.metrics.bootstrap import RESAMPLES, SEED, same_length, score_with_interval
from listenwell.metrics.material import Material, UnavailableError
from listenwell.metrics.overlap import Words, check_words
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Array, Statistics

FOLDER = "glove"


@dataclass(frozen=True)
class WordVectors:
    """Vectors of some words, and one for all others."""

    name: str
    vectors: dict[str, Array]
    unknown: Array

    def of(self, words: Words) -> Array:
        """(words, width)"""
        return np.stack([self.vectors.get(word, self.unknown) for word in words])


def read_word_vectors(path: Path, words: Collection[str]) -> WordVectors:
    """Reads the vectors of `words` from a text file with a word and its numbers on each line; a header is allowed."""
    vectors: dict[str, Array] = {}
    total, count = np.zeros(0), 0
    for word, row in _rows(path):
        total, count = (total if count else np.zeros(len(row))) + row, count + 1
        if word in words:
            vectors[word] = row
    if not vectors:
        raise ValueError(f"{path}: none of its words is in the replies or references")
    return WordVectors(path.stem, vectors, total / count)


def _rows(path: Path) -> Iterator[tuple[str, Array]]:
    """Yields each word with its vector."""
    from listenwell.text.vectors import vector_lines  # imports the tokenizers

    expected = "expected a text file with a word and its numbers on each line, as GloVe's"
    try:
        for number, word, values in vector_lines(path):
            try:
                row = np.array(values, dtype=np.float64)
            except ValueError as problem:
                raise ConfigError(f"{path} line {number}: {problem}; {expected}") from problem
            if not len(row):
                raise ConfigError(f"{path} line {number}: there are no numbers; {expected}")
            yield word, row
    except UnicodeDecodeError as problem:
        raise ConfigError(f"{path}: not UTF-8 text; {expected}") from problem


def check_word_vectors(path: Path) -> None:
    """Raises an error early if the first lines of a file are not word vectors."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file of word vectors")
    if not list(islice(_rows(path), 2)):
        raise ValueError(f"{path}: there are no word vectors in it")


def load_word_vectors(material: Material, path: Path | None = None) -> WordVectors:
    """Reads the given file, else the first text file by name in LISTENWELL_DATA/glove."""
    words = {word for side in (material.reply_words, material.reference_words) for text in side for word in text}
    if path is not None:
        return read_word_vectors(path, words)
    folders = [root / FOLDER for root in data_roots()]
    files = [file for folder in folders for file in sorted(folder.glob("*.txt"))]
    if not files:
        raise UnavailableError(f"no word vectors; looked for a .txt file in {', '.join(map(str, folders))}")
    try:
        return read_word_vectors(files[0], words)
    except (OSError, ValueError) as problem:
        raise UnavailableError(str(problem)) from problem


def average(reply: Array, reference: Array) -> float:
    """Cosine of the sums of the words' vectors, (words, width) each."""
    return _cosine(reply.sum(axis=0), reference.sum(axis=0))


def extrema(reply: Array, reference: Array) -> float:
    """Cosine of the vectors that have, in each dimension, the value farthest from 0 among the words."""
    return _cosine(_extreme(reply), _extreme(reference))


def _extreme(vectors: Array) -> Array:
    high, low = vectors.max(axis=0), vectors.min(axis=0)
    # If the lowest value is exactly 0, nlg-eval uses it.
    return np.where((low > 0) | ((low < 0) & (high > -low)), high, low)


def greedy(reply: Array, reference: Array) -> float:
    """Each word's cosine with the closest word of the other side: mean over the words, then over both sides."""
    lengths = [np.linalg.norm(side, axis=1, keepdims=True) for side in (reply, reference)]
    ours, theirs = (side / np.where(n > 0, n, 1) for side, n in zip((reply, reference), lengths, strict=True))
    cosines = theirs @ ours.T
    return float((cosines.max(axis=0).mean() + cosines.max(axis=1).mean()) / 2)


def _cosine(one: Array, other: Array) -> float:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else 0.0


MATCHES: dict[str, tuple[Callable[[Array, Array], float], str]] = {
    "embedding-average": (average, "Cosine of the mean word vectors of reply and reference"),
    "greedy-matching": (greedy, "Mean cosine of each word with the nearest word of the other side"),
    "vector-extrema": (extrema, "Cosine of the most extreme values of word vectors"),
}


def word_similarity(
    name: str,
    replies: Sequence[Words],
    references: Sequence[Words],
    vectors: WordVectors,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Score:
    """Mean over items of one of `MATCHES`; 0 for an item if one side has no words."""
    same_length(replies=replies, references=references)
    check_words([*replies, *references])
    compare = MATCHES[name][0]
    values = [
        compare(vectors.of(reply), vectors.of(reference)) if reply and reference else 0.0
        for reply, reference in zip(replies, references, strict=True)
    ]
    statistics = Statistics(np.stack([np.array(values), np.ones(len(values))], axis=1), "ratio")
    signature = Signature.of(name, vectors=vectors.name, unknown="mean", tok="word")
    return score_with_interval(name, statistics, signature, "higher", resamples=resamples, seed=seed)


def _register(name: str) -> None:
    @metric(name, needs=["references", "word vectors"], languages=["en"], about=MATCHES[name][1])
    def compute(material: Material) -> Score:
        vectors = material.get("word vectors")
        return word_similarity(name, material.reply_words, material.reference_words, vectors, **material.resampling)


for _name in MATCHES:
    _register(_name)
