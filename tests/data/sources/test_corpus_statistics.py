import json

import pytest

from listenwell.data.dialogue import Dialogue, Label, Turn
from listenwell.data.sources.report import Report
from listenwell.data.sources.statistics import describe


def dialogue(name, *texts, emotion="sad"):
    roles = ("speaker", "listener")
    turns = tuple(Turn(roles[n % 2], text, Label("neutral", "machine")) for n, text in enumerate(texts))
    return Dialogue(name, turns, Label(emotion))


def test_a_corpus_is_described_in_one_pass():
    report = Report()
    statistics = describe(
        iter(
            [dialogue("a", "one two", "three"), dialogue("b", "x", "y", "z", "w", emotion="proud"), dialogue("c", "x")]
        ),
        report,
    )
    assert (statistics.dialogues, statistics.turns, statistics.words, statistics.replies) == (3, 7, 8, 3)
    assert statistics.turns_per_dialogue == pytest.approx(7 / 3)
    assert statistics.words_per_turn == pytest.approx(8 / 7)
    assert statistics.emotions == {"sad": 2, "proud": 1}
    assert statistics.labels == {"neutral": 7}
    assert statistics.duplicates == 0
    assert statistics.report is report


def test_dialogues_of_equal_texts_are_duplicates_whatever_their_id_and_spaces():
    statistics = describe(
        [dialogue("a", "one two", "x"), dialogue("b", " one  two", "x"), dialogue("c", "one", "two x")]
    )
    assert statistics.duplicates == 1


def test_a_chinese_character_counts_as_a_word():
    assert describe([dialogue("a", "我很难过。", "OK 好")]).words == 7


def test_nothing_is_described_without_a_division_by_zero():
    statistics = describe([])
    assert statistics.words_per_turn == statistics.turns_per_dialogue == 0
    assert dict(statistics.table())["emotions"] == "none"


def test_statistics_are_json_with_the_report_of_their_reading():
    record = json.loads(json.dumps(describe([dialogue("a", "x", "y")], Report()).to_json()))
    assert record["replies"] == 1
    assert record["report"]["dropped"] == {}
    assert "report" not in describe([]).to_json()
