"""Texts that start and end at different times continue in one batch exactly as each would alone."""

import pytest
import torch
from test_llama_engine import CLOSE, MASKS, PROMPTS, plain, real, tiny

from listenwell.backbones import llama_slots
from listenwell.backbones.llama_engine import LlamaEngine
from listenwell.backbones.llama_slots import Slots


@pytest.fixture(scope="module")
def model():
    return tiny()


@pytest.fixture
def slots(model, monkeypatch):
    monkeypatch.setattr(llama_slots, "COLUMNS", 1)
    monkeypatch.setattr(llama_slots, "PLACES", 1)
    return Slots(LlamaEngine.of(model))


class Texts:
    """The same texts as in the slots, as plain lists."""

    def __init__(self, slots, model):
        self.slots, self.model, self.texts = slots, model, {}

    def add(self, padding):
        cache, _ = self.slots.engine.understand(PROMPTS, MASKS[padding], room=0)
        numbers = self.slots.add(cache)
        self.texts.update(zip(numbers, real(MASKS[padding]), strict=True))
        return numbers

    def step(self, numbers, tokens):
        logits = self.slots.step(torch.tensor(tokens), numbers)
        for number, token in zip(numbers, tokens, strict=True):
            self.texts[number].append(token)
        torch.testing.assert_close(logits, plain(self.model, [self.texts[n] for n in numbers]), **CLOSE)


def test_texts_come_and_go_and_each_goes_on_as_it_would_alone(slots, model):
    texts = Texts(slots, model)
    a, b, c = texts.add("right")
    texts.step([a, b, c], [5, 6, 7])
    d, e, f = texts.add("left")  # padding takes no space
    texts.step([f, a, d, c, e, b], [1, 2, 3, 4, 5, 6])
    for gone in (a, f, d):
        slots.remove(gone)
    assert len(slots) == 3
    texts.step([b, c, e], [9, 8, 7])
    (g, *_) = texts.add("none")
    texts.step([g, e, c, b], [4, 3, 2, 1])


def test_who_does_not_go_on_stays_as_it_is(slots, model):
    texts = Texts(slots, model)
    a, b, c = texts.add("right")
    texts.step([b], [5])
    texts.step([c, b], [6, 7])
    texts.step([a, b, c], [1, 2, 3])


def test_nothing_is_kept_once_all_have_gone(slots, model):
    for number in Texts(slots, model).add("none"):
        slots.remove(number)
    assert all(memory.numel() == 0 for memory in slots._memory)
    texts = Texts(slots, model)
    texts.step(texts.add("right"), [1, 2, 3])


def test_what_was_read_first_can_be_taken_up_again(slots, model):
    texts = Texts(slots, model)
    numbers = texts.add("right")
    texts.step(numbers, [5, 6, 7])
    reading = slots.reading(numbers[1], 3)
    texts.step(numbers, [8, 9, 10])
    cache = slots.engine.joined([reading], more=1)
    expected = plain(model, [[*texts.texts[numbers[1]][:3], 11]])
    torch.testing.assert_close(slots.engine.step(torch.tensor([11]), cache), expected, **CLOSE)


def test_more_than_it_can_read_is_refused(slots, model):
    numbers = Texts(slots, model).add("none")
    for _ in range(31):
        slots.step(torch.tensor([1, 1, 1]), numbers)
    with pytest.raises(ValueError, match="longer than the 40 tokens"):
        slots.step(torch.tensor([1, 1, 1]), numbers)
