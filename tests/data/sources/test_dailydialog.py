"""A small corpus in the official layout, with every kind of noise; and the golden counts of the real files."""

import pytest

from listenwell.data.dialogue import Label, Turn
from listenwell.data.sources import dailydialog, data_files, dialogue_builder, find_data, quality
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe

GOOD = "The kitchen stinks . __eou__ I ’ ll throw out the garbage . __eou__"


@pytest.fixture
def make(tmp_path):
    """Write (text, emotions) lines in the official layout and read them."""

    def read(*rows, folder="test", **options):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name, column in (("", 0), ("emotion_", 1)):
            path = tmp_path / folder / f"dialogues_{name}{folder}.txt"
            path.write_text("".join(f"{row[column]}\n" for row in rows), encoding="utf-8")
        report = Report()
        return list(dailydialog.read(tmp_path, report=report, **options)), report

    return read


def test_a_line_is_a_dialogue_of_two_people_who_alternate(make):
    (dialogue,), report = make((GOOD, "2 0 "))
    assert dialogue.turns == (
        Turn("speaker", "The kitchen stinks.", Label("disgust")),
        Turn("listener", "I’ll throw out the garbage.", Label("no emotion")),
    )
    assert (dialogue.id, dialogue.source, dialogue.split) == ("test-1", "dailydialog", "test")
    assert (report.rows, report.conversations, report.dialogues, report.turns) == (1, 1, 1, 2)
    assert not report.noted


def test_the_spaces_can_be_left_as_published(make):
    (dialogue,), _ = make((GOOD, "2 0"), detokenised=False)
    assert dialogue.turns[1].text == "I ’ ll throw out the garbage ."


def test_the_last_mark_may_be_missing_and_blank_lines_are_none(make):
    dialogues, report = make((GOOD.removesuffix("__eou__"), "2 0"), ("", ""), ("Hi . __eou__ Ho . __eou__", "0 0"))
    assert [dialogue.id for dialogue in dialogues] == ["test-1", "test-3"]
    assert report.rows == 2


def test_another_number_of_labels_drops_the_line_and_too_many_such_are_an_error(make):
    good = [(f"Hi {n} __eou__ Ho", "0 4") for n in range(199)]
    dialogues, report = make(*good, (GOOD, "2 0 0"))
    assert len(dialogues) == 199
    assert report.dropped == {dailydialog.MISMATCH: 1}
    assert (report.rows, report.conversations) == (200, 200)
    with pytest.raises(SourceError) as caught:
        make(("Hi __eou__ Ho", "0 0"), (GOOD, "2 0 0"))
    assert str(caught.value) == (
        "dialogues_test.txt line 2: 2 turns, expected 3, as many as its labels; "
        "1 of 2 lines differ: get the files again, or use strict=False"
    )
    assert len(make(("Hi __eou__ Ho", "0 0"), (GOOD, "2 0 0"), strict=False)[0]) == 1


def test_an_empty_turn_is_dropped_and_its_neighbours_are_one_persons(make):
    (dialogue,), report = make(("One . __eou__ __eou__ Two . __eou__ Three . __eou__", "4 0 4 0"))
    assert [turn.text for turn in dialogue.turns] == ["One. Two.", "Three."]
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 1}
    assert report.noted == {dialogue_builder.SAME_ROLE: 1}


def test_an_unknown_label_number_is_an_error_that_tells_the_known(make):
    with pytest.raises(
        SourceError, match=r"dialogues_emotion_test\.txt line 1: the label '7', expected 0 no emotion, 1"
    ):
        make((GOOD, "2 7"))


def test_files_of_different_length_are_an_error(make, tmp_path):
    make((GOOD, "2 0"), (GOOD, "2 0"))
    (tmp_path / "test" / "dialogues_emotion_test.txt").write_text("2 0\n")
    with pytest.raises(
        SourceError, match=r"dialogues_emotion_test\.txt line 2: the end of the file, expected a line as"
    ):
        list(dailydialog.read(tmp_path))


def test_the_acts_can_be_read_instead(make, tmp_path):
    make((GOOD, "2 0"))
    with pytest.raises(FileNotFoundError, match="dialogues_act_… is not beside it"):
        dailydialog.read(tmp_path, label="act")
    (tmp_path / "test" / "dialogues_act_test.txt").write_text("1 4\n")
    (dialogue,) = dailydialog.read(tmp_path, label="act")
    assert [turn.label.name for turn in dialogue.turns] == ["inform", "commissive"]
    with pytest.raises(ValueError, match="unknown kind of label 'acts'; did you mean 'act'"):
        dailydialog.read(tmp_path, label="acts")


def test_splits_are_folders_and_a_file_finds_its_labels(make, tmp_path):
    make((GOOD, "2 0"))
    dialogues, _ = make((GOOD, "0 0"), folder="validation")
    assert [dialogue.split for dialogue in dialogues] == ["valid", "test"]
    assert [d.id for d in dailydialog.read(tmp_path / "test" / "dialogues_test.txt")] == ["test-1"]
    with pytest.raises(FileNotFoundError, match=r"train/dialogues_train\.txt is not there, found test, validation"):
        dailydialog.read(tmp_path, "train")


# The real files


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("dailydialog")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
@pytest.mark.parametrize(
    ("split", "turns", "replies", "junk", "duplicates"), [("valid", 8_069, 3_851, 7, 5), ("test", 7_740, 3_700, 6, 4)]
)
def test_the_real_files_give_the_published_counts(real, split, turns, replies, junk, duplicates):
    report = Report()
    statistics = describe(dailydialog.read(real, split, report=report), report)
    assert (report.conversations, report.dialogues, report.turns, statistics.replies) == (1_000, 1_000, turns, replies)
    assert not report.dropped
    assert (report.noted[quality.JUNK_TURN], report.noted[quality.DUPLICATE]) == (junk, duplicates)
    assert set(statistics.labels) == set(dailydialog.EMOTIONS)
    assert sum(statistics.labels.values()) == turns
    assert len(data_files("dailydialog", real, split)) == 2
