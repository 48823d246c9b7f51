import pytest

from listenwell.training.recipe import Optimizer
from listenwell.training.schedule import rate


@pytest.mark.parametrize("step", [0, 1, 4, 9, 10, 500])
@pytest.mark.parametrize("schedule", ["constant", "linear", "noam"])
def test_every_schedule_rises_in_a_line_while_it_warms_up(schedule, step):
    options = Optimizer(rate=2e-3, schedule=schedule, warmup=10)
    if step < 10:
        assert rate(options, step, 0.0) == pytest.approx(2e-3 * (step + 1) / 10)
    elif schedule != "noam":
        assert rate(options, step, 0.0) == pytest.approx(2e-3)


@pytest.mark.parametrize("progress", [0.0, 0.25, 0.5, 1.0, 1.3])
def test_linear_falls_to_its_floor_at_the_end_of_the_budget(progress):
    options = Optimizer(rate=1e-3, schedule="linear", warmup=1, floor=0.1)
    share = 0.1 + 0.9 * (1 - min(progress, 1))
    assert rate(options, 100, progress) == pytest.approx(1e-3 * share)


def test_linear_falls_while_it_rises():
    options = Optimizer(rate=1e-3, schedule="linear", warmup=10, floor=0.0)
    assert rate(options, 4, 0.5) == pytest.approx(1e-3 * 0.5 * 0.5)


def test_constant_stays():
    options = Optimizer(rate=1e-3, schedule="constant", warmup=5)
    assert {rate(options, step, step / 100) for step in range(4, 100)} == {1e-3}


def test_noam_falls_by_the_root_of_steps_from_its_highest():
    options = Optimizer(rate=1e-3, schedule="noam", warmup=16)
    assert rate(options, 15, 0.3) == pytest.approx(1e-3)
    assert rate(options, 63, 0.9) == pytest.approx(1e-3 * (16 / 64) ** 0.5)
    # Vaswani's formula up to a factor: width^-0.5 · min(step^-0.5, step · warmup^-1.5)
    for step in range(1, 200):
        vaswani = min(step**-0.5, step * 16**-1.5)
        assert rate(options, step - 1, 0.0) == pytest.approx(1e-3 * 16**0.5 * vaswani)


@pytest.mark.parametrize("schedule", ["constant", "linear", "noam"])
def test_no_warm_up_starts_at_the_full_rate(schedule):
    assert rate(Optimizer(rate=1e-3, schedule=schedule, warmup=0), 0, 0.0) == pytest.approx(1e-3)
