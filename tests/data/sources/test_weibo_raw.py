"""A few threads with typical noise; and the counts of the real files."""

import json

import pytest

from listenwell.data.sources import dialogue_builder, find_data, quality, weibo_raw
from listenwell.data.sources.report import Report, SourceError


@pytest.fixture
def make(tmp_path):
    def read(*threads, name="test1_testdata.jsonl", **options):
        (tmp_path / name).write_text("\n".join(json.dumps(thread, ensure_ascii=False) for thread in threads))
        report = Report()
        return list(weibo_raw.read(tmp_path, report=report, **options)), report

    return read


def test_a_thread_is_a_dialogue_whose_texts_stay_as_they_come(make):
    (dialogue,), report = make(["#话题# 好吗[哈哈]", "好啊！！！http://t.cn/x", "走"])
    assert [turn.text for turn in dialogue.turns] == ["#话题# 好吗[哈哈]", "好啊！！！http://t.cn/x", "走"]
    assert [turn.speaker for turn in dialogue.turns] == ["speaker", "listener", "speaker"]
    assert (dialogue.id, dialogue.language) == ("test1_testdata-1", "zh")
    assert not report.noted


def test_a_thread_that_stands_in_two_files_is_in_one_split_and_noted(make, tmp_path):
    make(["去吗", "去"])
    dialogues, report = make(["去吗", "去"], name="test1_testdata2.jsonl")
    assert len({dialogue.split for dialogue in dialogues}) == 1
    assert len({dialogue.id for dialogue in dialogues}) == 2
    assert report.noted == {quality.DUPLICATE: 1}
    assert len(list(weibo_raw.read(tmp_path, clean=True))) == 1


@pytest.mark.parametrize("thread", [[], {}, "你好", ["你好", 5]])
def test_a_malformed_thread_is_named(make, thread):
    with pytest.raises(SourceError, match=r"test1_testdata\.jsonl line 2: .*, expected a thread: a list of strings"):
        make(["你好", "好"], thread)


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("weibo-raw")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
def test_the_real_files_give_the_counts(real):
    report = Report()
    splits = [dialogue.split for dialogue in weibo_raw.read(real, report=report)]
    assert [splits.count(name) for name in ("train", "valid", "test")] == [2_384, 321, 311]
    assert (report.rows, report.turns) == (3_016, 15_590)
    assert not report.dropped
    assert report.noted == {quality.DUPLICATE: 1_000, dialogue_builder.STRAY_SPACES: 419, quality.JUNK_TURN: 1}
