from pathlib import Path

import pytest

from listenwell.data.dialogue import Label, Turn
from listenwell.data.sources import dialogue_builder, quality
from listenwell.data.sources.dialogue_builder import Builder, Utterance, taking_turns
from listenwell.data.sources.files import DataFile
from listenwell.data.sources.report import Report

DATA_FILE = DataFile(Path("some/test.txt"), "test")


@pytest.fixture
def builder():
    return Builder("made", Report())


def build(builder, *texts, labels=None, name="d"):
    given = None if labels is None else [Label(label) if label else None for label in labels]
    return builder.build(name, taking_turns(texts, 7, given), DATA_FILE, 7)


def test_a_clean_dialogue_comes_whole_and_is_counted(builder):
    dialogue = build(builder, "One", "Two", "Three", labels=["joy", None, "sad"])
    assert dialogue.turns == (
        Turn("speaker", "One", Label("joy")),
        Turn("listener", "Two"),
        Turn("speaker", "Three", Label("sad")),
    )
    assert (dialogue.id, dialogue.source, dialogue.split, dialogue.language) == ("d", "made", "test", "en")
    report = builder.report
    assert (report.rows, report.conversations, report.dialogues, report.turns) == (1, 1, 1, 3)
    assert not report.noted


def test_dirt_is_noted_with_its_place(builder):
    dialogue = build(builder, " Hello  you", "5", "Itâ€™s", "Itâ€™s")
    assert [turn.text for turn in dialogue.turns] == ["Hello you", "5", "Itâ€™s", "Itâ€™s"]
    assert builder.report.noted == {
        dialogue_builder.STRAY_SPACES: 1,
        quality.JUNK_TURN: 1,
        quality.GARBLED: 2,
        quality.REPEATED_TURN: 1,
    }
    assert str(builder.report.places[quality.JUNK_TURN][0]) == "test.txt:7 '5'"


def test_unprintable_characters_are_removed_or_mended(builder):
    (first, second) = build(builder, "a\x7fb\x92c \x96 d\x9d\ufeff", "family: 👨\u200d👩\u200d👧 \ud83d").turns
    assert first.text == "ab’c – d"
    assert second.text == "family: 👨\u200d👩\u200d👧 \ufffd"
    assert builder.report.noted == {dialogue_builder.UNPRINTABLE: 1, quality.GARBLED: 1}


def test_an_empty_turn_is_dropped_and_its_neighbours_joined(builder):
    dialogue = build(builder, "One", " ", "Two", "Three", labels=["joy", "joy", "sad", "sad"])
    assert dialogue.turns == (Turn("speaker", "One Two"), Turn("listener", "Three", Label("sad")))
    report = builder.report
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 1}
    assert report.noted == {
        dialogue_builder.STRAY_SPACES: 1,
        dialogue_builder.SAME_ROLE: 1,
        dialogue_builder.MIXED_LABELS: 1,
    }


def test_joining_can_be_left_out_and_is_without_space_in_chinese():
    said = [Utterance("speaker", "好", 1, Label("joy")), Utterance("speaker", "吧", 1, Label("joy"))]
    joined = Builder("made", Report(), language="zh").build("d", said, DATA_FILE, 1)
    assert joined.turns == (Turn("speaker", "好吧", Label("joy")),)
    apart = Builder("made", Report(), join=False).build("d", said, DATA_FILE, 1)
    assert [turn.text for turn in apart.turns] == ["好", "吧"]


def test_nothing_left_is_a_dropped_conversation(builder):
    assert build(builder, "", "\x7f") is None
    report = builder.report
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 2, dialogue_builder.NOTHING_LEFT: 1}
    assert (report.conversations, report.dialogues) == (1, 0)
    builder.refuse("too odd", DATA_FILE, 3, "x")
    assert (report.rows, report.conversations, report.dropped["too odd"]) == (2, 2, 1)


def test_one_turn_is_noted_but_not_where_it_is_the_rule(builder):
    assert len(build(builder, "Alone").turns) == 1
    assert builder.report.noted == {quality.ONE_TURN: 1}
    single = Builder("made", Report(), single_turn=True)
    assert build(single, "Alone") is not None
    assert not single.report.noted


def test_duplicates_are_noted_and_other_labels_of_theirs(builder):
    for labels in (["joy", "sad"], ["joy", "sad"], ["sad", "sad"]):
        assert build(builder, "One", "Two", labels=labels) is not None
    assert builder.report.noted == {quality.DUPLICATE: 2, dialogue_builder.OTHER_LABEL: 1}


def test_clean_drops_duplicates_and_cuts_at_junk():
    builder = Builder("made", Report(), clean=True)
    assert [turn.text for turn in build(builder, "One", "Two", "5", "Four").turns] == ["One", "Two"]
    assert build(builder, "One", "Two") is None
    assert build(builder, "...") is None
    assert builder.report.dropped == {
        quality.JUNK_TURN: 2,
        dialogue_builder.CUT: 1,
        quality.DUPLICATE: 1,
        dialogue_builder.NOTHING_LEFT: 1,
    }


def test_names_stay_apart(builder):
    assert [builder.name(name, DATA_FILE, 1) for name in ("a", "b", "a", "a")] == ["a", "b", "a~2", "a~3"]
    assert builder.report.noted == {dialogue_builder.SAME_ID: 2}
