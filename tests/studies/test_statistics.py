"""Every statistic equals that of the reference package to 1e-9, on random ratings."""

from __future__ import annotations

import math
from itertools import combinations

import krippendorff
import numpy as np
import pytest

pytest.importorskip("sqlalchemy")
import statsmodels.api as sm
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.descriptivestats import sign_test as statsmodels_sign_test
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from listenwell.studies import davidson
from listenwell.studies.agreement import fleiss_kappa, krippendorff_alpha, mean_over_pairs, weighted_kappa
from listenwell.studies.agreement_tables import _plain
from listenwell.studies.statistics import holm, mean_of_items, paired_t, share, sign_test
from listenwell.studies.tie_break import majority

CLOSE = {"rel": 0, "abs": 1e-9}


def ratings(seed: int, units: int = 40, raters: int = 4, missing: float = 0.0) -> np.ndarray:
    """(raters, units) on a scale from 1 to 5, with some agreement; nan where there is no rating."""
    generator = np.random.default_rng(seed)
    true = generator.integers(1, 6, units)
    values = np.clip(true + generator.integers(-1, 2, (raters, units)), 1, 5).astype(float)
    values[generator.random((raters, units)) < missing] = np.nan
    return values


def as_units(table: np.ndarray) -> dict:
    return {
        unit: {f"r{rater}": int(table[rater, unit]) for rater in range(len(table)) if not np.isnan(table[rater, unit])}
        for unit in range(table.shape[1])
    }


@pytest.mark.parametrize("seed", range(5))
def test_fleiss_kappa_is_that_of_statsmodels(seed: int):
    table = ratings(seed)
    expected = statsmodels_fleiss(aggregate_raters(table.T.astype(int))[0])
    kappa, units, raters = fleiss_kappa(as_units(table))
    assert kappa == pytest.approx(expected, **CLOSE)
    assert (units, raters) == (40, 4)


def test_fleiss_kappa_takes_the_units_with_the_commonest_number_of_raters():
    table = ratings(3)
    units = as_units(table)
    del units[0]["r0"]
    expected = statsmodels_fleiss(aggregate_raters(table.T.astype(int)[1:])[0])
    assert fleiss_kappa(units)[0] == pytest.approx(expected, **CLOSE)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(4))
def test_alpha_is_that_of_the_reference_package_with_gaps_too(level: str, seed: int):
    table = ratings(seed, missing=0.3)
    expected = krippendorff.alpha(reliability_data=table, level_of_measurement=level, value_domain=[1, 2, 3, 4, 5])
    found = krippendorff_alpha(as_units(table), level, [1, 2, 3, 4, 5])  # type: ignore[arg-type]
    assert found == pytest.approx(expected, **CLOSE)


def test_alpha_of_words_in_an_order_is_that_of_their_numbers():
    table = ratings(7)
    words = ["awful", "bad", "okay", "good", "great"]
    named = {unit: {r: words[int(v) - 1] for r, v in given.items()} for unit, given in as_units(table).items()}
    assert krippendorff_alpha(named, "ordinal", words) == pytest.approx(
        krippendorff_alpha(as_units(table), "ordinal"), **CLOSE
    )


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
@pytest.mark.parametrize("seed", range(4))
def test_weighted_kappa_is_that_of_sklearn(weights: str, seed: int):
    first, second = ratings(seed)[:2].astype(int).tolist()
    expected = cohen_kappa_score(first, second, labels=[1, 2, 3, 4, 5], weights=weights)
    assert weighted_kappa(first, second, [1, 2, 3, 4, 5], weights) == pytest.approx(expected, **CLOSE)  # type: ignore[arg-type]


def test_kappa_without_weights_is_that_of_sklearn():
    first, second = ratings(1)[:2].astype(int).tolist()
    assert _plain(first, second) == pytest.approx(cohen_kappa_score(first, second), **CLOSE)


def test_the_mean_over_pairs_is_over_every_pair_by_its_size():
    table = ratings(2)
    scale = [1, 2, 3, 4, 5]
    mean, pairs = mean_over_pairs(as_units(table), lambda a, b: weighted_kappa(a, b, scale, "quadratic"))
    expected = [
        cohen_kappa_score(table[a].astype(int), table[b].astype(int), labels=scale, weights="quadratic")
        for a, b in combinations(range(4), 2)
    ]
    assert mean == pytest.approx(np.mean(expected), **CLOSE)
    assert pairs == 6


def test_agreement_that_is_not_defined_is_absent():
    everything_the_same = {unit: {"a": 3, "b": 3} for unit in range(5)}
    assert fleiss_kappa(everything_the_same) is None
    assert krippendorff_alpha(everything_the_same, "ordinal") is None
    assert fleiss_kappa({0: {"a": 1}}) is None
    assert fleiss_kappa({}) is None
    assert weighted_kappa([3, 3], [3, 3], [1, 3], "linear") is None


@pytest.mark.parametrize("seed", range(3))
def test_means_have_statsmodels_interval(seed: int):
    values = np.random.default_rng(seed).normal(3, 1, 57)
    found = mean_of_items(list(values))
    low, high = DescrStatsW(values).tconfint_mean()
    assert (found.value, found.low, found.high) == pytest.approx((values.mean(), low, high), **CLOSE)
    assert mean_of_items([]) is None
    assert mean_of_items([2.0]).low is None


