"""A little chit-chat with every kind of noise; and the golden counts of the real files."""

import json

import pytest

from listenwell.data.sources import dialogue_builder, find_data, lccc, quality
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe


@pytest.fixture
def make(tmp_path):
    def read(*items, **options):
        text = json.dumps(items, ensure_ascii=False, indent=0)
        (tmp_path / "LCCC-base_valid.json").write_text(text, encoding="utf-8")
        report = Report()
        return list(lccc.read(tmp_path, report=report, **options)), report

    return read


def test_characters_are_joined_and_turns_alternate(make):
    (dialogue,), report = make(["我 饿 了 。", "打 c a l l ！", "T . T 好"])
    assert [turn.text for turn in dialogue.turns] == ["我饿了。", "打call！", "T.T好"]
    assert [turn.speaker for turn in dialogue.turns] == ["speaker", "listener", "speaker"]
    assert all(turn.label is None for turn in dialogue.turns)
    assert (dialogue.id, dialogue.language, dialogue.split) == ("valid-1", "zh", "valid")
    assert (report.rows, report.dialogues, report.turns) == (1, 1, 3)
    assert not report.noted


def test_dirt_is_noted_and_kept_and_clean_drops_it(make):
    items = [["好", "好", "。 。 。"], ["你 好", ""], ["你 好", " "]]
    dialogues, report = make(*items)
    assert [len(dialogue.turns) for dialogue in dialogues] == [3, 1, 1]
    assert report.noted == {quality.REPEATED_TURN: 1, quality.JUNK_TURN: 1, quality.ONE_TURN: 2, quality.DUPLICATE: 1}
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 2}
    assert [len(dialogue.turns) for dialogue in make(*items, clean=True)[0]] == [2, 1]


@pytest.mark.parametrize("item", [[], ["你 好", 5], "你 好", {"a": "b"}])
def test_a_malformed_dialogue_is_named(make, item):
    with pytest.raises(
        SourceError, match=r"LCCC-base_valid\.json line 6: .*, expected a dialogue: a list of strings; "
    ):
        make(["你 好", "你 好"], item)


def test_a_split_that_is_not_there_is_told_at_the_call(make, tmp_path):
    make(["你 好", "你 好"])
    with pytest.raises(FileNotFoundError, match=r"LCCC-base_train\.json is not there, found LCCC-base_valid\.json"):
        lccc.read(tmp_path, "train")


# The real files


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("lccc")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
def test_the_real_files_give_the_published_counts(real):
    pairs = 0
    for split, dialogues, turns, junk, repeated, duplicates in [
        ("valid", 20_000, 56_917, 61, 12, 4),
        ("test", 10_000, 29_008, 30, 13, 0),
    ]:
        report = Report()
        statistics = describe(lccc.read(real, split, report=report), report)
        assert (report.dialogues, report.turns) == (dialogues, turns)
        assert not report.dropped
        assert (report.noted[quality.JUNK_TURN], report.noted[quality.REPEATED_TURN]) == (junk, repeated)
        assert statistics.duplicates == report.noted[quality.DUPLICATE] == duplicates
        pairs += turns - dialogues
    assert pairs == 55_925
