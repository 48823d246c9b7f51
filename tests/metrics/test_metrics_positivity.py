import numpy as np
import pytest

from listenwell.label_maps import POLARITIES
from listenwell.metrics import leaning, positivity, vader, vader_version


def test_a_classifier_leans_by_positive_minus_negative():
    chances = [dict(zip(POLARITIES, row, strict=True)) for row in ((0.7, 0.2, 0.1), (0.0, 1.0, 0.0), (0.1, 0.1, 0.8))]
    found = leaning([list(row.values()) for row in chances])
    np.testing.assert_allclose(found, [row["positive"] - row["negative"] for row in chances])
    with pytest.raises(ValueError, match=r"an array \(items, 3\), found shape \(2, 41\)"):
        leaning(np.ones((2, 41)))


def test_positivity_is_the_mean_and_the_gain_that_over_the_turn_before():
    said, before = np.array([0.5, -0.1, 0.3]), np.array([-0.5, 0.1, 0.3])
    score = positivity(said, by="a judge", resamples=50)
    assert score.value == pytest.approx((0.5 - 0.1 + 0.3) / 3)
    assert (score.name, score.signature["by"], score.signature["of"]) == ("positivity", "a judge", "reply")
    gain = positivity(said, by="vader", before=before, name="vader", resamples=50)
    assert gain.value == pytest.approx((1.0 - 0.2 + 0.0) / 3)
    np.testing.assert_allclose(gain.items, [1.0, -0.2, 0.0])
    assert (gain.name, gain.signature["of"]) == ("vader-gain", "reply-turn")
    assert gain.low <= gain.value <= gain.high
    with pytest.raises(ValueError, match="found 3 replies, 2 before"):
        positivity(said, by="x", before=[0.1, 0.2])


def test_vader_reads_each_text_once_and_tells_of_all():
    analyser = pytest.importorskip("vaderSentiment.vaderSentiment").SentimentIntensityAnalyzer()
    texts = ["That is great news!", "I am sad.", "", "It is on the table.", "I am sad."]
    told = []
    found = vader(texts, told.append)
    assert found.tolist() == [analyser.polarity_scores(text)["compound"] for text in texts]
    assert found[0] > 0 > found[1]
    assert found[2] == found[3] == 0
    assert sum(told) == 5
    assert vader_version() == "vader3.3.2"
