"""A few posts with every kind of noise; and the golden counts of the real files."""

import json

import pytest

from listenwell.data.dialogue import Label, Turn
from listenwell.data.sources import data_files, dialogue_builder, find_data, quality, smp2020_ewect
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe


@pytest.fixture
def make(tmp_path):
    """Read posts of (text, label) from a JSON file or from a .tsv."""

    def read(*posts, name="virus_train.json", **options):
        if name.endswith("tsv"):
            text = "fold\tlabel\tcontent\n" + "".join(f"0\t{label}\t{text}\n" for text, label in posts)
        else:
            records = [{"id": n, "content": text, "label": label} for n, (text, label) in enumerate(posts, start=1)]
            text = json.dumps(records, ensure_ascii=False)
        (tmp_path / name).write_text(text, encoding="utf-8")
        report = Report()
        return list(smp2020_ewect.read(tmp_path, report=report, **options)), report

    return read


@pytest.mark.parametrize("name", ["usual_train.tsv", "usual_train.json", "usual_train.txt"])
def test_a_post_is_a_dialogue_of_one_turn(make, name):
    (dialogue,), report = make(('他说："好"。', "Happy"), name=name)
    assert dialogue.turns == (Turn("speaker", '他说："好"。', Label("happy")),)
    assert (dialogue.id, dialogue.language, dialogue.split) == ("usual-train-1", "zh", "train")
    assert (report.rows, report.dialogues) == (1, 1)
    assert not report.noted


def test_duplicates_and_their_other_labels_are_noted_and_dropped_by_clean(make):
    posts = [("加油", "happy"), ("加油 ", "happy"), ("加油", "sad")]
    dialogues, report = make(*posts)
    assert len(dialogues) == 3
    assert report.noted == {quality.DUPLICATE: 2, dialogue_builder.OTHER_LABEL: 1, dialogue_builder.STRAY_SPACES: 1}
    dialogues, report = make(*posts, clean=True)
    assert len(dialogues) == 1
    assert report.dropped == {quality.DUPLICATE: 2}


def test_lost_characters_escapes_and_invisible_ones_are_noted(make):
    posts = [("平安 ??", "happy"), ("A&amp;B http://t.cn/?a=1&copy=2", "neutral"), ("\ufeff好", "happy")]
    dialogues, report = make(*posts)
    texts = [dialogue.turns[0].text for dialogue in dialogues]
    assert texts == ["平安 ??", "A&B http://t.cn/?a=1&copy=2", "好"]
    assert report.noted == {smp2020_ewect.LOST: 1, smp2020_ewect.ESCAPED: 1, dialogue_builder.UNPRINTABLE: 1}


@pytest.mark.parametrize("name", ["usual_train.tsv", "virus_train.json"])
def test_an_empty_post_is_dropped_and_odd_labels_are_noted(make, name):
    dialogues, report = make(("", "angry"), ("好", ""), ("好的", "smug"), ("！！", "happy"), name=name)
    assert [dialogue.turns[0].label for dialogue in dialogues] == [None, Label("smug"), Label("happy")]
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 1, dialogue_builder.NOTHING_LEFT: 1}
    assert report.noted == {smp2020_ewect.NO_LABEL: 1, quality.UNKNOWN_LABEL: 1, quality.JUNK_TURN: 1}


def test_parts_and_splits_are_files(make, tmp_path):
    make(("好", "happy"), name="virus_eval_labeled.json")
    make(("好", "happy"), name="usual_test_labeled.json")
    dialogues, _ = make(("好", "happy"), name="usual_train.tsv")
    assert [dialogue.id for dialogue in dialogues] == ["usual-train-1", "usual-test-1", "virus-valid-1"]
    assert [dialogue.id for dialogue in smp2020_ewect.read(tmp_path, part="virus")] == ["virus-valid-1"]
    assert [file.name for file in data_files("smp2020-ewect", tmp_path, "dev")] == ["virus_eval_labeled.json"]
    with pytest.raises(ValueError, match="unknown part 'usal'; did you mean 'usual'"):
        smp2020_ewect.read(tmp_path, part="usal")
    with pytest.raises(FileNotFoundError, match=r"virus_test_labeled\.json is not there"):
        smp2020_ewect.read(tmp_path, "test", part="virus")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "usual_train.tsv",
            "label\tcontent\n",
            "line 1: the header 'label, content', expected fold, label, content; name",
        ),
        ("usual_train.tsv", "fold\tlabel\tcontent\n0\tsad\n", "line 2: 2 columns, expected 3 between tabs"),
        (
            "virus_train.json",
            '[{"id": 1, "content": "x"}]',
            "line 1: item 1 is {'id': 1, 'content': 'x'}, expected an obj",
        ),
        ("virus_train.json", '[{"id": null, "content": "x", "label": "sad"}]', "line 1: item 1 is {'id': None"),
        ("virus_train.json", '{"id": 1}', "line 1: '{\"id\": 1}', expected a JSON array"),
    ],
)
def test_malformed_files_are_named(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(SourceError) as caught:
        list(smp2020_ewect.read(tmp_path))
    assert str(caught.value).startswith(f"{name} {message}")


# The real files


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("smp2020-ewect")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
@pytest.mark.parametrize(
    ("part", "split", "posts", "empty", "duplicates"),
    [
        ("usual", "train", 27_768, 2, 760),
        ("usual", "valid", 2_000, 0, 8),
        ("usual", "test", 5_000, 0, 28),
        ("virus", "train", 8_606, 0, 878),
        ("virus", "valid", 2_000, 0, 141),
        ("virus", "test", 3_000, 0, 200),
    ],
)
def test_the_real_files_give_the_published_counts(real, part, split, posts, empty, duplicates):
    report = Report()
    statistics = describe(smp2020_ewect.read(real, split, part=part, report=report), report)
    assert (report.rows, report.dialogues) == (posts, posts - empty)
    assert report.dropped == ({dialogue_builder.EMPTY_TURN: 2, dialogue_builder.NOTHING_LEFT: 2} if empty else {})
    assert (sum(statistics.labels.values()), len(statistics.labels)) == (posts - empty, 6)
    assert statistics.duplicates == report.noted[quality.DUPLICATE] == duplicates
