import math

import numpy as np
import pytest

from listenwell.metrics import perplexity, perplexity_per_word


def test_perplexity_is_weighted_by_tokens_not_a_mean_of_batches():
    score = perplexity([2.0, 30.0], [2, 10])
    assert score.value == pytest.approx(math.exp(32 / 12))
    np.testing.assert_allclose(score.items, [math.exp(1), math.exp(3)])
    assert score.better == "lower"


def test_an_unknown_word_also_costs_naming_which_of_the_unseen_it_was():
    score = perplexity([4.0, 6.0], [3, 5], unknown=[1, 0], unseen_types=7)
    assert score.value == pytest.approx(math.exp((10 + math.log(7)) / 8))
    assert score.signature["unk"] == "16.67%"  # 1 of 6 words, without the two end tokens
    assert score.signature["unseen"] == "7"
    assert score.signature["end"] == "counted"
    assert score.signature["smoothing"] == "off"


def test_a_uniform_model_has_the_perplexity_of_its_whole_vocabulary_whatever_it_calls_unknown():
    # 10 types; the small model knows 6 of them and UNK, which covers the 4 others and gets all their probability.
    words = 20
    full = perplexity([words * math.log(10)], [words])
    small = perplexity([15 * math.log(10) + 5 * math.log(10 / 4)], [words], unknown=[5], unseen_types=4)
    assert small.value == pytest.approx(full.value)


def test_per_word_the_end_is_added_to_the_words():
    score = perplexity_per_word([8.0, 4.0], [3, 1])
    assert score.value == pytest.approx(math.exp(12 / 6))
    assert score.name == "perplexity-word"
    assert score.signature["per"] == "word"


def test_for_a_word_level_model_per_word_and_per_token_agree():
    nll, words, unknown = np.array([5.0, 9.0, 2.0]), np.array([2, 4, 0]), [1, 0, 0]
    token = perplexity(nll, words + 1, unknown=unknown, unseen_types=3)
    word = perplexity_per_word(nll, words, unknown=unknown, unseen_types=3)
    assert (word.value, word.low, word.high) == (token.value, token.low, token.high)
    assert word.signature["unk"] == token.signature["unk"]


def test_a_single_item_has_a_value_and_no_interval():
    score = perplexity([1.0], [1])
    assert score.low is None
    assert score.signature["ci"] == "none"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1.0, 2.0], [1]), {}, "2 nll, 1 tokens"),
        (([1.0, 2.0], [1, 1]), {"unknown": [0, 0, 0]}, "3 unknown"),
        (([1.0], [0]), {}, "item 0: 0 tokens"),
        (([1.0, math.inf], [1, 1]), {}, "nll of item 1 is inf"),
        (([1.0], [2]), {"unknown": [1]}, "unseen_types is 0"),
        (([1.0], [2]), {"unknown": [3], "unseen_types": 5}, "3 unknown words of 2"),
        (([[1.0]], [2]), {}, "shape"),
        (([], []), {}, "no items"),
    ],
)
def test_what_cannot_be_right_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        perplexity(*arguments, **options)


def test_a_negative_number_of_words_is_refused():
    with pytest.raises(ValueError, match="item 1: -1 words"):
        perplexity_per_word([1.0, 1.0], [0, -1])
