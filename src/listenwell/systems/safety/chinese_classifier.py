"""The learned crisis classifier for Chinese: is a message like those in which somebody was in danger?

The mean log-odds of two models: a linear one over character n-grams and the concepts in a message (`ngrams`), and a
small character encoder, pretrained on Chinese talk, that reads the message as a whole (recipe `crisis-chinese`). Both
ship with the package.
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
    """The log-odds of a sign in a text against none."""

    def __init__(self, ngrams: NgramClassifier, encoder: Labeller) -> None:
        self.ngrams, self.encoder = ngrams, encoder

    @once
    def odds(self, text: str) -> float:
        """Returns the log-odds for one message, or several joined."""
        return (self.ngrams.odds(rules("zh").read(text)) + self.encoder_odds(text)) / 2

    def encoder_odds(self, text: str) -> float:
        """Returns the encoder's log-odds, averaged over the text as written and as the rules read it."""
        log_p = self.encoder.log_probs([text, rules("zh").read(text)])
        return float(np.mean(np.logaddexp.reduce(log_p[:, 1:], axis=1) - log_p[:, 0]))


def encoder_folder() -> Path:
    """Returns the folder of the trained encoder, a checkpoint inside the package."""
    return Path(str(files("listenwell.systems.safety").joinpath("chinese_encoder")))


@cache
def chinese_classifier() -> ChineseClassifier:
    """Returns the classifier, which is loaded on first use."""
    return ChineseClassifier(ngram_classifier(), Labeller.load(encoder_folder(), CRISIS))
