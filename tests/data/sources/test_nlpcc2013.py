"""A few posts of 2013, without those used as test data elsewhere; and the counts of the real file."""

import pytest

from listenwell.data.dialogue import Label
from listenwell.data.sources import dialogue_builder, find_data, nlpcc2013, nlpcc2014, nlpcc_overlap, quality
from listenwell.data.sources.report import Report
from listenwell.data.sources.statistics import describe

TEST_POST = (
    '<TestData><weibo id="1" emotion-type1="like"><sentence>今天的天气真好。</sentence>'
    "<sentence>哈哈</sentence></weibo></TestData>"
)


def sentence(text, first="", second="none"):
    tags = f'emotion_tag="Y" emotion-1-type="{first}" emotion-2-type="{second}"' if first else 'emotion_tag="N"'
    return f'<sentence id="1" {tags}>{text}</sentence>'


def weibo(*sentences, emotion="none", name="1"):
    return f'<weibo id="{name}" emotion-type="{emotion}">{"".join(sentences)}</weibo>'


@pytest.fixture
def make(tmp_path):
    """Read posts, next to a 2014 corpus with one test post and nlpcc-sentences with one sentence each."""
    folder, other, third = (tmp_path / name for name in ("nlpcc2013_weibo", "nlpcc2014_weibo", "nlpcc_sentences"))
    for place in (folder, other, third):
        place.mkdir()
    (other / "ExpressionTest.xml").write_text(TEST_POST, encoding="utf-8")
    for split in ("valid", "test"):
        (third / f"{split}.tsv").write_text(f"none\t昨天 去 看 电影 了 {split}\n", encoding="utf-8")

    def read(*posts, **options):
        (folder / "sample.xml").write_text(f"\ufeff<SampleData>{''.join(posts)}</SampleData>", encoding="utf-8")
        report = Report()
        return list(nlpcc2013.read(folder, report=report, **options)), report

    return read


def test_a_post_has_its_emotion_and_is_train(make):
    (dialogue,), report = make(weibo(sentence("好。"), sentence("气死了", "anger"), emotion="Anger"))
    assert (dialogue.turns[0].text, dialogue.turns[0].label) == ("好。气死了", Label("anger"))
    assert (dialogue.id, dialogue.language, dialogue.split) == ("posts-train-1", "zh", "train")
    assert not report.noted


def test_sentences_are_a_part_with_labels_of_their_own(make):
    posts = [weibo(sentence("好。"), sentence("气死了", "anger", "disgust"), sentence(" "), emotion="anger", name="7")]
    dialogues, report = make(*posts, part="sentences")
    assert [(dialogue.id, dialogue.turns[0].label) for dialogue in dialogues] == [
        ("sentences-train-7-1", Label("none")),
        ("sentences-train-7-2", Label("anger")),
    ]
    assert report.noted == {nlpcc2014.SECOND: 1, dialogue_builder.STRAY_SPACES: 1}
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 1, dialogue_builder.NOTHING_LEFT: 1}


def test_posts_that_share_a_long_sentence_with_what_is_scored_are_dropped(make):
    posts = [
        weibo(sentence("今天的天气真好！"), sentence("走"), name="1"),
        weibo(sentence("昨天去看电影了test"), name="2"),
        weibo(sentence("哈哈"), sentence("别的"), name="3"),
    ]
    dialogues, report = make(*posts)
    assert [dialogue.id for dialogue in dialogues] == ["posts-train-3"]
    assert report.dropped == {nlpcc_overlap.IN_2014: 1, nlpcc_overlap.IN_SENTENCES: 1}
    assert len(make(*posts, leaks=True)[0]) == 3


def test_a_short_sentence_is_dropped_as_a_sentence_and_a_short_post_as_a_whole(make):
    _, report = make(weibo(sentence("哈哈"), sentence("别的")), part="sentences")
    assert report.dropped == {nlpcc_overlap.IN_2014: 1}
    _, report = make(weibo(sentence("哈"), sentence("哈！")))
    assert report.dropped == {nlpcc_overlap.IN_2014: 1}


def test_an_emotion_that_the_sentences_contradict_and_an_unknown_one_are_noted(make):
    posts = [weibo(sentence("好"), emotion="like"), weibo(sentence("啊", "smug"), emotion="smug", name="2")]
    assert make(*posts)[1].noted == {nlpcc2014.CONTRADICTED: 1, quality.UNKNOWN_LABEL: 1}
    assert make(*posts, part="sentences")[1].noted == {quality.UNKNOWN_LABEL: 1}


def test_there_is_no_test_split(make, tmp_path):
    make(weibo(sentence("好")))
    with pytest.raises(ValueError, match="no split 'test' in posts; there is: train"):
        nlpcc2013.read(tmp_path / "nlpcc2013_weibo", "test")


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("nlpcc2013")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
@pytest.mark.parametrize(
    ("part", "met", "kept", "in_2014", "in_sentences"),
    [("posts", 4_000, 2_799, 637, 564), ("sentences", 13_248, 10_065, 2_461, 721)],
)
def test_the_real_file_gives_the_counts(real, part, met, kept, in_2014, in_sentences):
    report = Report()
    statistics = describe(nlpcc2013.read(real, part=part, report=report), report)
    assert (report.rows, report.dialogues, len(statistics.labels)) == (met, kept, 8)
    assert report.dropped[nlpcc_overlap.IN_2014] == in_2014
    assert report.dropped[nlpcc_overlap.IN_SENTENCES] == in_sentences


@pytest.mark.data
def test_the_real_file_with_what_leaks_gives_the_published_counts(real):
    report = Report()
    statistics = describe(nlpcc2013.read(real, leaks=True, report=report), report)
    assert (report.dialogues, statistics.labels["fear"], statistics.labels["surprise"]) == (4_000, 49, 113)
    assert (report.noted[nlpcc2014.CONTRADICTED], report.noted[quality.DUPLICATE]) == (27, 37)
