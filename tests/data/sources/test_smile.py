"""A few support conversations with typical noise; and the counts of the real files."""

import json

import pytest

from listenwell.data.sources import dialogue_builder, find_data, quality, smile
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe


def pair(query="我很难过。", reply="愿意说说吗？", dialogue=1, turn=0):
    return {"dialogue": dialogue, "turn": turn, "query": query, "reply": reply}


@pytest.fixture
def make(tmp_path):
    def read(*records, name="train.jsonl", **options):
        (tmp_path / name).write_text("\n".join(json.dumps(record, ensure_ascii=False) for record in records))
        report = Report()
        return list(smile.read(tmp_path, report=report, **options)), report

    return read


def test_a_pair_is_a_dialogue_of_two_turns(make):
    (dialogue,), report = make(pair(dialogue=57, turn=8))
    assert [(turn.speaker, turn.text) for turn in dialogue.turns] == [
        ("speaker", "我很难过。"),
        ("listener", "愿意说说吗？"),
    ]
    assert (dialogue.id, dialogue.language, dialogue.split) == ("train-57-8", "zh", "train")
    assert (report.rows, report.dialogues) == (1, 1)
    assert not report.noted


def test_an_empty_side_a_duplicate_and_a_number_given_twice_are_counted(make):
    dialogues, report = make(pair(), pair(turn=2), pair(reply=" ", turn=2))
    assert [dialogue.id for dialogue in dialogues] == ["train-1-0", "train-1-2", "train-1-2~2"]
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 1}
    assert report.noted == {
        quality.DUPLICATE: 1,
        quality.ONE_TURN: 1,
        dialogue_builder.SAME_ID: 1,
        dialogue_builder.STRAY_SPACES: 1,
    }
    assert len(make(pair(), pair(turn=2), clean=True)[0]) == 1


@pytest.mark.parametrize("record", [[], {"query": "你好"}, pair(turn="0"), pair(dialogue=True), pair(reply=None)])
def test_a_malformed_line_is_named(make, record):
    with pytest.raises(SourceError, match=r"train\.jsonl line 2: .*, expected an object with the numbers dialogue and"):
        make(pair(), record)


def test_broken_json_is_named(tmp_path):
    (tmp_path / "test.jsonl").write_text('{"dialogue": 1\n')
    with pytest.raises(
        SourceError, match=r"test\.jsonl line 1: .*, expected one JSON value per line; correct the line"
    ):
        list(smile.read(tmp_path))


def test_a_dialogue_in_two_splits_is_named(make):
    make(pair(dialogue=3))
    with pytest.raises(SourceError, match=r"test\.jsonl line 1: dialogue 3, which is also in train\.jsonl, expected"):
        make(pair(dialogue=3, turn=2), name="test.jsonl")


# The real files


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("smile")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
def test_the_real_files_give_the_published_counts(real):
    report = Report()
    statistics = describe(smile.read(real, report=report), report)
    assert (report.rows, report.dialogues, report.turns) == (122_265, 122_265, 244_530)
    assert not report.dropped
    assert report.noted == {dialogue_builder.UNPRINTABLE: 6, dialogue_builder.STRAY_SPACES: 4, quality.JUNK_TURN: 1}
    assert statistics.duplicates == 0
    assert sum(1 for _ in smile.read(real, "valid")) == 3_640
    assert sum(1 for _ in smile.read(real, "test")) == 3_562
