"""Plans: what people would do, shifted towards lifting the mood, and never before acknowledging the feeling."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.classifiers.listener import ListenerPrediction
from listenwell.contract import Controls
from listenwell.data.dialogue import Dialogue
from listenwell.labels.taxonomy import EMOTIONS, LABELS, NEGATIVE, POSITIVE
from listenwell.systems.controls import controls_from_request
from listenwell.systems.house.options import Lean
from listenwell.systems.house.planner import LIFT, LIFTS, PREMATURE, Planner

PEOPLE = {"questioning": 0.3, "encouraging": 0.25, "acknowledging": 0.2, "joyful": 0.15, "sad": 0.1}
LEANING = Lean(positivity=0.5)


def heard(emotion="sad", **labels):
    """An emotion that is nearly certain, and the labels that people would reply with."""
    rest = {name: 0.1 / 31 for name in EMOTIONS if name != emotion}
    known = labels or PEOPLE
    return ListenerPrediction({emotion: 0.9, **rest}, {**known, **{name: 0.0 for name in LABELS if name not in known}})


def plan(emotion="sad", labels=("sad",), controls=None, leaning=LEANING, people=None):
    """A plan after turns that were labelled `labels`, the last one by the speaker."""
    context = Dialogue.from_texts([f"turn {i}" for i in range(len(labels))]).turns
    return Planner(leaning).plan(heard(emotion, **(people or {})), context, labels, controls)


def test_every_label_has_a_lift_in_every_phase():
    assert all(set(lifts) == set(LABELS) for lifts in LIFTS.values())
    assert all(-1 <= lift <= 1 for lifts in LIFTS.values() for lift in lifts.values())
    assert all(LIFT[name] > 0 for name in POSITIVE)
    assert all(LIFT[name] < 0 for name in NEGATIVE)


def test_the_lean_is_an_exponential_tilt():
    found = plan("joyful", ["joyful"], Controls(positivity=0.7), Lean(strength=1.5))
    weights = {name: PEOPLE[name] * math.exp(0.7 * 1.5 * LIFTS["share"][name]) for name in PEOPLE}
    for name, weight in weights.items():
        assert found.chances[name] == pytest.approx(weight / sum(weights.values()))
    assert list(found.chances.values()) == sorted(found.chances.values(), reverse=True)
    assert sum(found.chances.values()) == pytest.approx(1)
    assert found.label == next(iter(found.chances))
    assert found.positivity == 0.7


def test_without_a_lean_it_is_what_people_do():
    found = plan(controls=Controls(positivity=0.0))
    assert {name: found.chances[name] for name in PEOPLE} == pytest.approx(PEOPLE)
    assert found.label == "questioning"
    assert found.reason == "no lean: what people would likeliest do"


def test_a_negative_feeling_is_acknowledged_before_it_is_lifted():
    first = plan(controls=Controls(positivity=1.0))
    assert first.reason == "negative feeling not yet acknowledged: acknowledge before encouraging"
    assert first.label == "acknowledging"
    later = plan("sad", ["sad", "sympathizing", "sad"], Controls(positivity=1.0))
    assert later.reason == "negative feeling acknowledged: now lift the mood"
    assert later.label == "encouraging"
    assert (first.phase, later.phase) == ("acknowledge", "lift")


@pytest.mark.parametrize("took_up", ["acknowledging", "sympathizing", "consoling", "devastated"])
def test_what_takes_a_negative_feeling_up(took_up):
    assert "now lift" in plan("sad", ["sad", took_up, "sad"]).reason


@pytest.mark.parametrize("did_not", ["questioning", "encouraging", "suggesting", "agreeing", "joyful", "neutral"])
def test_what_does_not(did_not):
    assert "not yet acknowledged" in plan("sad", ["sad", did_not, "sad"]).reason


def test_what_was_said_while_only_good_was_told_acknowledges_nothing_bad():
    assert "not yet acknowledged" in plan("sad", ["joyful", "acknowledging", "devastated"]).reason
    assert "now lift" in plan("sad", ["joyful", "acknowledging", "sad", "consoling", "sad"]).reason
    assert "now lift" in plan("sad", ["sad", "consoling", "grateful"]).reason, "thanks take nothing back"
    assert "not yet acknowledged" in plan("sad", ["sympathizing", "sad"]).reason, "the listener spoke first"


@given(
    weights=st.lists(st.floats(0.001, 1), min_size=len(LABELS), max_size=len(LABELS)),
    positivity=st.floats(0, 1),
    emotion=st.sampled_from(sorted(NEGATIVE)),
)
def test_no_lean_makes_likelier_what_comes_too_early(weights, positivity, emotion):
    total = sum(weights)
    people = {name: weight / total for name, weight in zip(LABELS, weights, strict=True)}
    found = plan(emotion, ["sad", "questioning", "sad"], Controls(positivity=positivity), people=people)
    for name in PREMATURE:
        assert found.chances[name] <= people[name] * (1 + 1e-9)


def test_a_positive_feeling_is_shared():
    people = {"questioning": 0.4, "excited": 0.2, "consoling": 0.2, "sad": 0.2}
    found = plan("joyful", ["joyful"], Controls(positivity=1.0), people=people)
    assert found.reason == "positive feeling: share it"
    assert found.label == "excited"
    assert found.chances["consoling"] < 0.2
    assert found.chances["sad"] < 0.2


def test_many_negative_emotions_are_one_negative_feeling():
    emotions = {"joyful": 0.4, "sad": 0.3, "lonely": 0.3}
    found = Planner(LEANING).plan(
        ListenerPrediction(emotions, heard().labels), Dialogue.from_texts(["oh"]).turns, ["sad"]
    )
    assert "not yet acknowledged" in found.reason


def test_a_label_that_is_asked_for_is_taken():
    found = plan(controls=Controls(label="wishing", positivity=0.2))
    assert (found.label, found.reason) == ("wishing", "requested: wishing")
    assert found.chances["wishing"] == 1
    assert found.phase == "acknowledge"
    assert sum(found.chances.values()) == 1
    assert set(found.chances) == set(LABELS)
    with pytest.raises(ValueError, match="unknown label 'wishin'; did you mean 'wishing'"):
        plan(controls=Controls(label="wishin"))


def test_an_emotion_that_is_told_overrules_what_was_heard():
    found = plan("sad", controls=Controls(emotion="proud"))
    assert found.reason == "positive feeling: share it (given that the speaker feels proud)"
    with pytest.raises(ValueError, match="unknown emotion 'prowd'; did you mean 'proud'"):
        plan(controls=Controls(emotion="prowd"))


@pytest.mark.parametrize("controls", [Controls(positivity=1.0), Controls(label="wishing"), Controls(emotion="joyful")])
def test_what_people_would_do_is_told_whatever_is_asked_for(controls):
    found = plan(controls=controls).expected
    assert list(found.items())[:3] == [("questioning", 0.3), ("encouraging", 0.25), ("acknowledging", 0.2)]


def test_without_a_word_on_it_a_system_leans_as_its_decoding_says():
    assert plan(leaning=Lean(positivity=0.25)).positivity == 0.25
    assert plan(leaning=Lean(positivity=1.0)).label == "acknowledging"
    assert plan(leaning=Lean(positivity=1.0, strength=0.0)).label == "questioning"
    assert plan(leaning=None).reason == "no lean: what people would likeliest do"


def test_what_is_no_plan_is_told():
    for number in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="positivity is a number from 0 to 1, found"):
            plan(controls=Controls(positivity=number))
        with pytest.raises(ValueError, match="positivity is a number from 0 to 1, found"):
            Lean(positivity=number)
    with pytest.raises(ValueError, match="the strength of a lean is a number from 0 on, found -1"):
        Lean(strength=-1)
    with pytest.raises(ValueError, match="unknown label 'happy'"):
        plan("sad", ["happy"])
    with pytest.raises(ValueError, match="argument 2 is longer"):
        Planner().plan(heard(), Dialogue.from_texts(["oh"]).turns, ["sad", "sad"])


class Leaning:
    name, takes_label, takes_positivity = "leaning", True, True


class Plain:
    name, takes_label = "plain", True


def test_positivity_is_asked_for_beside_an_intent():
    assert controls_from_request(Leaning(), None) is None
    assert controls_from_request(Leaning(), None, 0.0) == Controls(positivity=0.0)
    assert controls_from_request(Leaning(), " Consoling ", 0.3) == Controls(label="consoling", positivity=0.3)
    assert controls_from_request(Plain(), "joyful") == Controls(label="joyful")
    with pytest.raises(ValueError, match=r"positivity is a number from 0 to 1, found 1\.5"):
        controls_from_request(Leaning(), None, 1.5)
    with pytest.raises(ValueError, match="plain does not take a positivity; house does"):
        controls_from_request(Plain(), None, 0.5)
