import pytest

from listenwell.data.dialogue import Dialogue, Label, Turn
from listenwell.data.relabel import by_polarity
from listenwell.data.sources import SOURCES, dailydialog, goemotions
from listenwell.labels.polarity import one_polarity, polarity_in
from listenwell.labels.sets import DAILYDIALOG, GOEMOTIONS, SET_OF_SOURCE, label_set
from listenwell.labels.taxonomy import EMOTIONS, INTENTS


def test_every_set_of_a_source_belongs_to_one():
    assert set(SET_OF_SOURCE) <= set(SOURCES)


@pytest.mark.parametrize(
    ("source", "size"),
    [
        ("dailydialog", 7),
        ("emotionlines", 8),
        ("goemotions", 28),
        ("smp2020-ewect", 6),
        ("nlpcc2014", 8),
        ("nlpcc2013", 8),
        ("nlpcc-sentences", 8),
        ("weibo-senti", 3),
    ],
)
def test_every_label_of_a_corpus_has_a_polarity(source, size):
    labels = SET_OF_SOURCE[source]
    assert len(labels) == len(labels.polarity) == size
    assert "positive" in labels.polarity.values()


def test_the_sets_are_the_labels_that_the_readers_give():
    assert DAILYDIALOG.labels == dailydialog.EMOTIONS
    assert GOEMOTIONS.labels == goemotions.LABELS


def test_goemotions_is_grouped_as_by_its_authors():
    groups = list(GOEMOTIONS.polarity.values())
    assert [groups.count(name) for name in ("positive", "negative", "ambiguous", "neutral")] == [12, 11, 4, 1]


def test_the_intents_of_edos_have_no_polarity():
    assert all(polarity_in("edos", name) in ("positive", "negative") for name in EMOTIONS)
    assert {polarity_in("edos", name) for name in INTENTS} == {None}
    assert polarity_in("edos", "Neutral") == "neutral"


def test_an_unknown_source_of_labels_gets_the_near_one():
    with pytest.raises(ValueError, match="unknown source of labels 'goemotion'; did you mean 'goemotions'"):
        polarity_in("goemotion", "joy")


@pytest.mark.parametrize(
    ("source", "labels", "expected"),
    [
        ("goemotions", ["joy"], "positive"),
        ("goemotions", ["joy", "love"], "positive"),
        ("goemotions", ["anger", "neutral"], None),
        ("goemotions", ["joy", "grief"], None),
        ("goemotions", ["curiosity"], None),
        ("goemotions", ["joy", "surprise"], None),
        ("edos", ["devastated"], "negative"),
        ("edos", ["questioning"], "neutral"),
        ("edos", ["consoling"], None),
        ("edos", ["a worker's own words"], None),
        ("emotionlines", ["questioning"], None),
        ("empathetic-dialogues", ["suggesting"], "neutral"),
        ("goemotions", ["negative"], "negative"),
        ("goemotions", [], None),
        ("nlpcc-sentences", ["like"], "positive"),
        ("nlpcc2013", ["surprise"], None),
        ("weibo-senti", ["negative"], "negative"),
    ],
)
def test_the_one_polarity_of_several_labels(source, labels, expected):
    assert one_polarity(source, labels) == expected


def test_a_dialogue_s_labels_are_mapped_and_who_gave_them_stays():
    turns = (
        Turn("speaker", "I won", Label("joyful", "machine", 0.8)),
        Turn("listener", "I see", Label("acknowledging")),
        Turn("speaker", "yes"),
    )
    actual = by_polarity(Dialogue("d", turns, source="edos"))
    assert [turn.label for turn in actual.turns] == [Label("positive", "machine", 0.8), None, None]
    assert [turn.text for turn in actual.turns] == [turn.text for turn in turns]
    assert by_polarity(actual) == actual


def test_a_classifier_of_polarity_tells_three_labels_apart():
    assert label_set("polarity").labels == ("negative", "neutral", "positive")
