"""Small versions of the four kinds of file, with every kind of noise; and the golden counts of the real files."""

import csv

import pytest

from listenwell.data.dialogue import Label
from listenwell.data.sources import data_files, dialogue_builder, edos, find_data, quality
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe

NAMES = {piece.part: piece.names[0] for piece in edos.PIECES}


def write(folder, part, *rows):
    """Write rows of (id, text, label, confidence) with the other columns filled in."""
    layout = edos.LAYOUTS[part]
    path = folder / NAMES[part]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(layout.columns)
        for name, text, label, *confidence in rows:
            row = {layout.id: name, layout.text: text, layout.label: label}
            if layout.confidence:
                row[layout.confidence] = (confidence or ["0.9"])[0]
            writer.writerow([row.get(column, "x") for column in layout.columns])
    return path


def read(*arguments, **options):
    report = Report()
    return list(edos.read(*arguments, report=report, **options)), report


def test_the_label_is_that_of_the_last_turn_and_tokens_are_joined(tmp_path):
    write(tmp_path, "mturk", ("7", "Don 't you see ?\nI 'm ashamed .", "Ashamed"))
    (dialogue,), report = read(tmp_path)
    assert [turn.text for turn in dialogue.turns] == ["Don't you see?", "I'm ashamed."]
    assert [turn.label for turn in dialogue.turns] == [None, Label("ashamed")]
    assert [turn.speaker for turn in dialogue.turns] == ["speaker", "listener"]
    assert (dialogue.id, dialogue.emotion) == ("mturk-7", None)
    assert not report.noted


@pytest.mark.parametrize("part", ["self-labelled", "similar", "similar-self-labelled"])
def test_seed_labels_are_a_machines_with_its_confidence_and_dashes_go(tmp_path, part):
    write(tmp_path, part, ("7", "- - Good night .\n- Night - night !", "Wishing", "0.75"))
    (dialogue,), _ = read(tmp_path, part=part)
    assert [turn.text for turn in dialogue.turns] == ["Good night.", "Night - night!"]
    assert dialogue.turns[-1].label == Label("wishing", "machine", 0.75)
    assert dialogue.id == f"{part}-7"


def test_no_majority_is_no_label_and_free_answers_are_noted(tmp_path):
    rows = [("1", "One\nTwo", "-"), ("2", "Alone", "Annoyed (Other)"), ("3", "No\nNever", "Disagreeing (Other)")]
    write(tmp_path, "mturk", *rows)
    dialogues, report = read(tmp_path)
    assert [dialogue.turns[-1].label for dialogue in dialogues] == [None, Label("annoyed"), Label("disagreeing")]
    assert report.noted == {
        edos.NO_MAJORITY: 1,
        edos.FREE_ANSWER: 2,
        quality.UNKNOWN_LABEL: 1,
        quality.ONE_TURN: 1,
    }


def test_an_id_that_comes_again_and_a_duplicate_are_noted(tmp_path):
    write(tmp_path, "mturk", ("1", "One\nTwo", "Sad"), ("1", "One\nTwo", "Angry"))
    dialogues, report = read(tmp_path)
    assert [dialogue.id for dialogue in dialogues] == ["mturk-1", "mturk-1~2"]
    assert report.noted == {dialogue_builder.SAME_ID: 1, quality.DUPLICATE: 1, dialogue_builder.OTHER_LABEL: 1}
    assert len(read(tmp_path, clean=True)[0]) == 1


def test_parts_are_read_alone_or_the_machine_labelled_together(tmp_path):
    for part in NAMES:
        write(tmp_path, part, ("1", f"One\n{part}", "Sad"))
    assert [dialogue.id for dialogue in read(tmp_path)[0]] == [f"{part}-1" for part in NAMES]
    assert [dialogue.id for dialogue in read(tmp_path, part="seed")[0]] == [
        f"{part}-1" for part in NAMES if part != "mturk"
    ]
    assert [dialogue.id for dialogue in read(tmp_path / NAMES["similar"])[0]] == ["similar-1"]
    with pytest.raises(ValueError, match="unknown part 'turk'; did you mean 'mturk'"):
        edos.read(tmp_path, part="turk")
    with pytest.raises(ValueError, match="unknown split 'tset'; did you mean 'test'"):
        edos.read(tmp_path, "tset")


