"""A few lines with every kind of noise and leakage; and the golden counts of the real files."""

import re

import pytest

from listenwell.data.dialogue import Label, Turn
from listenwell.data.sources import (
    data_files,
    dialogue_builder,
    empathetic_dialogues,
    empathetic_intents,
    find_data,
    quality,
)
from listenwell.data.sources.empathetic_intents import IN_HAND, IN_OWN, IN_TEST, IN_VALID, OTHER_INTENT, spelling
from listenwell.data.sources.report import Report, SourceError
from listenwell.labels.taxonomy import LABELS

HEADER = "conv_id,utterance_idx,context,prompt,role,utterance,eri_label,prompt_eri_label"


@pytest.fixture
def corpus(tmp_path):
    """Make the corpus's folder, with EmpatheticDialogues next to it; one list of lines per file."""

    def make(train=(), valid=(), test=(), hand=None, said_in_test=(), said_in_valid=()):
        folder, beside = tmp_path / "empathetic_intents", tmp_path / "empatheticdialogues"
        for name, rows in (("train", train), ("valid", valid), ("test", test)):
            write(folder / "train_data" / f"{name}.txt", [f"{number} <SEP> {text}" for number, text in rows])
        for name, rows in (hand or {}).items():
            write(folder / "manual_annotations" / f"{name}.txt", rows)
        for name, said in (("test", said_in_test), ("valid", said_in_valid)):
            rows = [
                f"{name}{i},{k},sad,s,{role},{text},sad,sad"
                for i, line in enumerate(said)
                for k, (role, text) in enumerate((("speaker", "I said this"), ("listener", line)))
            ]
            write(beside / f"{name}.csv", [HEADER, *rows])
        return folder

    def write(path, rows):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")

    return make


def read(folder, split=None, **options):
    report = Report()
    return list(empathetic_intents.read(folder, split, report=report, **options)), report


def test_a_line_is_a_dialogue_of_one_turn_and_its_label_tells_who_said_it(corpus):
    folder = corpus(test=[(27, "I lost my dog."), (36, "so sorry to hear that"), (40, "It rained <SEP> again")])
    dialogues, report = read(folder, "test")
    assert [dialogue.turns for dialogue in dialogues] == [
        (Turn("speaker", "I lost my dog.", Label("sad")),),
        (Turn("listener", "so sorry to hear that", Label("sympathizing")),),
        (Turn("listener", "It rained <SEP> again", Label("neutral")),),
    ]
    first = dialogues[0]
    assert (first.id, first.split, first.source) == ("test-1", "test", "empathetic-intents")
    assert report.dialogues == 3
    assert not report.dropped


def test_what_is_scored_elsewhere_is_taken_out_of_train_and_counted(corpus):
    folder = corpus(
        train=[
            (36, "oh no!"),  # ED test
            (36, "OH, NO"),  # the same line, spelled differently
            (33, "thats great"),  # ED valid, and by hand: counted once
            (38, "what happened?"),  # by hand
            (33, "no way"),  # test.txt
            (27, "My cat died."),  # valid.txt: a situation
            (27, "oh no"),  # a situation that a listener also happens to say
            (37, "maybe call her"),
            (38, "?"),  # no letters: matches nothing else
        ],
        test=[(33, "No way!"), (38, "??")],
        valid=[(10, "my cat died")],
        hand={"questioning": ["What happened"], "acknowledging": ["That's great!"]},
        said_in_test=["Oh no."],
        said_in_valid=["That's great"],
    )
    dialogues, report = read(folder, "train")
    assert [dialogue.turns[0].text for dialogue in dialogues] == ["oh no", "maybe call her", "?"]
    assert report.dropped == {IN_TEST: 2, IN_VALID: 1, IN_HAND: 1, IN_OWN: 2}
    assert report.rows == report.conversations == 9
    assert len(read(folder, "train", leaks=True)[0]) == 9
    assert len(read(folder, "test")[0]) == 2, "only train is cut"
    assert len(read(folder / "train_data" / "train.txt")[0]) == 3, "a file alone is held against the same"