@pytest.mark.parametrize(("count", "total"), [(0, 10), (3, 10), (128, 128), (57, 300)])
def test_shares_have_wilsons_interval(count: int, total: int):
    found = share(count, total)
    low, high = proportion_confint(count, total, method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high), **CLOSE)
    assert share(0, 0) is None


def test_the_paired_t_test_is_scipys():
    generator = np.random.default_rng(4)
    first, second = generator.normal(3, 1, 50), generator.normal(3.3, 1, 50)
    assert paired_t(first, second) == pytest.approx(stats.ttest_rel(first, second).pvalue, **CLOSE)
    assert paired_t([1, 2], [1, 2]) is None


@pytest.mark.parametrize(("wins", "losses"), [(10, 3), (40, 55), (7, 7)])
def test_the_sign_test_is_that_of_statsmodels(wins: int, losses: int):
    _, expected = statsmodels_sign_test(np.array([1.0] * wins + [-1.0] * losses))
    assert sign_test(wins, losses) == pytest.approx(expected, **CLOSE)
    assert sign_test(0, 0) is None


@pytest.mark.parametrize("seed", range(10))
def test_holms_correction_is_that_of_statsmodels(seed: int):
    generator = np.random.default_rng(seed)
    p_values = list(generator.random(generator.integers(1, 12)) ** 3)
    p_values.append(p_values[0])  # two that are equal
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(list(expected), **CLOSE)


def test_tests_that_could_not_be_made_do_not_count_for_holm():
    assert holm([0.01, None, 0.04]) == [pytest.approx(0.02), None, pytest.approx(0.04)]


def test_davidson_of_two_systems_has_the_closed_form():
    """π_a / π_b = wins / losses and ν = ties / √(wins · losses)."""
    wins, losses, ties = 42.0, 25.0, 33.0
    fitted = davidson.fit({("a", "b"): (wins, losses, ties)})
    assert fitted.strengths["a"] - fitted.strengths["b"] == pytest.approx(math.log(wins / losses), **CLOSE)
    assert fitted.log_tie == pytest.approx(math.log(ties / math.sqrt(wins * losses)), **CLOSE)
    assert fitted.probabilities("a", "b") == pytest.approx((0.42, 0.25, 0.33), **CLOSE)


def test_davidson_of_several_systems_is_statsmodels_log_linear_model():
    """Fienberg's trick: the multinomial logit is a Poisson model with one constant per pair."""
    counts = {("a", "b"): (30, 20, 25), ("a", "c"): (41, 11, 20), ("b", "c"): (25, 19, 31), ("a", "d"): (22, 28, 15)}
    systems = ["a", "b", "c", "d"]
    rows, observed = [], []
    for number, (pair, outcome) in enumerate(counts.items()):
        for place, count in enumerate(outcome):
            row = np.zeros(len(systems) + 1 + len(counts))
            if place == 2:
                row[[systems.index(pair[0]), systems.index(pair[1])]] = 0.5
                row[len(systems)] = 1
            else:
                row[systems.index(pair[place])] = 1
            row[len(systems) + 1 + number] = 1
            rows.append(row)
            observed.append(count)
    design = np.delete(np.array(rows), 0, axis=1)  # the first system's strength is zero
    glm = sm.GLM(observed, design, family=sm.families.Poisson()).fit(tol=1e-14, maxiter=200)
    fitted = davidson.fit(counts)
    gaps = [fitted.strengths[name] - fitted.strengths["a"] for name in systems[1:]]
    assert gaps == pytest.approx(list(glm.params[:3]), **CLOSE)
    assert fitted.log_tie == pytest.approx(glm.params[3], **CLOSE)
    assert sum(fitted.strengths.values()) == pytest.approx(0, **CLOSE)


def test_davidsons_intervals_cover_the_truth():
    generator = np.random.default_rng(8)
    true = {"a": 0.5, "b": 0.0, "c": -0.5}
    covered = []
    for _ in range(200):
        counts = {}
        for first, second in combinations(true, 2):
            logits = np.array([true[first], true[second], -0.3 + (true[first] + true[second]) / 2])
            shares = np.exp(logits) / np.exp(logits).sum()
            counts[first, second] = tuple(generator.multinomial(100, shares))
        fitted = davidson.fit(counts)
        low, high = fitted.interval("a")
        covered.append(low <= 0.5 <= high)
    assert 0.9 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {("a", "b"): (10, 0, 5)},
        {("a", "b"): (0, 0, 5), ("c", "d"): (3, 2, 1)},
        {("a", "b"): (10, 0, 0)},
    ],
)
def test_davidson_without_a_maximum_is_absent(counts: dict):
    assert davidson.fit(counts) is None


def test_davidson_without_ties_is_bradley_and_terrys_model():
    fitted = davidson.fit({("a", "b"): (30, 10, 0)})
    assert fitted.strengths["a"] - fitted.strengths["b"] == pytest.approx(math.log(3), **CLOSE)
    assert fitted.probabilities("a", "b") == pytest.approx((0.75, 0.25, 0.0), **CLOSE)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["win", "win", "loss"], "win"),
        (["tie", "both-bad", "win"], "tie"),
        (["both-bad", "both-bad", "win"], "both-bad"),
        (["win", "loss", "tie"], None),
        (["win", "loss", "tie", "loss"], "loss"),
        (["win", "loss"], None),
    ],
)
def test_the_majority_decides_and_both_bad_is_a_kind_of_tie(said: list[str], expected: str | None):
    assert majority(said) == expected
