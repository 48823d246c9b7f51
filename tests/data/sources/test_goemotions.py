"""A few comments with every kind of noise; and the golden counts of the real files."""

import pytest

from listenwell.data.dialogue import Label, Turn
from listenwell.data.sources import dialogue_builder, find_data, goemotions, quality, read
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe


@pytest.fixture
def make(tmp_path):
    def read(*rows, header="text\tlabel\tid\n", **options):
        (tmp_path / "dev.tsv").write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
        report = Report()
        return list(goemotions.read(tmp_path, report=report, **options)), report

    return read


@pytest.mark.parametrize("header", ["text\tlabel\tid\n", ""])
def test_a_comment_is_a_dialogue_of_one_turn_with_or_without_a_header(make, header):
    (dialogue,), report = make("Good for you, [NAME]!\t0\teda6yn6", header=header)
    assert dialogue.turns == (Turn("speaker", "Good for you, [NAME]!", Label("admiration")),)
    assert (dialogue.id, dialogue.split, dialogue.source) == ("eda6yn6", "valid", "goemotions")
    assert (report.rows, report.dialogues) == (1, 1)
    assert not report.noted


def test_several_labels_are_noted_and_none_is_chosen(make, tmp_path):
    (dialogue,), report = make("Oh no, yes\t17,27\tx1")
    assert dialogue.turns[0].label is None
    assert report.noted == {goemotions.SEVERAL: 1}
    assert report.places[goemotions.SEVERAL][0].excerpt == "joy, neutral"
    (comment,) = goemotions.comments(tmp_path / "dev.tsv")
    assert comment.labels == ("joy", "neutral")


def test_by_polarity_labels_that_agree_are_one(make, tmp_path):
    make("Oh yes\t17,18\ta", "Oh no, yes\t17,27\tb", "Who?\t7\tc", "Fine.\t27\td", "Ugh\t2\te")
    report = Report()
    labels = {d.id: d.turns[0].label for d in goemotions.read_polarity(tmp_path, report=report)}
    assert labels == {"a": Label("positive"), "b": None, "c": None, "d": Label("neutral"), "e": Label("negative")}
    assert report.noted == {goemotions.NO_POLARITY: 2}
    again = {d.id: d.turns[0].label for d in read("goemotions", tmp_path, labels="polarity")}
    assert again == labels


def test_a_csv_writers_quotes_go_and_plain_ones_stay(make):
    rows = ['"He said ""no"" , twice"\t27\ta', '"Yes" he said\t27\tb', '"Quoted"\t27\tc', 'She said "no"\t27\td']
    dialogues, _ = make(*rows)
    texts = [dialogue.turns[0].text for dialogue in dialogues]
    assert texts == ['He said "no" , twice', '"Yes" he said', '"Quoted"', 'She said "no"']


def test_dirt_is_noted_and_kept_and_clean_drops_it(make):
    rows = [" Fine  then \t27\ta", ":((\t25\tb", "Fine then\t17\ta", "\t27\td"]
    dialogues, report = make(*rows)
    assert [dialogue.id for dialogue in dialogues] == ["a", "b", "a~2"]
    assert report.noted == {
        dialogue_builder.STRAY_SPACES: 1,
        quality.JUNK_TURN: 1,
        quality.DUPLICATE: 1,
        dialogue_builder.OTHER_LABEL: 1,
        dialogue_builder.SAME_ID: 1,
    }
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 1, dialogue_builder.NOTHING_LEFT: 1}
    assert len(make(*rows, clean=True)[0]) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("no label", "dev.tsv line 3: 1 columns, expected 3 between tabs (text, labels, id); correct the line"),
        ("a\tb\tc\td", "dev.tsv line 3: 4 columns, expected 3"),
        ("a\t28\tx", "dev.tsv line 3: the labels '28', expected numbers from 0 to 27"),
        ("a\t1,joy\tx", "dev.tsv line 3: the labels '1,joy', expected numbers"),
        ("a\t\tx", "dev.tsv line 3: the labels '', expected numbers"),
        ("a\t1\t ", "dev.tsv line 3: a blank id, expected 3"),
    ],
)
def test_a_malformed_line_is_named(make, row, message):
    with pytest.raises(SourceError) as caught:
        make("fine\t1\tx", row)
    assert str(caught.value).startswith(message)


# The real files


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("goemotions")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
@pytest.mark.parametrize(
    ("split", "comments", "single", "duplicates"),
    [("train", 43_410, 36_308, 184), ("valid", 5_426, 4_548, 3), ("test", 5_427, 4_590, 6)],
)
def test_the_real_files_give_the_published_counts(real, split, comments, single, duplicates):
    report = Report()
    statistics = describe(goemotions.read(real, split, report=report), report)
    assert (report.rows, report.dialogues, report.turns) == (comments, comments, comments)
    assert not report.dropped
    assert (sum(statistics.labels.values()), len(statistics.labels)) == (single, 28)
    assert report.noted[goemotions.SEVERAL] == comments - single
    assert report.noted[quality.DUPLICATE] == duplicates


@pytest.mark.data
def test_the_order_of_the_labels_is_that_of_the_file_beside_the_data(real):
    assert tuple((real / "labels.txt").read_text().split()) == goemotions.LABELS
