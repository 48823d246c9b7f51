"""A small three-turn chat corpus with typical noise; and the counts of the real file."""

import pytest

from listenwell.data.sources import chinese_chat, dialogue_builder, find_data, quality
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.splits import split_of_texts


@pytest.fixture
def make(tmp_path):
    def read(*lines, split=None, **options):
        (tmp_path / "three_turns.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        report = Report()
        return list(chinese_chat.read(tmp_path, split, report=report, **options)), report

    return read


def test_the_rewritten_turn_is_left_out(make):
    (dialogue,), report = make("想去海边\t\t哪里的\t\t南方的\t\t想去南方的海边")
    assert [turn.text for turn in dialogue.turns] == ["想去海边", "哪里的", "南方的"]
    assert [turn.speaker for turn in dialogue.turns] == ["speaker", "listener", "speaker"]
    assert (dialogue.id, dialogue.language) == ("chat-1", "zh")
    assert not report.noted


def test_every_dialogue_is_in_the_split_that_its_turns_tell(make):
    lines = [f"第{n}\t\t好\t\t嗯\t\t嗯" for n in range(60)]
    splits = {name: make(*lines, split=name)[0] for name in ("train", "valid", "test")}
    assert sum(map(len, splits.values())) == 60
    assert all(splits.values())
    for name, dialogues in splits.items():
        assert all(split_of_texts(turn.text for turn in dialogue.turns) == name for dialogue in dialogues)


def test_duplicates_are_those_with_the_same_three_turns(make):
    lines = ["你好\t\t好\t\t吃了吗\t\t你吃了吗", "你好\t\t好\t\t吃了吗\t\t好你吃了吗"]
    assert make(*lines)[1].noted == {quality.DUPLICATE: 1}
    assert len(make(*lines, clean=True)[0]) == 1


def test_another_number_of_texts_is_named(make):
    with pytest.raises(SourceError, match=r"three_turns\.txt line 2: 3 texts, expected 4 with two tabs between them"):
        make("一\t\t二\t\t三\t\t三", "一\t\t二\t\t三")


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("chinese-chat")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
def test_the_real_file_gives_the_published_counts(real):
    report = Report()
    splits = [dialogue.split for dialogue in chinese_chat.read(real, report=report)]
    assert [splits.count(name) for name in ("train", "valid", "test")] == [16_005, 2_038, 1_957]
    assert (report.rows, report.turns) == (20_000, 59_996)
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 2}
    assert report.noted == {
        dialogue_builder.STRAY_SPACES: 302,
        quality.DUPLICATE: 49,
        quality.REPEATED_TURN: 34,
        quality.JUNK_TURN: 22,
        dialogue_builder.SAME_ROLE: 2,
        quality.ONE_TURN: 2,
    }