def test_train_is_not_read_where_nothing_can_be_held_against_it(corpus, monkeypatch, tmp_path):
    folder = corpus(train=[(0, "a spider")])
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path / "nowhere"))
    (tmp_path / "empatheticdialogues").rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match=r"empathetic-dialogues not found.*so as not to learn what is scored"):
        empathetic_intents.read(folder, "train")
    assert len(read(folder, "train", leaks=True)[0]) == 1
    assert read(folder, "valid") == ([], Report())
    (tmp_path / "elsewhere").rename(tmp_path / "empatheticdialogues")
    (tmp_path / "empatheticdialogues" / "valid.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"valid\.csv is not there; train is read without"):
        empathetic_intents.read(folder, "train")


def test_the_files_of_train_are_all_that_decide_what_is_in_it(corpus):
    folder = corpus(train=[(0, "a spider")], hand={"wishing": ["good luck"]})
    names = [path.name for path in data_files("empathetic-intents", folder, "train")]
    assert names == ["train.txt", "test.csv", "valid.csv", "wishing.txt", "valid.txt", "test.txt"]
    assert [path.name for path in data_files("empathetic-intents", folder, "test")] == ["test.txt"]
    assert [path.name for path in data_files("empathetic-intents", folder, part="hand")] == ["wishing.txt"]


def test_of_the_labels_by_hand_the_eight_intents_are_read(corpus):
    folder = corpus(hand={"wishing": ["Good luck! ", "", "congrats"], "advising": ["Take a walk."]})
    dialogues, report = read(folder, part="hand")
    assert [dialogue.turns[0] for dialogue in dialogues] == [
        Turn("listener", "Good luck!", Label("wishing")),
        Turn("listener", "congrats", Label("wishing")),
    ]
    assert [dialogue.id for dialogue in dialogues] == ["wishing-1", "wishing-3"]
    assert {dialogue.split for dialogue in dialogues} == {"test"}
    assert report.dropped == {OTHER_INTENT: 1}
    assert report.places[OTHER_INTENT][0].excerpt == "advising: Take a walk."
    alone = folder / "manual_annotations" / "wishing.txt"
    assert [dialogue.turns for dialogue in read(alone)[0]] == [dialogue.turns for dialogue in dialogues]


def test_dirt_is_noted_and_kept_and_clean_drops_it(corpus):
    folder = corpus(valid=[(0, " a  spider"), (0, "12"), (0, "a spider"), (30, "a spider"), (0, "")])
    dialogues, report = read(folder, "valid")
    assert len(dialogues) == 4
    assert report.noted == {
        dialogue_builder.STRAY_SPACES: 1,
        quality.JUNK_TURN: 1,
        quality.DUPLICATE: 2,
        dialogue_builder.OTHER_LABEL: 1,
    }
    assert report.dropped == {dialogue_builder.EMPTY_TURN: 1, dialogue_builder.NOTHING_LEFT: 1}
    assert len(read(folder, "valid", clean=True)[0]) == 1


@pytest.mark.parametrize("row", ["41 <SEP> hello", "sad <SEP> hello", "<SEP> hello", "12 hello", "-1 <SEP> hello"])
def test_a_malformed_line_is_named(corpus, row):
    folder = corpus(valid=[(0, "a spider")])
    with (folder / "train_data" / "valid.txt").open("a") as file:
        file.write(row)
    with pytest.raises(SourceError) as caught:
        read(folder, "valid")
    assert str(caught.value) == (
        f"valid.txt line 2: {row!r}, expected a number from 0 to 40, <SEP> and the text; correct the line"
    )


def test_an_unknown_part_is_named(corpus):
    with pytest.raises(ValueError, match="unknown part 'hands'; did you mean 'hand'"):
        empathetic_intents.read(corpus(), part="hands")


# The real files


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("empathetic-intents")
    except FileNotFoundError:
        pytest.skip("EmpatheticIntents is not here")


def _texts(real, name):
    with (real / "train_data" / f"{name}.txt").open(encoding="utf-8") as file:
        return [(int(row.split(" <SEP> ", 1)[0]), row.split(" <SEP> ", 1)[1]) for row in file]


@pytest.mark.data
@pytest.mark.parametrize(
    ("split", "met", "kept"), [("train", 25_023, 23_948), ("valid", 3_544, 3_544), ("test", 3_225, 3_225)]
)
def test_real_splits_have_their_golden_counts(real, split, met, kept):
    dialogues, report = read(real, split)
    assert (report.rows, len(dialogues)) == (met, kept)
    if split == "train":
        assert report.dropped == {IN_TEST: 455, IN_VALID: 283, IN_HAND: 92, IN_OWN: 245}


@pytest.mark.data
def test_real_hand_labels_have_their_golden_counts(real):
    dialogues, report = read(real, part="hand")
    assert (report.rows, len(dialogues), report.dropped) == (506, 427, {OTHER_INTENT: 79})


@pytest.mark.data
def test_real_leaks_have_their_golden_counts_however_lines_are_compared(real):
    said = {
        split: [
            turn.text
            for dialogue in empathetic_dialogues.read(find_data("empathetic-dialogues"), split)
            for turn in dialogue.turns
            if turn.speaker == "listener"
        ]
        for split in ("test", "valid")
    }
    intents = [text for number, text in _texts(real, "train") if number >= 32]
    hand = [
        row
        for path in (real / "manual_annotations").glob("*.txt")
        for row in path.read_text(encoding="utf-8").splitlines()
    ]
    assert len(intents) == 5_490

    def words(text):
        return " ".join(re.findall(r"\w+", text.lower()))

    def leaks(same):
        held = [{same(text) for text in said[split]} for split in ("test", "valid")]
        learned = {same(text) for text in intents}
        return [
            *(sum(same(text) in known for text in intents) for known in held),
            sum(same(t) in learned for t in hand),
        ]

    # By words, the counts are the known counts of these files; by letters alone, "thats" is "that's" and a few more go.
    assert leaks(words) == [404, 589, 65]
    assert leaks(spelling) == [455, 629, 66]


@pytest.mark.data
def test_the_real_numbers_are_those_of_the_taxonomy(real):
    names = (real.parent / "meed2" / "emo_labels.txt").read_text().split()
    assert tuple(name.split(",")[0] for name in names) == LABELS
