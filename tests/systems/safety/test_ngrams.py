"""The n-grams of the Chinese classifier: their weights, and how they are learned."""

from __future__ import annotations

import numpy as np
import pytest

from listenwell.systems.safety import chinese_learning, detect
from listenwell.systems.safety.chinese_learning import Message
from listenwell.systems.safety.detector import rules
from listenwell.systems.safety.ngrams import (
    BUCKETS,
    NGRAM_SCALE,
    PAIR_SCALE,
    NgramClassifier,
    concept_pairs,
    concepts_in,
    ngram_buckets,
    size,
)

MESSAGES = [
    Message("我不想活了", True),
    Message("今天吃火锅", False),
    Message("想死", True),
    Message("天气真好", False),
]


def test_every_ngram_of_a_text_has_one_bucket():
    assert len(ngram_buckets("想死")) == 4 + 3 + 2 + 1  # of ^想死$
    assert all(0 <= bucket < BUCKETS for bucket in ngram_buckets("今天天气真好"))


def test_a_text_is_weighed_by_its_ngrams_and_its_length():
    weights = np.zeros(size(), dtype=np.float16)
    weights[ngram_buckets("好")] = 1.0
    classifier = NgramClassifier(weights, bias=-1.0)
    assert concepts_in("好") == []
    assert classifier.odds("好") == pytest.approx(NGRAM_SCALE * 6 / 6**0.5 - 1)


def test_concepts_and_their_pairs_are_weighed_too():
    places = concepts_in("攒了一瓶药")
    assert len(places) >= 2
    weights = np.zeros(size(), dtype=np.float16)
    weights[BUCKETS + places[0]] = 1.0
    weights[concept_pairs("攒了一瓶药", places)] = 1.0
    classifier = NgramClassifier(weights, bias=0.0)
    pairs = len(places) * (len(places) - 1)  # once in the text, once in its only sentence
    assert classifier.odds("攒了一瓶药") == pytest.approx(1 + PAIR_SCALE * pairs / (pairs + len(places)) ** 0.5)


def test_learning_twice_gives_the_same_classifier_and_it_tells_signs_apart():
    first, second = (chinese_learning.as_classifier(chinese_learning.learn(MESSAGES)) for _ in range(2))
    assert np.array_equal(first.weights, second.weights)
    normal = rules("zh").normal
    signs, others = (
        [first.odds(normal(m.text)) for m in MESSAGES if m.is_sign is is_sign] for is_sign in (True, False)
    )
    assert min(signs) > max(others)


def test_it_hears_what_no_rule_thought_of_and_asks():
    text = "谢谢你听我说这么多，这是最后一次了"
    assert rules("zh").look(text) is None
    sign = detect(text)
    assert sign is not None
    assert sign.directness == "indirect"
    assert sign.why.startswith("learned")


@pytest.mark.parametrize("text", ["放心，我没想过自杀", "他说不想活了，我该怎么劝他", "我想死你了"])
def test_it_does_not_overrule_what_a_guard_or_an_idiom_silenced(text: str):
    assert detect(text) is None
