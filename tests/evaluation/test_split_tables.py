"""Scores of the items of one polarity or one emotion, for any set of emotions."""

from __future__ import annotations

import numpy as np
import pytest

from listenwell.data.dialogue import Example, Label, Turn
from listenwell.evaluation.split_tables import split_tables
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Statistics


def tables(*emotions: str | None):
    """Tables of a score whose values at the items are 0, 1, 2 …"""
    items = [
        Example(str(n), (Turn("speaker", "a"),), Turn("listener", "b"), emotion=None if name is None else Label(name))
        for n, name in enumerate(emotions)
    ]
    rows = np.array([[float(n), 1.0] for n in range(len(items))])
    score = Score("place", 0.0, signature=Signature.of("place"), statistics=Statistics(rows, "ratio"))
    return {
        by: {group: scores[0].value for group, scores in groups.items()}
        for by, groups in split_tables([score], items, resamples=0).items()
    }


@pytest.mark.parametrize(
    ("emotions", "expected"),
    [
        (
            ("sad", "joyful", None, "sad"),
            {"polarity": {"positive": 1, "negative": 1.5}, "emotion": {"joyful": 1, "sad": 1.5}},
        ),
        (
            ("sadness", "like", "surprise"),
            {
                "polarity": {"positive": 1, "negative": 0, "ambiguous": 2},
                "emotion": {"like": 1, "sadness": 0, "surprise": 2},
            },
        ),
        (("tense", "calm", "calm"), {"emotion": {"calm": 1.5, "tense": 0}}),
        (("calm", None), {"emotion": {"calm": 0}}),
        ((None, None), {}),
    ],
    ids=["the 32", "nlpcc", "one's own", "a single one", "none"],
)
def test_scores_are_split_by_the_emotions_that_the_data_has(emotions, expected):
    assert tables(*emotions) == expected
