"""Whether a system replies as it is asked to: a made one that sometimes does, recognised by its words."""

from __future__ import annotations

import json

import pytest
from test_evaluate import made_items, parrot, quiet

from listenwell.dialogue import Label
from listenwell.evaluation.control import control
from listenwell.evaluation.measured import write
from listenwell.reply import Reply
from listenwell.taxonomy import INTENTS


class Obedient:
    """Says the intent that it is asked for, but never the last, and the first only every second time."""

    name, takes_label = "obedient", True

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.given: list = []

    def replies(self, talks, controls=None, done=None) -> list[Reply]:
        self.asked.append(controls.label)
        self.given += talks
        return [Reply(self._say(controls.label, index)) for index in range(len(talks))]

    def _say(self, intent: str, index: int) -> str:
        return "neutral" if intent == INTENTS[-1] or (intent == INTENTS[0] and index % 2) else intent


class Word:
    """Takes a text for the label it is the name of."""

    def label(self, texts):
        return [Label(text, "machine") for text in texts]


def test_each_context_is_answered_once_for_each_intent_and_the_shares_are_told():
    system = Obedient()
    found = control(system, made_items(), Word(), quiet, resamples=20)
    assert system.asked == list(INTENTS)
    assert all(turn.label is None for dialogue in system.given for turn in dialogue.turns)
    scores = {score.name: score for score in found.scores}
    assert [score.name for score in found.scores][:2] == ["control-mean", "control-least"]
    assert scores["control-agreeing"].value == pytest.approx(50)
    assert scores["control-questioning"].value == pytest.approx(100)
    assert scores["control-wishing"].value == scores["control-least"].value == 0
    assert scores["control-mean"].value == pytest.approx(100 * 6.5 / 8)
    assert scores["control-mean"].low <= scores["control-mean"].value <= scores["control-mean"].high
    assert scores["control-least"].low is None
    assert scores["control-mean"].signature["items"] == "6"
    assert len(found.records) == 48
    assert found.records[1] == {"id": "d1#1", "asked": "agreeing", "reply": "neutral", "recognised": "neutral"}


def test_the_numbers_and_every_reply_are_kept(tmp_path):
    found = control(Obedient(), made_items(2), Word(), quiet, ["sad", "wishing"], resamples=0)
    write(found, tmp_path / "control")
    scores = json.loads((tmp_path / "control" / "scores.json").read_text())["scores"]
    assert [score["name"] for score in scores] == ["control-mean", "control-least", "control-sad", "control-wishing"]
    assert len((tmp_path / "control" / "replies.jsonl").read_text().splitlines()) == 4


def test_what_cannot_be_measured_is_told():
    with pytest.raises(ValueError, match="parrot cannot be asked for an intent"):
        control(parrot(), made_items(), Word(), quiet)
    with pytest.raises(ValueError, match="unknown label 'wihsing'; did you mean 'wishing'"):
        control(Obedient(), made_items(), Word(), quiet, ["wihsing"])
    with pytest.raises(ValueError, match="nothing to reply to"):
        control(Obedient(), [], Word(), quiet)
