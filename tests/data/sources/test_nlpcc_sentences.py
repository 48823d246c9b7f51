"""A few sentences, without those used as test data elsewhere; and the counts of the real files."""

import pytest

from listenwell.data.dialogue import Label, Turn
from listenwell.data.sources import data_files, find_data, nlpcc_overlap, nlpcc_sentences, quality
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe

POST = '<TestData><weibo id="1" emotion-type1="like"><sentence>{}</sentence></weibo></TestData>'


@pytest.fixture
def make(tmp_path):
    """Read sentences, next to a 2014 corpus whose only test post is 今天天气真好。"""
    folder, other = tmp_path / "nlpcc_sentences", tmp_path / "nlpcc2014_weibo"
    folder.mkdir()
    other.mkdir()
    (other / "ExpressionTest.xml").write_text(POST.format("今天天气真好。"), encoding="utf-8")
    for split in ("valid", "test"):
        (folder / f"{split}.tsv").write_text(f"none\t这 是 {split}\n", encoding="utf-8")

    def read(*lines, split="train", **options):
        (folder / "train.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        report = Report()
        return list(nlpcc_sentences.read(folder, split, report=report, **options)), report

    return read


def test_the_words_of_a_sentence_are_joined(make):
    (dialogue,), report = make("Sadness\tso   sad   today 我 好 累 [ 伤心 ]")
    assert dialogue.turns == (Turn("speaker", "so sad today我好累[伤心]", Label("sadness")),)
    assert (dialogue.id, dialogue.language, dialogue.split) == ("train-1", "zh", "train")
    assert not report.noted


def test_what_is_scored_elsewhere_is_dropped_from_train_by_its_letters(make):
    lines = ["like\t今天 天气 真 好 ！", "none\t这 是 test", "none\t这 是 valid 。", "none\t别的", "none\t！ ！"]
    dialogues, report = make(*lines)
    assert [dialogue.turns[0].text for dialogue in dialogues] == ["别的", "！！"]
    assert report.dropped == {nlpcc_overlap.IN_2014: 1, nlpcc_overlap.IN_SENTENCES: 2}
    assert report.rows == 5
    assert len(make(*lines, leaks=True)[0]) == 5
    assert len(make(*lines, split="test")[0]) == 1


def test_the_files_that_are_held_against_train_are_its_files_too(make, tmp_path):
    make("none\t好")
    folder = tmp_path / "nlpcc_sentences"
    names = [file.name for file in data_files("nlpcc-sentences", folder, "train")]
    assert names == ["train.tsv", "ExpressionTest.xml", "valid.tsv", "test.tsv"]
    assert [file.name for file in data_files("nlpcc-sentences", folder, "test")] == ["test.tsv"]


def test_train_alone_asks_for_what_it_is_compared_with(make, tmp_path):
    make("none\t好")
    (tmp_path / "nlpcc_sentences" / "valid.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"valid\.tsv is not there; train is read without .* leaks=True"):
        nlpcc_sentences.read(tmp_path / "nlpcc_sentences", "train")
    assert len(list(nlpcc_sentences.read(tmp_path / "nlpcc_sentences", "train", leaks=True))) == 1


@pytest.mark.parametrize("line", ["none", "none\t好\t好", "smug\t好"])
def test_a_malformed_line_is_named(make, line):
    with pytest.raises(SourceError, match=r"train\.tsv line 2: .*, expected one of .*like, .* and a sentence"):
        make("none\t好", line)


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("nlpcc-sentences")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
@pytest.mark.parametrize(
    ("split", "rows", "in_2014", "in_own", "duplicates", "junk"),
    [("train", 36_843, 12_747, 27, 5, 18), ("valid", 2_093, 0, 0, 0, 1), ("test", 2_045, 0, 0, 0, 1)],
)
def test_the_real_files_give_the_counts(real, split, rows, in_2014, in_own, duplicates, junk):
    report = Report()
    statistics = describe(nlpcc_sentences.read(real, split, report=report), report)
    assert (report.rows, report.dialogues, len(statistics.labels)) == (rows, rows - in_2014 - in_own, 6)
    assert report.dropped[nlpcc_overlap.IN_2014] == in_2014
    assert report.dropped[nlpcc_overlap.IN_SENTENCES] == in_own
    assert (report.noted[quality.DUPLICATE], report.noted[quality.JUNK_TURN]) == (duplicates, junk)
