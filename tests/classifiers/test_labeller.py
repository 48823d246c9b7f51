"""Labelling texts and corpora with a classifier, from Python and from the command line."""

import json

import numpy as np
import pytest

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.classifiers.labeller import Labeller, label_dialogues
from listenwell.cli import main
from listenwell.data.dialogue import Dialogue, Label, Turn
from listenwell.data.sources import jsonl
from listenwell.labels.taxonomy import LABELS

TEXTS = ["I am so happy today!", "That is sad.", "Why did you go?", "That is sad.", "", "happy " * 60]


@pytest.fixture
def labeller(tiny_classifier):
    return Labeller(tiny_classifier())


@pytest.fixture
def saved(tiny_classifier, tmp_path):
    checkpoint.save(tiny_classifier(), tmp_path / "classifier")
    return tmp_path / "classifier"


DIALOGUES = [
    Dialogue(
        "d1",
        (
            Turn("speaker", "I passed!", Label("proud")),
            Turn("listener", "You did it!"),
            Turn("speaker", "Thank you.", Label("grateful", "machine", 0.1)),
        ),
        emotion=Label("proud"),
    ),
    Dialogue("d2", (Turn("speaker", "It broke.", Label("happiness")),)),
]


def test_a_batch_of_texts_is_labelled_as_each_alone(labeller):
    together = labeller.distribution(TEXTS)
    alone = np.concatenate([labeller.distribution([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(together.sum(axis=1), 1, atol=1e-6)
    assert together.shape == (len(TEXTS), 41)
    np.testing.assert_allclose(np.exp(labeller.log_probs(TEXTS)), together)
    assert (together[1] == together[3]).all()


def test_a_label_is_the_likeliest_with_its_chance(labeller):
    chances = labeller.distribution(TEXTS)
    for label, row in zip(labeller.label(TEXTS), chances, strict=True):
        assert label == Label(LABELS[row.argmax()], "machine", round(row.max(), 4))
    assert labeller.label([]) == []
    assert labeller.distribution([]).shape == (0, 41)


def test_progress_counts_every_text(labeller):
    progress = []
    labeller.label(TEXTS, progress.append)
    assert sum(progress) == len(TEXTS)


def test_one_text_is_no_list_of_texts(labeller):
    with pytest.raises(ValueError, match="a list of texts is labelled, found one text: 'hello'"):
        labeller.label("hello")


def test_a_system_that_talks_is_no_labeller(tiny_model, tokenizer):
    with pytest.raises(ValueError, match="multi-trs labels no texts; emotion-intent does"):
        Labeller(Checkpoint("multi-trs", tiny_model(), tokenizer))


def test_a_name_that_is_unknown_is_told():
    with pytest.raises(ValueError, match="unknown system 'no-such-labeller'"):
        Labeller.load("no-such-labeller")


def test_turns_get_labels_and_gold_ones_stay(labeller):
    first, second = label_dialogues(DIALOGUES, labeller)
    given = labeller.label(["I passed!", "You did it!", "Thank you.", "It broke."])
    assert [turn.label for turn in first.turns] == [Label("proud"), given[1], given[2]], "a machine's is given anew"
    assert second.turns[0].label == Label("happiness"), "a person's label stays, of whatever set it is"
    assert first.emotion == Label("proud")
    again = list(label_dialogues(DIALOGUES, labeller, overwrite=True))
    assert [turn.label for dialogue in again for turn in dialogue.turns] == given


def test_a_corpus_is_labelled_from_the_command_line(saved, tmp_path, capsys):
    jsonl.write(DIALOGUES, tmp_path / "mine.jsonl")
    out = tmp_path / "labelled.jsonl"
    main(["data", "label", str(tmp_path / "mine.jsonl"), "--out", str(out), "--using", str(saved)])
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 turns labelled by emotion-intent, 2 kept the label of a person" in printed
    assert list(jsonl.read(out)) == list(label_dialogues(DIALOGUES, Labeller.load(saved)))
    again = tmp_path / "again.jsonl"
    main(["data", "label", str(out), "--out", str(again), "--using", str(saved), "--overwrite"])
    assert "4 turns labelled by emotion-intent, 0 kept" in " ".join(capsys.readouterr().out.split())
    assert all(turn.label.by == "machine" for dialogue in jsonl.read(again) for turn in dialogue.turns)


def test_labelling_needs_a_file_to_write(saved, tmp_path):
    with pytest.raises(SystemExit, match="data label needs --out"):
        main(["data", "label", "shipped", "--using", str(saved)])


def test_a_part_is_chosen_from_the_command_line(tmp_path, capsys):
    folder = tmp_path / "manual_annotations"
    folder.mkdir()
    (folder / "wishing.txt").write_text("good luck\n")
    main(["data", "stats", "empathetic-intents", "--path", str(tmp_path), "--part", "hand", "--json"])
    assert json.loads(capsys.readouterr().out)["labels"] == {"wishing": 1}


def test_the_command_selects_the_most_emotional_dialogues(saved, tmp_path, capsys):
    out = tmp_path / "emotional.jsonl"
    main(["data", "select", "shipped", "--most_emotional", "5", "--out", str(out), "--using", str(saved)])
    assert "5 of " in capsys.readouterr().out
    read_back = list(jsonl.read(out))
    assert len(read_back) == 5
    for split in ("train", "valid", "test"):
        assert list(jsonl.read(out, split)) == [dialogue for dialogue in read_back if dialogue.split == split]
    with pytest.raises(SystemExit, match="data select needs --most_emotional N and --out"):
        main(["data", "select", "shipped", "--out", str(out)])


def test_what_has_no_reply_in_it_is_not_selected_but_counted(saved, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    mine, out = tmp_path / "mine.jsonl", tmp_path / "emotional.jsonl"
    jsonl.write(DIALOGUES, mine)
    main(["data", "select", str(mine), "--most-emotional", "2", "--out", str(out), "--using", str(saved)])
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for line in ("kept dialogues 1", "kept turns 3", "dropped no reply in it (a single turn) 1"):
        assert line in printed
    assert [dialogue.id for dialogue in jsonl.read(out)] == ["d1"]
