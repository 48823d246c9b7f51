"""A few scenes with every kind of noise; and the golden counts of the real files."""

import json

import pytest

from listenwell.data.dialogue import Label, Turn
from listenwell.data.sources import dialogue_builder, emotionlines, find_data, quality
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe


def scene(*said):
    """Utterances of (person, text) or (person, text, emotion)."""
    return [
        {"speaker": who, "utterance": text, "emotion": (*emotion, "neutral")[0], "annotation": "5000000"}
        for who, text, *emotion in said
    ]


@pytest.fixture
def make(tmp_path):
    def read(*scenes, **options):
        (tmp_path / "train.json").write_text(json.dumps(scenes, indent=1))
        report = Report()
        return list(emotionlines.read(tmp_path, "train", report=report, **options)), report

    return read


def test_two_people_are_speaker_and_listener(make):
    (dialogue,), report = make(scene(("Ross", "Hi.", "joy"), ("Joey", "What?", "Surprise"), ("Ross", "Nothing.")))
    assert dialogue.turns == (
        Turn("speaker", "Hi.", Label("joy")),
        Turn("listener", "What?", Label("surprise")),
        Turn("speaker", "Nothing.", Label("neutral")),
    )
    assert (dialogue.id, dialogue.split, dialogue.source) == ("train-1", "train", "emotionlines")
    assert (report.rows, report.conversations, report.dialogues, report.turns) == (3, 1, 1, 3)
    assert not report.noted


def test_among_more_people_the_role_changes_with_the_person(make):
    (dialogue,), report = make(scene(("Ross", "One"), ("Joey", "Two"), ("Monica", "Three"), ("All", "Four")))
    assert [turn.speaker for turn in dialogue.turns] == ["speaker", "listener"] * 2
    assert report.noted == {emotionlines.SEVERAL: 1}
    assert str(report.places[emotionlines.SEVERAL][0]) == "train.json:2 'ross, joey, monica, all'"


def test_what_one_person_says_in_a_row_is_one_turn(make):
    said = scene(
        ("Ross", "One.", "joy"), ("ross ", "Two.", "joy"), ("Joey", "Three.", "fear"), ("Joey", "Four.", "joy")
    )
    (dialogue,), report = make(said)
    assert dialogue.turns == (Turn("speaker", "One. Two.", Label("joy")), Turn("listener", "Three. Four."))
    assert report.noted == {dialogue_builder.SAME_ROLE: 2, dialogue_builder.MIXED_LABELS: 1}
    assert report.rows == 4
    (apart,), report = make(said, join=False)
    assert [(turn.speaker, turn.label.name) for turn in apart.turns] == [
        ("speaker", "joy"),
        ("speaker", "joy"),
        ("listener", "fear"),
        ("listener", "joy"),
    ]
    assert not report.noted


def test_one_person_alone_is_kept_and_noted(make):
    (dialogue,), report = make(scene(("Ross", "Hello?"), ("Ross", "Anybody?")))
    assert len(dialogue.turns) == 1
    assert report.noted == {dialogue_builder.SAME_ROLE: 1, quality.ONE_TURN: 1}


def test_windows_characters_are_mended_and_dirt_is_noted(make):
    (dialogue,), report = make(
        scene(("Ross", "It\x92s  so \x96"), ("Joey", "..."), ("Ross", "Oh", "smug"), ("Joey", ""))
    )
    assert [turn.text for turn in dialogue.turns] == ["It’s so –", "...", "Oh"]
    assert dialogue.turns[2].label == Label("smug")
    assert report.noted == {
        dialogue_builder.UNPRINTABLE: 1,
        dialogue_builder.STRAY_SPACES: 1,
        quality.JUNK_TURN: 1,
        quality.UNKNOWN_LABEL: 1,
    }
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 1}


@pytest.mark.parametrize(
    ("item", "described"),
    [
        ({"speaker": "Ross"}, "{'speaker': 'Ross'}"),
        ([], "[]"),
        ([{"speaker": "Ross", "utterance": 5, "emotion": "joy"}], "utterance 1 is {'speaker': 'Ross', 'utterance': 5"),
    ],
)
def test_a_malformed_dialogue_is_named(make, item, described):
    with pytest.raises(SourceError) as caught:
        make(scene(("Ross", "Hi"), ("Joey", "Ho")), item)
    message = str(caught.value)
    assert message.startswith(f"train.json line 16: {described}")
    assert "expected a dialogue: a list of objects with speaker, utterance, emotion; correct the item" in message


def test_the_published_names_of_the_files_are_known(make, tmp_path):
    make(scene(("Ross", "Hi"), ("Joey", "Ho")))
    (tmp_path / "Friends").mkdir()
    (tmp_path / "train.json").rename(tmp_path / "Friends" / "friends_dev.json")
    assert [dialogue.split for dialogue in emotionlines.read(tmp_path)] == ["valid"]


# The real files


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("emotionlines")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
@pytest.mark.parametrize(
    ("split", "dialogues", "utterances", "turns", "several", "one_turn"),
    [("train", 720, 10_561, 8_356, 526, 13), ("valid", 80, 1_178, 952, 59, 0), ("test", 200, 2_764, 2_159, 142, 5)],
)
def test_the_real_files_give_the_published_counts(real, split, dialogues, utterances, turns, several, one_turn):
    report = Report()
    statistics = describe(emotionlines.read(real, split, report=report), report)
    assert (report.rows, report.dialogues, report.turns) == (utterances, dialogues, turns)
    assert not report.dropped
    assert report.noted[dialogue_builder.SAME_ROLE] == utterances - turns
    assert report.noted[dialogue_builder.MIXED_LABELS] == turns - sum(statistics.labels.values())
    assert (report.noted[emotionlines.SEVERAL], report.noted[quality.ONE_TURN]) == (several, one_turn)
    apart = describe(emotionlines.read(real, split, join=False))
    assert (sum(apart.labels.values()), len(apart.labels)) == (utterances, 8)
