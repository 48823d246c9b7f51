import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, f1_score, precision_score, recall_score, top_k_accuracy_score

from listenwell.metrics import accuracy_at, confusion, macro_f1, weighted_f1, weighted_precision, weighted_recall
from listenwell.metrics.emotion import ABSENT

GENERATOR = np.random.default_rng(0)
GOLD = GENERATOR.integers(0, 6, size=200)
PROBABILITIES = GENERATOR.dirichlet(np.ones(8), size=200)  # classes 6 and 7 are predicted but never gold
PROBABILITIES[np.arange(200), GOLD] += 0.2
PREDICTED = PROBABILITIES.argmax(axis=1)

tables = st.integers(1, 12).flatmap(
    lambda items: st.tuples(
        st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=items, max_size=items),
        st.lists(st.integers(0, 4), min_size=items, max_size=items),
    )
)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_accuracy_agrees_with_scikit_learn(k):
    expected = 100 * top_k_accuracy_score(GOLD, PROBABILITIES, k=k, labels=range(8))
    assert accuracy_at(PROBABILITIES, GOLD, k).value == pytest.approx(expected)


@pytest.mark.parametrize(("score", "average"), [(macro_f1, "macro"), (weighted_f1, "weighted")])
def test_f1_agrees_with_scikit_learn(score, average):
    result = score(PROBABILITIES, GOLD)
    assert result.value == pytest.approx(100 * f1_score(GOLD, PREDICTED, average=average))
    assert result.low < result.value < result.high
    np.testing.assert_array_equal(result.items, 100.0 * (GOLD == PREDICTED))


@pytest.mark.parametrize(("score", "theirs"), [(weighted_precision, precision_score), (weighted_recall, recall_score)])
def test_weighted_precision_and_recall_agree_with_scikit_learn(score, theirs):
    result = score(PROBABILITIES, GOLD)
    assert result.value == pytest.approx(100 * theirs(GOLD, PREDICTED, average="weighted", zero_division=0))
    assert result.low < result.value < result.high
    assert result.signature["average"] == "weighted"
    gold, never = [0, 1, 1], np.eye(3)[[0, 0, 2]]  # class 1 is never predicted
    assert score(never, gold).value == pytest.approx(100 * theirs(gold, [0, 0, 2], average="weighted", zero_division=0))


def test_a_class_on_neither_side_is_left_out_of_macro_f1_as_scikit_learn_does():
    gold, scores = [0, 0, 2], np.eye(4)[[0, 2, 2]]
    assert macro_f1(scores, gold).value == pytest.approx(100 * f1_score(gold, [0, 2, 2], average="macro"))


def test_the_confusion_has_gold_rows_and_heard_columns():
    np.testing.assert_array_equal(confusion(PROBABILITIES, GOLD), confusion_matrix(GOLD, PREDICTED, labels=range(8)))


def test_logarithms_rank_as_probabilities_do_even_where_one_is_minus_infinity():
    with np.errstate(divide="ignore"):
        logs = np.log([[0.0, 0.7, 0.3], [0.5, 0.0, 0.5]])
    assert accuracy_at(logs, [2, 2], 2).value == 100


def test_ties_go_to_the_lower_id():
    scores = [[0.4, 0.4, 0.2], [0.4, 0.4, 0.2]]
    assert list(accuracy_at(scores, [0, 1], 1).items) == [100, 0]
    assert accuracy_at(scores, [0, 1], 2).value == 100
    np.testing.assert_array_equal(confusion(scores, [0, 1])[:, 0], [1, 1, 0])


@settings(max_examples=50, deadline=None)
@given(tables)
def test_accuracy_does_not_fall_as_k_grows_and_ends_at_100(table):
    scores, gold = table
    values = [accuracy_at(scores, gold, k, resamples=0).value for k in range(1, 6)]
    assert values == sorted(values)
    assert values[-1] == 100


@settings(max_examples=30, deadline=None)
@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_items_does_not_matter(table, random):
    scores, gold = table
    order = random.sample(range(len(gold)), len(gold))
    shuffled = [scores[i] for i in order], [gold[i] for i in order]
    for score in (accuracy_at, macro_f1, weighted_f1):
        assert score(*shuffled, resamples=0).value == pytest.approx(score(scores, gold, resamples=0).value)


@settings(max_examples=30, deadline=None)
@given(tables)
def test_the_confusion_holds_every_item_and_its_diagonal_the_hits(table):
    scores, gold = table
    cells = confusion(scores, gold)
    assert cells.sum() == len(gold)
    assert 100 * np.trace(cells) / len(gold) == pytest.approx(accuracy_at(scores, gold, resamples=0).value)


def test_items_without_gold_are_left_out_and_counted():
    score = accuracy_at([[1, 0], [np.nan, 0], [1, 0]], [0, ABSENT, 1])
    assert score.value == 50
    assert (score.signature["items"], score.signature["absent"]) == ("2", "1")
    assert len(score.items) == 2


def test_absent_is_what_the_models_call_absent():
    from listenwell import contract

    assert contract.ABSENT == ABSENT


@pytest.mark.parametrize(
    ("scores", "gold", "message"),
    [
        ([[1, 0], [0, 1]], [0], "2 scores, 1 gold"),
        ([[1, 0]], [2], "item 0: gold id 2, but there are 2 classes"),
        ([[1, 0], [1, 0]], [0, -1], "item 1: gold id -1"),
        ([[1, np.nan]], [0], "item 0: a score is nan"),
        ([1, 0], [0], "shape"),
        ([[1, 0]], [0.5], "whole number"),
        ([[1, 0]], [ABSENT], "none of 1 items"),
        (np.empty((0, 2)), [], "none of 0 items"),
    ],
)
def test_what_cannot_be_right_is_refused(scores, gold, message):
    with pytest.raises(ValueError, match=message):
        accuracy_at(scores, gold)


@pytest.mark.parametrize("k", [0, 3])
def test_k_lies_between_1_and_the_number_of_classes(k):
    with pytest.raises(ValueError, match=f"accuracy@{k} of 2 classes"):
        accuracy_at([[1, 0]], [0], k)
