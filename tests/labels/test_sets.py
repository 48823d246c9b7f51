"""Label sets by name: those of the corpora, and custom ones."""

import pytest

from listenwell.labels import sets
from listenwell.labels.sets import LabelSet, is_built_in, label_set, own_label_sets, read_label_sets, register
from listenwell.labels.taxonomy import EMOTIONS, LABELS


@pytest.fixture
def registry(monkeypatch):
    """Sets registered here are removed afterwards."""
    monkeypatch.setattr(sets, "_REGISTERED", dict(sets._REGISTERED))


@pytest.mark.parametrize(
    ("name", "size", "first"),
    [
        ("emotion", 32, "afraid"),
        ("emotion-intent", 41, "afraid"),
        ("polarity", 3, "negative"),
        ("nlpcc", 8, "anger"),
        ("smp", 6, "happy"),
        ("goemotions", 28, "admiration"),
        ("dailydialog", 7, "no emotion"),
        ("emotionlines", 8, "neutral"),
    ],
)
def test_the_sets_of_the_corpora_are_known(name, size, first):
    labelled = label_set(name)
    assert (len(labelled), labelled.labels[0], labelled.ids[first]) == (size, first, 0)
    assert is_built_in(labelled)


def test_the_taxonomy_s_ids_are_those_of_its_sets():
    assert label_set("emotion").labels == EMOTIONS
    assert label_set("emotion-intent").labels == LABELS


def test_an_unknown_set_is_told_with_the_near_name_and_the_way_to_define_one():
    with pytest.raises(ValueError, match=r"unknown label set 'goemotion'; did you mean 'goemotions'.*label_sets"):
        label_set("goemotion")


def test_a_program_registers_its_own_set_once(registry):
    mine = register(LabelSet("mine", ("calm", "tense")))
    assert label_set("mine") is mine
    assert not is_built_in(mine)
    with pytest.raises(ValueError, match="another label set called mine, with 2 labels"):
        register(LabelSet("mine", ("calm", "tense", "numb")))


def test_sets_of_a_recipe_are_known_while_it_is_read_and_two_may_share_a_name():
    for labels in (("calm", "tense"), ("up", "down", "even")):
        with own_label_sets(read_label_sets({"mine": list(labels)})):
            assert label_set("mine").labels == labels
    with pytest.raises(ValueError, match="unknown label set 'mine'"):
        label_set("mine")


def test_a_set_is_written_as_it_was_read():
    plain = ["calm", "tense"]
    whole = {"labels": plain, "polarity": {"calm": "positive", "tense": "negative"}}
    for record in (plain, whole):
        assert LabelSet.from_json("mine", record).to_json() == record


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (["calm"], "1 labels, expected at least 2"),
        (["calm", "calm"], "'calm' occurs more than once"),
        ([True, "tense"], "needs quotes"),
        ("calm, tense", "expected a list of labels"),
        ({"labels": ["calm", "tense"], "polarity": {"tens": "negative"}}, "unknown label 'tens'; did you mean 'tense'"),
        ({"labels": ["calm", "tense"], "polarity": {"tense": "bad"}}, "unknown polarity of tense 'bad'"),
    ],
)
def test_a_set_that_cannot_be_says_why(record, message):
    with pytest.raises(ValueError, match=message):
        LabelSet.from_json("mine", record)
