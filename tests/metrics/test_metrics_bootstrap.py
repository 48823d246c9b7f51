import numpy as np
import pytest

from listenwell.metrics import bootstrap as module
from listenwell.metrics import bootstrap_interval
from listenwell.metrics.bootstrap import resampled_sums
from listenwell.metrics.sums import Statistics, exp_ratio, ratio


def ones(values):
    return np.stack([values, np.ones(len(values))], axis=1)


def test_the_interval_of_a_mean_is_the_textbook_one():
    values = np.random.default_rng(0).normal(10, 2, size=400)
    low, high = bootstrap_interval(ones(values), ratio)
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.05)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.05)


def test_about_95_in_100_intervals_hold_the_truth():
    generator = np.random.default_rng(1)
    held = 0
    for seed in range(200):
        low, high = bootstrap_interval(ones(generator.exponential(3.0, size=80)), ratio, resamples=200, seed=seed)
        held += low <= 3.0 <= high
    assert 0.88 <= held / 200 <= 0.99


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    rows = ones(np.random.default_rng(2).random(50))
    assert bootstrap_interval(rows, ratio) == bootstrap_interval(rows, ratio)
    assert bootstrap_interval(rows, ratio, seed=1) != bootstrap_interval(rows, ratio, seed=2)


def test_items_that_are_all_alike_leave_no_doubt():
    assert bootstrap_interval(np.tile([3.0, 2.0], (7, 1)), exp_ratio) == pytest.approx((np.exp(1.5), np.exp(1.5)))


def test_every_resample_has_as_many_items_as_the_corpus(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_CELLS", 25)  # several blocks, the last one short
    sums = resampled_sums(ones(np.arange(10.0)), resamples=9)
    assert sums.shape == (9, 2)
    assert (sums[:, 1] == 10).all()


def test_two_systems_on_the_same_items_are_resampled_alike():
    rows = ones(np.random.default_rng(3).random(20))
    together = resampled_sums(np.concatenate([rows, 2 * rows], axis=1))
    np.testing.assert_allclose(together[:, :2], resampled_sums(rows))
    np.testing.assert_allclose(together[:, 2:], 2 * together[:, :2])


def test_nothing_to_resample_is_an_error():
    with pytest.raises(ValueError, match="no items"):
        bootstrap_interval(np.empty((0, 2)), ratio)
    with pytest.raises(ValueError, match="resample"):
        bootstrap_interval(np.ones((3, 2)), ratio, resamples=0)
    with pytest.raises(ValueError, match="level"):
        bootstrap_interval(np.ones((3, 2)), ratio, level=95)


def test_statistics_say_what_they_add_up_to():
    with pytest.raises(ValueError, match="median"):
        Statistics(np.ones((2, 2)), "median")
    with pytest.raises(ValueError, match="1 dimensions"):
        Statistics(np.ones(2), "ratio")
