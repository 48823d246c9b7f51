"""A loaded system can be passed to another process, or raises an error that says why not and what to do instead."""

from __future__ import annotations

import pickle
import subprocess
import sys
from copy import copy, deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

import listenwell
from listenwell import checkpoint
from listenwell.decoding import Decoding
from listenwell.systems.house.system import House
from listenwell.systems.safety import SafetyWrapper
from listenwell.weights import zoo_folder
from test_system import made_bot

TALK = ["I lost my job today"]


def returned(system):
    return pickle.loads(pickle.dumps(system))


@pytest.mark.parametrize("name", [n for n in ("multi-trs", "bert-joint") if (zoo_folder() / n).is_dir()])
def test_a_loaded_system_that_has_talked_replies_the_same_after_pickling(name: str):
    system = listenwell.load(name)
    said = system.reply(TALK)
    again = returned(system)
    assert isinstance(again, SafetyWrapper)
    assert again.reply(TALK) == said
    assert "care" in again.reply("I want to kill myself").reasons


@pytest.fixture
def house(tiny_listener, tiny_classifier, tiny_writer) -> House:
    spoken = Decoding(method="sample", candidates=3, max_length=8)
    sentiment = replace(tiny_classifier(labels="polarity"), name="polarity")
    parts = {"listener": tiny_listener(), "labeller": tiny_classifier(), "sentiment": sentiment}
    whole = replace(tiny_writer(spoken), parts=parts)
    return House.of(whole)


def test_the_house_system_can_be_pickled_once_its_engine_is_made(house: House):
    said = house.reply(TALK)
    assert returned(house).reply(TALK) == said
    assert returned(SafetyWrapper(house)).reply(TALK) == said


def test_what_is_pickled_of_a_model_is_what_it_learned_and_not_what_it_borrows(house: House):
    weights = checkpoint.learned_weights(house.writer.model)
    assert not set(weights) & house.writer.model.borrowed()
    own = sum(weight.numel() * weight.element_size() for weight in weights.values())
    tokenizer = len(pickle.dumps(house.writer.tokenizer))
    assert len(pickle.dumps(house.writer)) < own + tokenizer + 50_000


def test_a_setting_made_after_loading_travels_along():
    bot = made_bot().with_decoding(max_length=3)
    assert returned(bot).decoding == bot.decoding


def test_a_shallow_copy_shares_the_model_and_a_deep_one_does_not():
    bot = made_bot()
    assert copy(bot).model is bot.model
    assert copy(bot.checkpoint).model is bot.model
    other = deepcopy(bot)
    assert other.model is not bot.model
    assert other.model is other.checkpoint.model
    assert other.reply(TALK) == bot.reply(TALK)


def test_another_process_can_go_on_with_it(tmp_path: Path):
    bot = SafetyWrapper(made_bot())
    (tmp_path / "bot.pickle").write_bytes(pickle.dumps(bot))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).reply(sys.argv[2]).text)"
    words = [sys.executable, "-c", code, str(tmp_path / "bot.pickle"), *TALK]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == bot.reply(TALK).text


@pytest.mark.parametrize("care", [True, False])
def test_an_endpoint_says_that_it_is_to_be_loaded_in_the_other_process(care: bool, monkeypatch):
    monkeypatch.setattr("listenwell.loading.shipped", dict)
    system = listenwell.load("openai:some", care, base_url="http://localhost:1/v1")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"holds its key: load the system in the other process"):
        pickle.dumps(system)
