"""A few posts with polarity, with typical noise; and the counts of the real file."""

import pytest

from listenwell.data.dialogue import Label, Turn
from listenwell.data.sources import dialogue_builder, find_data, quality, weibo_senti
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe


@pytest.fixture
def make(tmp_path):
    def read(*rows, header="label,review", **options):
        (tmp_path / "sample.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
        report = Report()
        return list(weibo_senti.read(tmp_path, report=report, **options)), report

    return read


def test_labels_are_positive_and_negative(make):
    dialogues, report = make('1,"好，[爱你]"', "0,\ufeff生病了[泪]")
    assert [dialogue.turns for dialogue in dialogues] == [
        (Turn("speaker", "好，[爱你]", Label("positive")),),
        (Turn("speaker", "生病了[泪]", Label("negative")),),
    ]
    assert {dialogue.language for dialogue in dialogues} == {"zh"}
    assert report.noted == {dialogue_builder.UNPRINTABLE: 1}


def test_emoticons_can_be_taken_out_and_do_not_move_a_post_to_another_split(make):
    rows = [f"1,第{n}天[哈哈]" for n in range(30)]
    splits = [dialogue.split for dialogue in make(*rows)[0]]
    dialogues, report = make(*rows, emoticons=False)
    assert [dialogue.split for dialogue in dialogues] == splits
    assert dialogues[3].turns[0].text == "第3天"
    assert report.noted == {weibo_senti.EMOTICONS: 30}


def test_a_post_of_emoticons_alone_is_dropped_without_them(make):
    dialogues, report = make("1,[哈哈][嘻嘻]", emoticons=False)
    assert not dialogues
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 1, dialogue_builder.NOTHING_LEFT: 1}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["2,好"], r"line 2: the label '2', expected 1 \(positive\) or 0 \(negative\)"),
        (["1,好", "1,好,坏"], r"line 3: 3 columns, expected 2 \(label, review\)"),
    ],
)
def test_malformed_rows_are_named(make, rows, message):
    with pytest.raises(SourceError, match=r"sample\.csv " + message):
        make(*rows)


def test_another_header_is_named(make):
    with pytest.raises(SourceError, match=r"sample\.csv line 1: the header 'a, b', expected label, review"):
        make("1,好", header="a,b")


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("weibo-senti")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
def test_the_real_file_gives_the_counts(real):
    report = Report()
    statistics = describe(weibo_senti.read(real, report=report), report)
    assert (report.rows, report.dialogues) == (2_400, 2_400)
    assert statistics.labels == {"positive": 1_200, "negative": 1_200}
    # Every post that occurs twice occurs once with each label.
    assert report.noted[quality.DUPLICATE] == report.noted[dialogue_builder.OTHER_LABEL] == 33
    report = Report()
    assert sum(1 for _ in weibo_senti.read(real, emoticons=False, report=report)) == 2_386
    assert report.noted[weibo_senti.EMOTICONS] == 2_400
