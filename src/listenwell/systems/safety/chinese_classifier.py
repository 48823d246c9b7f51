"""The learned crisis classifier for Chinese: is a message like those in which somebody was in danger?

Two readers, half of the odds each: weights of character n-grams and of what a message speaks of (`ngrams`), and a small
character encoder, pretrained on Chinese talk, that reads the message as a whole (recipe `crisis-chinese`). Both ship
with the package.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from listenwell.classifiers.labeller import Labeller
from listenwell.labels.sets import CRISIS
from listenwell.systems.safety.detector import rules
from listenwell.systems.safety.ngrams import NgramClassifier, ngram_classifier
from listenwell.systems.safety.once import once


class ChineseClassifier:
    """The odds of a sign in a text: the logarithm of how much likelier a sign is than none."""

    def __init__(self, ngrams: NgramClassifier, encoder: Labeller) -> None:
        self.ngrams, self.encoder = ngrams, encoder

    @once
    def odds(self, text: str) -> float:
        """Of one message, or of several joined."""
        return (self.ngrams.odds(rules("zh").read(text)) + self.encoder_odds(text)) / 2

    def encoder_odds(self, text: str) -> float:
        """The mean over the text as it was written and as the rules read it."""
        log_p = self.encoder.log_probs([text, rules("zh").read(text)])
        return float(np.mean(np.logaddexp.reduce(log_p[:, 1:], axis=1) - log_p[:, 0]))


def encoder_folder() -> Path:
    """The trained encoder, a checkpoint inside the package."""
    return Path(str(files("listenwell.systems.safety").joinpath("chinese_encoder")))


@cache
def chinese_classifier() -> ChineseClassifier:
    """Read once, when first asked for."""
    return ChineseClassifier(ngram_classifier(), Labeller.load(encoder_folder(), CRISIS))
