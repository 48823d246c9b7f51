"""The calibration error by hand; macro precision and recall against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from listenwell import metrics


def test_the_calibration_error_by_hand():
    # Bins of width 0.2: 0.5 and 0.55 share one, 0.6 is in it too, 0.9 is alone, 1 is in the last.
    chances = np.array([[0.5, 0.5], [0.55, 0.45], [0.4, 0.6], [0.1, 0.9], [1.0, 0.0]])
    gold = np.array([0, 1, 1, 1, 0])
    middle = abs((0.5 + 0.55 + 0.6) / 3 - 2 / 3) * 3 / 5
    last = abs((0.9 + 1.0) / 2 - 1.0) * 2 / 5
    actual = metrics.calibration_error(chances, gold, bins=5, resamples=0)
    assert actual.value == pytest.approx(100 * (middle + last))
    assert (actual.name, actual.better, actual.unit) == ("ece", "lower", "%")
    assert str(actual.signature).startswith("ece|bins:5|width:equal|classes:2|items:5")


def test_who_is_as_sure_as_right_has_no_calibration_error():
    chances = np.tile([0.75, 0.25], (8, 1))
    assert metrics.calibration_error(chances, np.array([0] * 6 + [1] * 2), resamples=0).value == pytest.approx(0)
    actual = metrics.calibration_error(chances, np.array([1] * 8), resamples=50)
    assert actual.value == pytest.approx(75)
    assert actual.low == pytest.approx(75), "each item is equally wrong, so resampling changes nothing"
    np.testing.assert_allclose(actual.items, 75)


def test_only_probabilities_are_calibrated():
    with pytest.raises(ValueError, match="at least 0 and sum to 1"):
        metrics.calibration_error(np.log([[0.5, 0.5]]), np.array([0]))


@pytest.mark.parametrize(
    ("measure", "column"), [(metrics.macro_precision, 0), (metrics.macro_recall, 1), (metrics.macro_f1, 2)]
)
def test_macro_averages_are_scikit_learns(measure, column):
    random = np.random.default_rng(4)
    scores = random.normal(size=(60, 9))
    scores[:, 7] -= 9  # never predicted
    gold = random.choice([0, 1, 2, 3, 7], size=60)
    expected = precision_recall_fscore_support(gold, scores.argmax(axis=1), average="macro", zero_division=0)[column]
    actual = measure(scores, gold, resamples=20)
    assert actual.value == pytest.approx(100 * expected)
    assert actual.low < actual.high
    assert actual.signature["average"] == "macro"
