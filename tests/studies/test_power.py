"""Sample sizes against statsmodels and against simulated studies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("sqlalchemy")
from statsmodels.stats.power import TTestPower

from listenwell.studies import power
from listenwell.studies.spec import Power, StudySpec


@pytest.mark.parametrize("effect", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("items", [10, 100, 250])
def test_the_power_of_a_paired_test_is_that_of_statsmodels(effect: float, items: int):
    expected = TTestPower().power(effect, items, 0.05 / 3, alternative="two-sided")
    assert power.paired_power(effect, items, 0.05 / 3) == pytest.approx(expected, abs=1e-9)


def test_the_number_of_items_is_that_of_statsmodels():
    expected = TTestPower().solve_power(0.25, power=0.8, alpha=0.05)
    assert power.paired_items(0.25, 0.8, 0.05) == int(np.ceil(expected)) == 128


def test_the_smallest_difference_that_is_found_needs_just_the_planned_items():
    effect = power.paired_effect(128, 0.8, 0.05)
    assert power.paired_power(effect, 128, 0.05) == pytest.approx(0.8)
    assert power.paired_items(effect * 1.0001, 0.8, 0.05) <= 128


def test_the_power_of_the_sign_test_is_that_of_simulated_studies():
    generator = np.random.default_rng(5)
    ties, gap, items = 0.3, 0.25, 200
    decided = round(items * (1 - ties))
    wins = generator.binomial(decided, 0.5 + gap / (2 * (1 - ties)), size=20_000)
    significant = np.array([stats.binomtest(w, decided).pvalue < 0.05 for w in range(decided + 1)])
    assert power.sign_power(items, gap, ties, 0.05) == pytest.approx(significant[wins].mean(), abs=0.015)


def test_enough_items_for_the_sign_test_stay_enough():
    needed = power.sign_items(0.2, 0.33, 0.8, 0.05)
    assert all(power.sign_power(more, 0.2, 0.33, 0.05) >= 0.79 for more in range(needed, needed + 30))
    assert power.sign_power(needed // 2, 0.2, 0.33, 0.05) < 0.8


def test_more_systems_and_scales_need_more_items():
    two = StudySpec("likert", ["a", "b"])
    four = StudySpec("likert", ["a", "b", "c", "d"])
    assert power.number_of_tests(two) == 3
    assert power.number_of_tests(four) == 18
    assert power.plan(four).needed > power.plan(two).needed


def test_the_note_before_the_launch_says_what_is_missing():
    few = power.launch_note(StudySpec("likert", ["a", "b"], items=20))
    assert "80% power" in few
    assert "--items" in few
    enough = power.launch_note(StudySpec("likert", ["a", "b"], items=500, power=Power(difference=0.5)))
    assert "--items" not in enough


@pytest.mark.parametrize("kind", ["likert", "ab", "drag", "emotion"])
def test_every_kind_has_a_plan(kind: str):
    found = power.plan(StudySpec(kind, ["a", "b", "c"], items=128))  # type: ignore[arg-type]
    assert found.needed > 1
    assert 0 < found.power <= 1
