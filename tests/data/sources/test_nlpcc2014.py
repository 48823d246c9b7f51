"""A few posts with every kind of noise; broken and malicious XML; and the golden counts of the real files."""

import pytest

from listenwell.data.dialogue import Label, Turn
from listenwell.data.sources import data_files, dialogue_builder, find_data, nlpcc2014, quality
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def weibo(*sentences, name="1", emotions=("like", "none"), opinionated="Y"):
    inside = "".join(f'<sentence id="1" opinionated="{opinionated}">{text}</sentence>\n' for text in sentences)
    first, second = emotions
    return f'<weibo id="{name}" emotion-type1="{first}" emotion-type2="{second}">\n{inside}</weibo>\n'


@pytest.fixture
def make(tmp_path):
    def read(*posts, name="ExpressionTest.xml", **options):
        text = f"{HEAD}<TestData>\n{''.join(posts)}</TestData>\n"
        (tmp_path / name).write_text(text, encoding="utf-8")
        report = Report()
        return list(nlpcc2014.read(tmp_path, report=report, **options)), report

    return read


def test_a_post_is_its_sentences_with_its_first_emotion(make):
    (dialogue,), report = make(weibo("很好。", "A &amp; B &lt;3", "Yes", "就是", emotions=("Happiness", "none")))
    assert dialogue.turns == (Turn("speaker", "很好。A & B <3 Yes就是", Label("happiness")),)
    assert (dialogue.id, dialogue.language, dialogue.split) == ("expression-test-1", "zh", "test")
    assert (report.rows, report.dialogues) == (1, 1)
    assert not report.noted


def test_no_emotion_is_a_label_and_a_second_one_is_noted(make):
    posts = [weibo("一", emotions=("none", "none"), opinionated="N"), weibo("二", name="2", emotions=("like", "fear"))]
    dialogues, report = make(*posts)
    assert [dialogue.turns[0].label for dialogue in dialogues] == [Label("none"), Label("like")]
    assert report.noted == {nlpcc2014.SECOND: 1}
    assert report.places[nlpcc2014.SECOND][0].excerpt == "like, fear"


def test_posts_that_contradict_their_sentences_and_other_dirt_are_noted(make):
    posts = [
        weibo("一", emotions=("none", "none")),
        weibo("二", opinionated="N"),
        weibo("三", emotions=("smug", "none"), name="3"),
        weibo("四", emotions=("", "")),
        weibo("", " "),
        weibo("一 ", name="5"),
    ]
    dialogues, report = make(*posts)
    assert [dialogue.id[16:] for dialogue in dialogues] == ["1", "1~2", "3", "1~3", "5"]
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 1, dialogue_builder.NOTHING_LEFT: 1}
    assert report.noted == {
        nlpcc2014.CONTRADICTED: 2,
        quality.UNKNOWN_LABEL: 1,
        nlpcc2014.NO_LABEL: 1,
        dialogue_builder.SAME_ID: 3,
        dialogue_builder.STRAY_SPACES: 2,
        quality.DUPLICATE: 1,
        dialogue_builder.OTHER_LABEL: 1,
    }
    assert report.rows == 6


def test_the_sample_is_only_read_when_asked_for(make, tmp_path):
    make(weibo("一"))
    make(weibo("一"), name="Train_EmotionExpression.xml")
    dialogues, _ = make(weibo("一"), name="NLPCC2014_sample.xml")
    assert [dialogue.id for dialogue in dialogues] == ["expression-train-1", "expression-test-1"]
    assert [d.id for d in nlpcc2014.read(tmp_path, part="sample")] == ["sample-train-1"]
    assert [d.id for d in nlpcc2014.read(tmp_path / "NLPCC2014_sample.xml")] == ["sample-train-1"]
    assert [file.name for file in data_files("nlpcc2014", tmp_path)] == [
        "Train_EmotionExpression.xml",
        "ExpressionTest.xml",
    ]
    with pytest.raises(ValueError, match="no split 'train' in classification; there is: test"):
        nlpcc2014.read(tmp_path, "train", part="classification")


