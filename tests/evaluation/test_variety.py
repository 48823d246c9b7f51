"""How much replies to the same context vary: a fake system whose replies depend on the seed, and a trained one."""

from __future__ import annotations

import json

import pytest
from test_evaluate import made_items, quiet

from listenwell.commands.variety import variety as command
from listenwell.decoding import Decoding
from listenwell.evaluation.variety import variety, variety_scores
from listenwell.systems.reply import Reply


class Moody:
    """Gives the first context always the same reply, and the others a new word for each of the first three seeds."""

    name = "moody"

    def __init__(self) -> None:
        self.decoding = Decoding(seed=7)
        self.given: list = []

    def replies(self, talks, controls=None, done=None) -> list[Reply]:
        self.given += talks
        word = ("fine", "well", "Fine", "fine ")[self.decoding.seed]
        return [Reply("I see" if index == 0 else f"all {word}") for index in range(len(talks))]


def test_each_context_is_answered_once_for_each_draw_and_what_differs_is_counted():
    system = Moody()
    actual = variety(system, made_items(), quiet, draws=4, resamples=20)
    assert system.decoding.seed == 7, "the system's own way of writing is left as it was"
    assert all(turn.label is None for dialogue in system.given for turn in dialogue.turns)
    scores = {score.name: score for score in actual.scores}
    assert scores["different"].value == pytest.approx((1 + 5 * 2) / 6), "capitals and spaces are no difference"
    assert scores["varied"].value == pytest.approx(100 * 5 / 6)
    assert scores["varied"].low <= scores["varied"].value <= scores["varied"].high
    assert scores["unique"].value == pytest.approx(100 * 3 / 24)
    assert scores["different"].signature["draws"] == "4"
    assert actual.records[0] == {"id": "d0#1", "replies": ["I see"] * 4}


def test_a_system_that_says_the_same_again_has_one_reply_to_each():
    scores = {score.name: score.value for score in variety_scores([["a b", "a b"], ["c d", "C  d"]], 0)}
    assert scores == {"different": 1, "varied": 0, "distinct-1": 50, "distinct-2": 50, "unique": 50}


def test_what_tells_nothing_is_refused():
    with pytest.raises(ValueError, match="1 draws do not show"):
        variety(Moody(), made_items(), quiet, draws=1)
    with pytest.raises(ValueError, match="nothing to reply to"):
        variety(Moody(), [], quiet)


def test_the_command_measures_a_trained_system(tmp_path, capsys):
    out = tmp_path / "variety"
    sampling = Decoding(method="sample", max_length=8)
    command("trs", "shipped", draws=3, limit=4, out=out, decoding=sampling, resamples=0, json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["about"]["items"] == 4
    assert printed["scores"][0]["value"] > 1, "sampled replies differ"
    assert printed == json.loads((out / "scores.json").read_text())
    assert len((out / "replies.jsonl").read_text().splitlines()) == 4
