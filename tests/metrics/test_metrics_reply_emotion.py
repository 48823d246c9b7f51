import numpy as np
import pytest

from listenwell.metrics import reply_emotion_accuracy
from listenwell.metrics.emotion import ABSENT

GENERATOR = np.random.default_rng(3)


def distributions(items):
    return GENERATOR.dirichlet(np.full(41, 0.3), size=items)


@pytest.mark.parametrize("k", [1, 5])
def test_it_is_how_often_the_dialogue_s_emotion_is_among_the_likeliest_of_the_reply(k):
    chances, gold = distributions(60), GENERATOR.integers(32, size=60)
    hits = []
    for row, own in zip(chances, gold, strict=True):
        likeliest = sorted(range(32), key=lambda label: -row[label])[:k]
        hits.append(own in likeliest)
    score = reply_emotion_accuracy(chances, gold, k)
    assert score.value == pytest.approx(100 * np.mean(hits))
    assert score.low <= score.value <= score.high
    assert (score.name, score.unit, score.better) == (f"reply-emotion@{k}", "%", "higher")
    np.testing.assert_array_equal(score.items, 100.0 * np.array(hits))


def test_intents_and_neutral_do_not_count():
    chances = np.zeros((2, 41))
    chances[:, 40], chances[:, 33], chances[0, 7], chances[1, 8] = 0.6, 0.3, 0.1, 0.1
    assert reply_emotion_accuracy(chances, [7, 7]).items.tolist() == [100, 0]


def test_its_signature_says_what_was_compared():
    score = reply_emotion_accuracy(distributions(4), [1, 2, ABSENT, 3])
    assert str(score.signature).startswith("accuracy|k:1|classes:32|items:3|absent:1|")
    assert (score.signature["of"], score.signature["among"]) == ("reply", "emotions")


def test_distributions_of_other_labels_are_refused():
    with pytest.raises(ValueError, match=r"distributions are an array \(items, 41\), found shape \(3, 32\)"):
        reply_emotion_accuracy(np.ones((3, 32)), [0, 1, 2])
