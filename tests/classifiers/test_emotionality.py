"""Selecting the most emotional dialogues."""

import numpy as np
import pytest

from listenwell.classifiers.emotionality import emotionality, most_emotional
from listenwell.data.dialogue import Dialogue
from listenwell.labels.taxonomy import LABEL_ID, LABELS

SAID = {
    "I am so sad": {"sad": 0.5, "lonely": 0.25, "neutral": 0.25},
    "Why?": {"questioning": 0.9, "anxious": 0.1},
    "It is five": {"neutral": 1.0},
}


class Known:
    """Gives each text the predictions defined above."""

    def distribution(self, texts, done=None):
        probabilities = np.zeros((len(texts), len(LABELS)))
        for row, text in enumerate(texts):
            for name, chance in SAID[text].items():
                probabilities[row, LABEL_ID[name]] = chance
        if done is not None:
            done(len(texts))
        return probabilities


def talk(*texts):
    return Dialogue.from_texts(texts)


CORPUS = [talk("It is five"), talk("I am so sad", "Why?"), talk("I am so sad"), talk("I am so sad", "It is five")]


def test_emotionality_is_the_mean_over_turns_of_the_emotions_mass():
    seen = []
    actual = emotionality(CORPUS, Known(), seen.append)
    assert actual == pytest.approx([0.0, (0.75 + 0.1) / 2, 0.75, 0.375])
    assert sum(seen) == 6


def test_the_most_emotional_stay_in_the_order_of_the_corpus():
    assert most_emotional(CORPUS, Known(), 2) == [CORPUS[1], CORPUS[2]]
    assert most_emotional(CORPUS, Known(), 9) == CORPUS
    with pytest.raises(ValueError, match="is 0, expected at least 1"):
        most_emotional(CORPUS, Known(), 0)
