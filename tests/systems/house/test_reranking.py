"""The terms that rank candidates."""

import pytest

from listenwell.labels.taxonomy import NEGATIVE, POSITIVE
from listenwell.systems.house.options import Rerank
from listenwell.systems.house.planner import Plan
from listenwell.systems.house.reranking import fresh, new, uplift


def test_the_total_is_the_weighted_sum_and_leaves_out_what_has_no_weight():
    weights = Rerank(likelihood=1.0, plan=0.5)
    assert weights.total({"likelihood": -2.0, "plan": -1.0}) == pytest.approx(-2.5)
    assert weights
    assert not Rerank()
    assert Rerank().total({}) == 0


def test_its_signature_names_what_was_weighed():
    assert Rerank(likelihood=1.0, fresh=0.25).signature() == "likelihood1,fresh0.25"


def test_a_stock_phrase_is_not_fresh():
    assert fresh("I'm sorry to hear that.") == -1
    assert fresh("Did the vet say what it was?") == 0


@pytest.mark.parametrize(
    ("reply", "earlier", "share"),
    [
        ("that is hard", [], 0),
        ("that is hard", ["I know that is hard"], 1),
        ("that is good news", ["that is hard"], 1 / 3),
        ("no no no", [], 1 / 2),
        ("", ["that is hard"], 0),
        ("oh", ["oh"], 0),
    ],
)
def test_what_was_said_before_is_not_new(reply, earlier, share):
    assert new(reply, earlier) == pytest.approx(-share)


def in_phase(phase, positivity=0.5):
    return Plan("questioning", {}, positivity, "", {}, phase)


def test_no_cheer_is_rewarded_before_the_feeling_is_acknowledged():
    early = in_phase("acknowledge")
    for label in ("acknowledging", "sympathizing", "consoling", "questioning", *NEGATIVE):
        assert uplift(0.8, early, label) == pytest.approx(0.4)
    for label in ("encouraging", "suggesting", "wishing", "agreeing", "neutral", *POSITIVE):
        assert uplift(0.8, early, label) == 0
        assert uplift(-0.8, early, label) == pytest.approx(-0.4), "to lower the mood is no better for coming early"


@pytest.mark.parametrize("phase", ["share", "lift"])
def test_in_all_other_phases_a_gain_counts_as_far_as_the_plan_leans(phase):
    assert uplift(0.8, in_phase(phase), "encouraging") == pytest.approx(0.4)
    assert uplift(0.8, in_phase(phase, 0.0), "encouraging") == 0
    assert uplift(-0.8, in_phase(phase), "joyful") == pytest.approx(-0.4)


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), "much", True])
def test_a_weight_is_a_number(weight):
    with pytest.raises(ValueError, match=r"Rerank\.plan is .*, expected a finite number"):
        Rerank(plan=weight)