POST = '\n<TestData><weibo id="1"><sentence>&b;</sentence></weibo></TestData>'
BOMB = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>' + POST
OUTSIDE = '<!DOCTYPE x [<!ENTITY b SYSTEM "file:///etc/passwd">]>' + POST


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "line 2: a document type, expected XML without one; remove <!DOCTYPE"),
        (OUTSIDE, "line 2: a document type, expected XML without one"),
        (
            "<TestData>\n<weibo id='1'>\n</TestData>",
            "line 4: mismatched tag at column 3, expected well-formed XML; repair",
        ),
        ("<TestData>\n<weibo id='1'><sentence>&b;", "line 3: undefined entity at column 25, expected well-formed XML"),
        ("<TestData>\n", "line 3: no element found at column 1, expected well-formed XML"),
        ("", "line 2: no element found at column 1, expected well-formed XML"),
        ("<TestData>\n<weibo>\n</weibo></TestData>", "line 3: a <weibo> without id, expected one such as"),
        ("<TestData>\n<sentence>x</sentence></TestData>", "line 3: a <sentence> outside a <weibo>, expected <weibo …>"),
        ("<TestData>\n<weibo id='1'>lost</weibo></TestData>", "line 3: the text 'lost' outside a <sentence>, expected"),
        ("<TestData>\n<weibo id='1'><weibo id='2'/></weibo></TestData>", "line 3: <weibo> inside a <weibo>, expected"),
    ],
)
def test_broken_or_hostile_xml_is_named(tmp_path, text, message):
    (tmp_path / "ExpressionTest.xml").write_text(HEAD + text)
    with pytest.raises(SourceError) as caught:
        list(nlpcc2014.read(tmp_path))
    assert str(caught.value).startswith(f"ExpressionTest.xml {message}")


def test_posts_before_the_damage_are_given_first(make, tmp_path, monkeypatch):
    monkeypatch.setattr(nlpcc2014, "BLOCK", 64)
    make(weibo("一"), weibo("二", name="2"))
    path = tmp_path / "ExpressionTest.xml"
    path.write_text(path.read_text().replace("</TestData>", "</TestDate>"))
    reading = nlpcc2014.read(tmp_path)
    assert [next(reading).turns[0].text, next(reading).turns[0].text] == ["一", "二"]
    with pytest.raises(SourceError, match="line 9: mismatched tag"):
        next(reading)


def test_utf_16_as_first_published_is_read(make, tmp_path):
    make(weibo("一"))
    path = tmp_path / "ExpressionTest.xml"
    path.write_bytes(path.read_text().replace("UTF-8", "UTF-16").encode("utf-16"))
    assert [dialogue.turns[0].text for dialogue in nlpcc2014.read(tmp_path)] == ["一"]


# The real files


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("nlpcc2014")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
@pytest.mark.parametrize(
    ("part", "split", "posts", "second", "contradicted", "duplicates", "labels"),
    [
        ("classification", "test", 6_000, 353, 118, 18, 8),
        ("expression", "train", 1_000, 269, 2, 3, 7),
        ("expression", "test", 2_000, 595, 9, 12, 7),
        ("sample", "train", 1_000, 268, 2, 3, 7),
    ],
)
def test_the_real_files_give_the_published_counts(real, part, split, posts, second, contradicted, duplicates, labels):
    report = Report()
    statistics = describe(nlpcc2014.read(real, split, part=part, report=report), report)
    assert (report.rows, report.dialogues, len(statistics.labels)) == (posts, posts, labels)
    assert not report.dropped
    assert report.noted[nlpcc2014.SECOND] == second
    assert report.noted[nlpcc2014.CONTRADICTED] == contradicted
    assert report.noted[quality.DUPLICATE] == duplicates
