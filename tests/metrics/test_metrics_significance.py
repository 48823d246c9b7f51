import sys
import warnings

import numpy as np
import pytest
from scipy.stats import ttest_rel

from listenwell.metrics import (
    Score,
    Signature,
    bleu,
    distinct,
    mean_length,
    paired_bootstrap,
    paired_t_test,
    perplexity,
)


def score(items, better="higher", name="x"):
    items = np.asarray(items, dtype=float)
    return Score(name, float(items.mean()), items=items, signature=Signature(name), better=better)


GENERATOR = np.random.default_rng(0)
BASE = GENERATOR.normal(5, 3, size=120)
NOISE = GENERATOR.normal(0, 1, size=120)


@pytest.mark.parametrize("test", [paired_bootstrap, paired_t_test])
def test_a_steady_gain_is_seen_and_a_chance_one_is_not(test):
    gain = test(score(BASE + 0.5 + NOISE), score(BASE))
    chance = test(score(BASE + NOISE - NOISE.mean() + 0.01), score(BASE))
    assert gain.p < 0.01 < 0.05 < chance.p
    assert gain.low < gain.difference < gain.high
    assert gain.low > 0 > chance.low
    assert (gain.winner(), chance.winner()) == (0, None)


@pytest.mark.parametrize("test", [paired_bootstrap, paired_t_test])
def test_swapping_the_systems_turns_the_sign_and_keeps_p(test):
    one, other = score(BASE + NOISE), score(BASE)
    there, back = test(one, other), test(other, one)
    assert (there.difference, there.low, there.p) == pytest.approx((-back.difference, -back.high, back.p))


@pytest.mark.parametrize("test", [paired_bootstrap, paired_t_test])
def test_a_system_does_not_differ_from_itself(test):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = test(score(BASE), score(BASE))
    assert (result.difference, result.p, result.winner()) == (0, 1, None)


def test_where_lower_is_better_the_lower_wins():
    result = paired_t_test(score(BASE + 1 + NOISE, "lower"), score(BASE, "lower"))
    assert result.difference > 0
    assert result.winner() == 1


def test_the_t_test_is_scipys():
    result, expected = paired_t_test(score(BASE + NOISE), score(BASE)), ttest_rel(BASE + NOISE, BASE)
    interval = expected.confidence_interval()
    assert (result.p, result.low, result.high) == pytest.approx((expected.pvalue, interval.low, interval.high))


def test_the_bootstrap_agrees_with_the_t_test_on_a_mean():
    one, other = score(BASE + 0.15 + NOISE), score(BASE)
    assert paired_bootstrap(one, other, resamples=5000).p == pytest.approx(paired_t_test(one, other).p, abs=0.03)


def test_the_bootstrap_tests_the_number_of_the_corpus_not_the_mean_of_sentences():
    references = [["a", "b", "c", "d", "e"], ["f", "g"], ["h", "i", "j"]] * 4
    one = bleu([["a", "b", "c", "d"], ["f", "x"], ["h", "i", "j"]] * 4, references, 2)
    other = bleu([["a", "x", "c", "y"], ["f", "g"], ["h", "i", "x"]] * 4, references, 2)
    result = paired_bootstrap(one, other)
    assert result.difference == pytest.approx(one.value - other.value)
    assert result.difference != pytest.approx(one.items.mean() - other.items.mean())
    assert result == paired_bootstrap(one, other)


def test_perplexities_are_t_tested_in_the_log():
    one, other = perplexity([4.0, 9.0, 7.0], [2, 3, 4]), perplexity([5.0, 9.5, 9.0], [2, 3, 4])
    result = paired_t_test(one, other)
    assert result.difference == pytest.approx(np.mean([-0.5, -0.5 / 3, -0.5]))
    assert result.signature["on"] == "log-items"


@pytest.mark.parametrize("test", [paired_bootstrap, paired_t_test])
def test_another_number_of_items_is_refused_and_both_are_named(test):
    with pytest.raises(ValueError, match="x: a paired test needs the same items, found 3 and 2"):
        test(score([1, 2, 3]), score([1, 2]))


@pytest.mark.parametrize("test", [paired_bootstrap, paired_t_test])
def test_scores_of_two_names_or_without_items_are_refused(test):
    with pytest.raises(ValueError, match="'x' and 'y'"):
        test(score([1, 2]), score([1, 2], name="y"))
    with pytest.raises(ValueError, match=r"distinct-1 \(distinct\|n:1.* has no per-item values"):
        test(distinct([["a"]], 1), distinct([["b"]], 1))


def test_statistics_of_two_kinds_are_refused():
    length = mean_length([["a"], ["b", "c"]])
    other = perplexity([1.0, 2.0], [1, 2])
    renamed = Score("length", other.value, signature=other.signature, statistics=other.statistics, items=other.items)
    with pytest.raises(ValueError, match=r"differ in kind \(ratio, 2 columns; exp-ratio, 2 columns\)"):
        paired_bootstrap(length, renamed)


def test_too_little_to_test_is_refused():
    with pytest.raises(ValueError, match="at least 2 items, found 1"):
        paired_t_test(score([1]), score([2]))
    with pytest.raises(ValueError, match="at least one resample"):
        paired_bootstrap(score([1, 2]), score([2, 1]), resamples=0)


def test_without_scipy_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(ImportError, match=r"the paired t-test needs scipy: pip install 'listenwell\[metrics\]'"):
        paired_t_test(score([1, 2, 4]), score([2, 1, 1]))


def test_a_comparison_prints_as_a_sentence_would():
    text = str(paired_t_test(score(BASE + 0.5 + NOISE), score(BASE)))
    assert text.startswith("+0.")
    assert ", p = " in text
