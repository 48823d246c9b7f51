import numpy as np
import pytest

from listenwell.metrics import Score, sentence_similarity


def test_it_is_the_mean_cosine_and_every_item_keeps_its_own():
    random = np.random.default_rng(4)
    ours, theirs = random.normal(size=(2, 30, 8))
    slow = [sum(a * b) / (sum(a * a) ** 0.5 * sum(b * b) ** 0.5) for a, b in zip(ours, theirs, strict=True)]
    score = sentence_similarity(ours, theirs, encoder="all-MiniLM-L6-v2", resamples=100)
    assert score.value == pytest.approx(sum(slow) / 30)
    np.testing.assert_allclose(score.items, slow)
    assert score.low < score.value < score.high
    assert (score.name, score.unit, score.better) == ("ses", "", "higher")
    assert score.signature["encoder"] == "all-MiniLM-L6-v2"
    assert Score.from_json(score.to_json(items=True)) == score


def test_the_same_is_one_and_the_opposite_minus_one_whatever_the_length():
    vectors = np.array([[1.0, 2.0], [0.5, -3.0]])
    assert sentence_similarity(vectors, 7 * vectors, encoder="x", resamples=0).value == pytest.approx(1)
    assert sentence_similarity(vectors, -vectors, encoder="x", resamples=0).value == pytest.approx(-1)


def test_what_has_no_cosine_is_told():
    with pytest.raises(ValueError, match="as many of each are needed, found 2 replies, 1 references"):
        sentence_similarity(np.ones((2, 3)), np.ones((1, 3)), encoder="x")
    with pytest.raises(ValueError, match=r"two arrays \(items, width\), found shapes \(2, 3\) and \(2, 4\)"):
        sentence_similarity(np.ones((2, 3)), np.ones((2, 4)), encoder="x")
    with pytest.raises(ValueError, match="length 0 has no direction"):
        sentence_similarity(np.zeros((2, 3)), np.ones((2, 3)), encoder="x")
