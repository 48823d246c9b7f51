"""The long conversations that ship: the properties that training a writer on them relies on."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest

from listenwell.data import sources
from listenwell.data.dialogue import Dialogue
from listenwell.data.sources.report import Report
from listenwell.labels.taxonomy import EMOTIONS, INTENTS
from listenwell.text import words


@pytest.fixture(scope="module")
def dialogues() -> list[Dialogue]:
    return list(sources.read("talk"))


def test_they_are_long_and_go_from_the_speaker_to_the_listener(dialogues: list[Dialogue]):
    assert len(dialogues) > 800
    for dialogue in dialogues:
        assert len(dialogue.turns) >= 4, dialogue.id
        assert (dialogue.turns[0].speaker, dialogue.turns[-1].speaker) == ("speaker", "listener"), dialogue.id
        assert all(one.speaker != two.speaker for one, two in pairwise(dialogue.turns)), dialogue.id
    assert sum(len(dialogue.turns) for dialogue in dialogues) > 8 * len(dialogues)


def test_nothing_is_wrong_with_any_record():
    report = Report()
    assert len({dialogue.id for dialogue in sources.read("talk", report=report)}) > 800
    assert not report.dropped


def test_every_emotion_is_told_and_every_intent_used(dialogues: list[Dialogue]):
    emotions = Counter(dialogue.emotion.name for dialogue in dialogues if dialogue.emotion is not None)
    assert set(emotions) == set(EMOTIONS)
    said = [turn for dialogue in dialogues for turn in dialogue.turns if turn.speaker == "listener"]
    intents = Counter(turn.label.name for turn in said if turn.label is not None)
    assert set(intents) == set(INTENTS)
    assert intents.total() == len(said)


def test_some_are_held_out_for_validation(dialogues: list[Dialogue]):
    splits = Counter(dialogue.split for dialogue in dialogues)
    assert set(splits) == {"train", "valid"}
    assert splits["valid"] >= 60


def test_the_listener_has_no_stock_phrases_and_seldom_repeats_itself(dialogues: list[Dialogue]):
    said = [turn.text for dialogue in dialogues for turn in dialogue.turns if turn.speaker == "listener"]
    stock = re.compile(r"sorry to hear|must be (so |very )?hard\b|hope you are ok|^i understand\b", re.IGNORECASE)
    assert [text for text in said if stock.search(text)] == []
    repeated = Counter(" ".join(words(text)) for text in said)
    assert sum(count - 1 for count in repeated.values()) < 0.002 * len(said)
