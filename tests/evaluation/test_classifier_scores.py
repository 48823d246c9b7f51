"""Evaluating a classifier: scores, the per-class table, output files, and the command."""

import json

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from listenwell import checkpoint
from listenwell.classifiers.labeller import Labeller
from listenwell.cli import main
from listenwell.data.dialogue import Dialogue, Label, Turn
from listenwell.data.sources import jsonl
from listenwell.evaluation.classifier_scores import class_scores, evaluate_labels, label_scores, labelled_turns, write
from listenwell.labels.taxonomy import LABEL_ID, LABELS
from listenwell.metrics import confusion

TEXTS = ("You did it!", "I am sorry.", "Why?", "I am so sad.", "Maybe call her.", "You did it!")
NAMES = ("encouraging", "sympathizing", "questioning", "sad", "suggesting", "joyful")


@pytest.fixture
def corpus(tmp_path):
    dialogues = [
        Dialogue(f"d{i}", (Turn("speaker", "hello"), Turn("listener", text, Label(name))), split="test")
        for i, (text, name) in enumerate(zip(TEXTS, NAMES, strict=True))
    ]
    dialogues.append(Dialogue("odd", (Turn("speaker", "hey", Label("cheerfulness")),), split="test"))
    path = tmp_path / "labelled.jsonl"
    jsonl.write(dialogues, path)
    return path


@pytest.fixture
def run(tiny_classifier, corpus, tmp_path):
    classifier = tiny_classifier()
    classifier.meta |= {"data": {"source": str(corpus)}, "seed": 1}
    checkpoint.save(classifier, tmp_path / "run" / "best")
    return tmp_path / "run"


def silent(name, total):
    return lambda more: None


def test_labelled_turns_are_scored_and_others_counted(tiny_classifier, corpus):
    labeller = Labeller(tiny_classifier())
    items = labelled_turns(jsonl.read(corpus))
    assert [item.reply.text for item in items] == [*TEXTS, "hey"]
    evaluation = evaluate_labels(labeller, items, {"data": "mine"}, silent, resamples=10)
    given = labeller.label(TEXTS)
    scores = {score.name: score.value for score in evaluation.scores}
    right = sum(label.name == name for label, name in zip(given, NAMES, strict=True))
    assert scores["accuracy@1"] == scores["weighted-recall"] == pytest.approx(100 * right / 6)
    assert [record["label"] for record in evaluation.records] == [label.name for label in given]
    assert [record["gold"] for record in evaluation.records] == list(NAMES)
    assert evaluation.about == {"data": "mine", "items": 6, "left out": 1, "labels by": {"gold": 6}}
    assert evaluation.confusion.sum() == 6
    assert {"macro-precision", "macro-recall", "macro-f1", "weighted-precision", "weighted-f1", "ece"} <= set(scores)


def test_where_the_data_has_few_labels_accuracy_among_them_is_told():
    chances = np.zeros((3, 41))
    chances[:, 40], chances[[0, 1, 2], [32, 33, 32]] = 0.6, 0.4
    gold = np.array([32, 33, 33])
    scores = {score.name: score.value for score in label_scores(chances, gold, 0)}
    assert scores["accuracy@1"] == 0
    assert scores["accuracy-of-2"] == pytest.approx(200 / 3)
    every = np.arange(41)
    assert not any("-of-" in score.name for score in label_scores(np.eye(41), every, 0))


def test_the_table_of_classes_is_scikit_learns():
    random = np.random.default_rng(3)
    scores, gold = random.normal(size=(300, 41)), random.choice([0, 3, 8, 33, 40], size=300)
    actual = class_scores(confusion(scores, gold))
    ids = [LABEL_ID[one.label] for one in actual]
    expected = precision_recall_fscore_support(gold, scores.argmax(axis=1), labels=ids, zero_division=0)
    for column, name in enumerate(("precision", "recall", "f1")):
        np.testing.assert_allclose([getattr(one, name) for one in actual], 100 * expected[column])
    assert [one.gold for one in actual] == list(expected[3])
    assert sum(one.given for one in actual) == 300


def test_labels_of_another_set_are_refused(tiny_classifier):
    dialogue = Dialogue("d", (Turn("speaker", "ok", Label("neutral")), Turn("listener", "oh", Label("happiness"))))
    with pytest.raises(ValueError, match=r"the labels of the turns are not the 41 \(neutral, happiness\)"):
        evaluate_labels(Labeller(tiny_classifier()), labelled_turns([dialogue]), {}, silent)


def test_an_evaluation_is_written_whole(tiny_classifier, corpus, tmp_path):
    evaluation = evaluate_labels(
        Labeller(tiny_classifier()), labelled_turns(jsonl.read(corpus)), {}, silent, resamples=0
    )
    write(evaluation, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "confusion.png",
        "labels.jsonl",
        "scores.json",
    ]
    summary = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert {score["name"] for score in summary["scores"]} == {score.name for score in evaluation.scores}
    assert {one["label"] for one in summary["classes"]} <= set(LABELS)


def test_evaluate_scores_a_classifier_as_such(run, corpus, capsys):
    main(["evaluate", str(run), "--resamples", "0", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["about"]["items"] == 6
    assert printed["about"]["data"] == str(corpus), "what it was trained on"
    assert (run / "evaluation" / "test" / "scores.json").is_file()
    main(["evaluate", str(run), "--data", "shipped", "--split", "all", "--limit", "9", "--resamples", "0"])
    assert (run / "evaluation" / "shipped-all-first9" / "confusion.png").is_file()
    out = capsys.readouterr().out
    assert "accuracy@1" in out
    assert "Each label" in out
    with pytest.raises(SystemExit, match="labels texts and writes no replies; leave --decoding out"):
        main(["evaluate", str(run), "--decoding.method", "greedy"])


def test_a_classifier_does_not_chat(run):
    with pytest.raises(SystemExit, match="emotion-intent reads and does not talk"):
        main(["chat", str(run)])
