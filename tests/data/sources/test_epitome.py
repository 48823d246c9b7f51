"""A few pairs with empathy levels, with typical noise; and the counts of the real files."""

import csv

import pytest

from listenwell.data.dialogue import Label
from listenwell.data.sources import dialogue_builder, epitome, find_data, quality, smp2020_ewect
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe


def row(post="I am lost", reply="I am sorry. Why?", level="0", passages="", ids=("p1", "r1")):
    return [*ids, post, reply, level, passages]


@pytest.fixture
def make(tmp_path):
    def read(*rows, file="emotional-reactions.csv", header=epitome.HEADER, **options):
        with (tmp_path / file).open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([header, *rows])
        report = Report()
        return list(epitome.read(tmp_path, report=report, **options)), report

    return read


def test_the_reply_has_the_level_of_the_part_that_is_asked_for(make):
    make(row(level="1", passages="I am sorry|"))
    make(row(level="2", passages="Why?|"), file="explorations.csv")
    (reaction,), report = make(row(level="0"), file="interpretations.csv", part="emotional-reactions")
    (exploration,), _ = make(row(level="0"), file="interpretations.csv", part="explorations")
    assert [turn.label for turn in reaction.turns] == [None, Label("weak")]
    assert [turn.label for turn in exploration.turns] == [None, Label("strong")]
    assert reaction.id == exploration.id == "p1-r1"
    assert (reaction.language, [turn.speaker for turn in reaction.turns]) == ("en", ["speaker", "listener"])
    assert not report.noted


def test_without_a_part_a_pair_is_read_once_and_has_no_label(make):
    make(row(level="1", passages="I am sorry|"))
    (dialogue,), _ = make(row(level="2", passages="Why?|"), file="explorations.csv")
    assert [turn.label for turn in dialogue.turns] == [None, None]


def test_all_three_levels_come_together_in_one_label(make):
    def rows(*levels):
        """Rows for the first pair, for the second, and for the second annotated again."""
        pairs = zip((0, 1, 1), levels, strict=True)
        return [row(reply=f"reply {n}", level=level, ids=("p1", f"r{n}")) for n, level in pairs]

    make(*rows("0", "0", "0"))
    make(*rows("2", "2", "0"), file="explorations.csv")
    first, second, again = rows("2", "1", "0")
    dialogues, report = make(second, first, again, file="interpretations.csv", part="levels")
    labels = {one.id: one.turns[1].label for one in dialogues}
    assert labels["p1-r0"] == Label("none-strong-strong"), "by its ids, wherever it stands in a file"
    assert labels["p1-r1"] == Label("none-weak-strong")
    assert labels["p1-r1~2"] == Label("none-none-none")
    assert epitome.NO_PASSAGE not in report.noted


def test_levels_need_all_three_files_with_the_same_pairs(make):
    make(row())
    with pytest.raises(FileNotFoundError, match="needs all three files, missing: explorations"):
        make(row(), file="interpretations.csv", part="levels")
    make(row(), file="explorations.csv")
    with pytest.raises(SourceError, match=r"interpretations\.csv line 2: no pair p1, r1, expected the pairs of emot"):
        make(row(ids=("p9", "r9")), file="interpretations.csv", part="levels")
    with pytest.raises(ValueError, match="did you mean 'levels'"):
        make(row(), part="level")


def test_a_post_is_never_in_two_splits(make):
    rows = [row(f"post {n % 40}", f"reply {n}", ids=(f"p{n % 40}", f"r{n}")) for n in range(120)]
    splits = {}
    for dialogue in make(*rows)[0]:
        splits.setdefault(dialogue.turns[0].text, set()).add(dialogue.split)
    assert len(splits) == 40
    assert all(len(several) == 1 for several in splits.values())
    assert set.union(*splits.values()) == {"train", "valid", "test"}


def test_passages_are_given_and_doubtful_ones_noted(make, tmp_path):
    rows = [
        row(reply="&lt;3 I  am sorry.", level="1", passages="<3 I am|sorry.|"),
        row(level="1", ids=("p1", "r2")),
        row(level="2", passages="I know|", ids=("p1", "r3"), reply="I know not."),
        row(level="2", passages="elsewhere|", ids=("p1", "r4"), reply="Oh."),
    ]
    dialogues, report = make(*rows, part="emotional-reactions")
    assert dialogues[0].turns[1].text == "<3 I am sorry."
    assert report.noted == {
        smp2020_ewect.ESCAPED: 1,
        dialogue_builder.STRAY_SPACES: 1,
        epitome.NO_PASSAGE: 1,
        epitome.PASSAGE_ELSEWHERE: 1,
    }
    first = next(epitome.annotated_pairs(tmp_path / "emotional-reactions.csv"))
    assert (first.level, first.passages) == ("weak", ("<3 I am", "sorry."))


def test_a_pair_annotated_twice_is_a_duplicate(make):
    dialogues, report = make(row(), row(level="1", passages="I am sorry|"), part="emotional-reactions")
    assert [dialogue.id for dialogue in dialogues] == ["p1-r1", "p1-r1~2"]
    assert report.noted == {quality.DUPLICATE: 1, dialogue_builder.OTHER_LABEL: 1, dialogue_builder.SAME_ID: 1}


@pytest.mark.parametrize(
    ("rows", "message"),
    [([row(level="3")], "line 2: the level '3', expected 0, 1 or 2"), ([row()[:5]], "line 2: 5 columns, expected 6")],
)
def test_malformed_rows_are_named(make, rows, message):
    with pytest.raises(SourceError, match=r"emotional-reactions\.csv " + message):
        make(*rows)


def test_another_header_and_an_unknown_part_are_named(make, tmp_path):
    with pytest.raises(SourceError, match=r"line 1: the header 'id, text', expected sp_id, rp_id"):
        make(row(), header=["id", "text"])
    with pytest.raises(ValueError, match="unknown part 'exploration'; did you mean 'explorations'"):
        epitome.read(tmp_path, part="exploration")


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("epitome")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
@pytest.mark.parametrize(
    ("part", "none", "weak", "strong", "other"),
    [
        ("emotional-reactions", 2_037, 895, 152, 10),
        ("interpretations", 1_626, 114, 1_344, 10),
        ("explorations", 2_604, 104, 376, 5),
    ],
)
def test_the_real_files_give_the_published_counts(real, part, none, weak, strong, other):
    report = Report()
    found = describe(epitome.read(real, part=part, report=report), report)
    assert (report.rows, report.dialogues) == (3_084, 3_084)
    assert found.labels == {"none": none, "weak": weak, "strong": strong}
    assert (report.noted[quality.DUPLICATE], report.noted[dialogue_builder.OTHER_LABEL]) == (61, other)
    splits = {}
    for dialogue in epitome.read(real, part=part):
        splits.setdefault(dialogue.split, set()).add(dialogue.turns[0].text)
    assert [len(splits[name]) for name in ("train", "valid", "test")] == [2_381, 327, 271]
    assert len(set.union(*splits.values())) == 2_979
