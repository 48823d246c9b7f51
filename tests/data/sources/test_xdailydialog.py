"""A few dialogues in both languages, with the corpus's known errors; and the golden counts of the real files."""

import pytest

from listenwell.data.dialogue import Label, Turn
from listenwell.data.sources import data_files, find_data, quality, xdailydialog
from listenwell.data.sources.dailydialog import MISMATCH
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe

TRAIN = [
    ("I passed . __eou__ You did !", "我过了。 __eou__ 真的！", "4 6", "1 2"),
    ("It costs 5 dollars . __eou__ OK .", "五美元。 __eou__ 好。", "0 0", "1 4"),
]
DEV = [
    ("Where is it ? __eou__ Here . __eou__", "在哪里？__eou__这里。__eou__", "2 1", "0 0"),
    # A text of train, except for spaces, capitals, punctuation and digits.
    ("It costs 7 Dollars ! __eou__ Ok . __eou__", "七美元！__eou__好。__eou__", "1 4", "0 0"),
]


@pytest.fixture
def corpus(tmp_path):
    def write(train=TRAIN, dev=DEV, test=DEV):
        for name, column in (("En", 0), ("Zh", 1), ("emotion", 2), ("action", 3)):
            text = "".join(f"{row[column]}\n" for row in train)
            (tmp_path / f"train_{name}.txt").write_text(text, encoding="utf-8")
        for split, rows in (("dev", dev), ("test", test)):
            for language, column in (("en", 0), ("zh", 1)):
                text = "".join(f"{row[column]}\t3\t{row[2]}\t{row[3]}\n" for row in rows)
                (tmp_path / f"{split}_human_{language}.txt").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def read(*arguments, **options):
    report = Report()
    return list(xdailydialog.read(*arguments, report=report, **options)), report


def test_a_dialogue_is_the_same_in_both_languages(corpus):
    (english, _), _ = read(corpus(), "train")
    (chinese, _), _ = read(corpus(), "train", language="zh")
    assert english.turns == (
        Turn("speaker", "I passed.", Label("happiness")),
        Turn("listener", "You did!", Label("surprise")),
    )
    assert [turn.text for turn in chinese.turns] == ["我过了。", "真的！"]
    assert [turn.label for turn in chinese.turns] == [turn.label for turn in english.turns]
    assert english.id == chinese.id == "train-1"
    assert (english.language, chinese.language) == ("en", "zh")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_stands_in_train_is_dropped_from_dev_and_test(corpus, language):
    for split in ("valid", "test"):
        (dialogue,), report = read(corpus(), split, language=language)
        assert dialogue.id == f"{split}-1"
        assert report.dropped == {xdailydialog.IN_TRAIN: 1}
        assert (report.rows, report.conversations, report.dialogues) == (2, 2, 1)
    dialogues, report = read(corpus(), language=language)
    assert [dialogue.split for dialogue in dialogues] == ["train", "train", "valid", "test"]
    assert report.dropped == {xdailydialog.IN_TRAIN: 2}


def test_a_training_line_with_another_number_of_labels_is_dropped(corpus):
    folder = corpus(train=[*TRAIN, ("Hi . __eou__ Ho .", "嗨。 __eou__ 嚯。", "0 0 0", "1 1 1")])
    for language in ("en", "zh"):
        dialogues, report = read(folder, "train", language=language, strict=False)
        assert len(dialogues) == 2
        assert report.dropped == {MISMATCH: 1}
    with pytest.raises(SourceError, match=r"train_Zh\.txt line 3: 2 turns, expected 3, .*1 of 3 lines differ"):
        read(folder, "train", language="zh")


def test_the_acts_can_be_read_instead(corpus):
    for split, names in (("train", ["inform", "question"]), ("valid", ["question", "inform"])):
        dialogues, _ = read(corpus(), split, label="act")
        assert [turn.label.name for turn in dialogues[0].turns] == names


def test_malformed_lines_are_named(corpus):
    folder = corpus()
    path = folder / "dev_human_en.txt"
    path.write_text("Hi . __eou__\t1\t2\n" * 2)
    with pytest.raises(SourceError, match=r"dev_human_en\.txt line 1: 3 columns, expected 4 between tabs .*; correct"):
        read(folder, "valid")
    path.write_text("Hi . __eou__\t1\t2\t9\n" * 2)
    with pytest.raises(SourceError, match=r"dev_human_en\.txt line 1: the label '9', expected 0 no emotion"):
        read(folder, "valid")
    (folder / "train_emotion.txt").write_text("4 6\n")
    with pytest.raises(SourceError, match=r"train_emotion\.txt line 2: the end of the file, expected a line as in"):
        read(folder, "train")


def test_what_is_missing_is_told_at_the_call(corpus):
    folder = corpus()
    with pytest.raises(ValueError, match="unknown language 'de'; known: en, zh"):
        xdailydialog.read(folder, language="de")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        xdailydialog.read(folder / "train_En.txt")
    (folder / "train_En.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"train_En\.txt is not there, found dev_human_en\.txt"):
        xdailydialog.read(folder, "test")


def test_the_files_of_a_reading_are_all_that_it_opens(corpus):
    names = [file.name for file in data_files("xdailydialog", corpus(), "valid")]
    assert names == ["dev_human_en.txt", "train_En.txt"]
    files = xdailydialog.files(corpus(), "train", language="zh")
    assert [entry.file for entry in files] == ["train_Zh.txt", "train_En.txt", "train_emotion.txt"]


# The real files


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("xdailydialog")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("split", "conversations", "dropped", "turns"),
    [
        ("train", 8_096, {MISMATCH: 62}, 61_521),
        ("valid", 995, {xdailydialog.IN_TRAIN: 79}, 7_372),
        ("test", 996, {xdailydialog.IN_TRAIN: 113}, 6_913),
    ],
)
def test_the_real_files_give_their_known_counts(real, language, split, conversations, dropped, turns):
    report = Report()
    statistics = describe(xdailydialog.read(real, split, report=report, language=language), report)
    assert (report.conversations, report.turns, report.dropped) == (conversations, turns, dropped)
    assert report.dialogues == conversations - sum(dropped.values())
    assert sum(statistics.labels.values()) == turns
    if split == "train":
        assert report.noted[quality.DUPLICATE] == {"en": 488, "zh": 512}[language]