def test_the_splits_are_ours_by_the_texts_alone(tmp_path):
    said = [f"One {number}\nTwo {number}" for number in range(200)]
    write(tmp_path, "mturk", *((str(number), text, "Sad") for number, text in enumerate(said)))
    write(tmp_path, "similar", *((str(number), text.upper(), "Sad") for number, text in enumerate(said)))
    whole = {dialogue.id: dialogue.split for dialogue in read(tmp_path)[0]}
    assert all(whole[f"mturk-{number}"] == whole[f"similar-{number}"] for number in range(200))
    for split, share in (("train", 0.8), ("valid", 0.1), ("test", 0.1)):
        dialogues, report = read(tmp_path, split)
        assert {dialogue.id for dialogue in dialogues} == {name for name, actual in whole.items() if actual == split}
        assert len(dialogues) == report.dialogues == pytest.approx(400 * share, abs=30)
    assert [path.name for path in data_files("edos", tmp_path, "test")] == [NAMES["mturk"], NAMES["similar"]]


@pytest.mark.parametrize("confidence", ["high", "1.5", "nan"])
def test_a_confidence_that_is_none_is_named(tmp_path, confidence):
    write(tmp_path, "similar", ("1", "- One\n- Two", "Sad", "0.5"), ("2", "- One", "Sad", confidence))
    with pytest.raises(SourceError) as caught:
        read(tmp_path)
    expected = f"Similar_dialogs_3K.csv line 4: cos_sim {confidence!r}, expected a number from 0 to 1; correct the row"
    assert str(caught.value) == expected


def test_malformed_files_are_named(tmp_path):
    path = write(tmp_path, "mturk", ("1", "One\nTwo", "Sad"))
    whole = path.read_text()
    path.write_text(whole + "2,x,y\n")
    with pytest.raises(SourceError, match=r"MTurk_groundtruth_labels_9K\.csv line 4: 3 columns, expected 8 \(Count, "):
        read(tmp_path)
    path.write_text(whole + '2,x,y,"oops,Sad,a,b,c\n')
    with pytest.raises(SourceError, match=r"csv line 4: .*expected CSV with balanced quotes"):
        read(tmp_path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(SourceError, match=r"csv line 1: the header 'a, b', expected Count, Index.*name a file of EDOS"):
        read(tmp_path)
    path.write_text("")
    with pytest.raises(SourceError, match=r"csv line 1: no header"):
        read(tmp_path)


# The real files


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("edos")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
@pytest.mark.parametrize(
    ("part", "dialogues", "turns", "labels", "duplicates"),
    [
        ("mturk", 10_245, 23_662, 8_913, 402),
        ("self-labelled", 4_100, 18_827, 4_100, 93),
        ("similar", 3_196, 10_258, 3_196, 2),
        ("similar-self-labelled", 2_118, 8_252, 2_118, 0),
    ],
)
def test_the_real_files_give_the_published_counts(real, part, dialogues, turns, labels, duplicates):
    report = Report()
    statistics = describe(edos.read(real, part=part, report=report), report)
    assert (report.rows, report.dialogues, report.turns) == (dialogues, dialogues, turns)
    assert not report.dropped
    assert report.noted[quality.DUPLICATE] == duplicates
    assert sum(statistics.labels.values()) == labels
    if part == "mturk":
        assert (report.noted[edos.NO_MAJORITY], report.noted[quality.ONE_TURN]) == (1_332, 3_740)
    assert len(data_files("edos", real)) == 4
