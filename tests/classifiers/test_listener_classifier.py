"""Predictions of a listener for dialogues: batching, ranking, calibration, scores; and gold labels are never read."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from listenwell import checkpoint
from listenwell.classifiers.calibration import calibrate_listener, tempered
from listenwell.classifiers.listener import ListenerClassifier, listens
from listenwell.cli import main
from listenwell.commands.evaluate_classifier import evaluate_contexts
from listenwell.commands.evaluation_input import Corpus, Options, Subject
from listenwell.data.batching import collate, encode
from listenwell.data.dialogue import Dialogue, Example, Label, Turn, examples
from listenwell.data.sources import jsonl
from listenwell.evaluation.listener_scores import evaluate_listening, write
from listenwell.labels.taxonomy import EMOTION_ID, EMOTIONS, INTENTS, LABEL_ID, LABELS


@pytest.fixture
def dialogues(small_corpus):
    """Random emotions and reply labels, about which a listener must not be confident."""
    random = np.random.default_rng(4)

    def turn(one):
        label = Label(str(random.choice(INTENTS))) if one.speaker == "listener" else None
        return replace(one, label=label)

    return [
        replace(d, turns=tuple(map(turn, d.turns)), emotion=Label(str(random.choice(EMOTIONS))), split="valid")
        for d in jsonl.read(small_corpus)
    ]


@pytest.fixture
def items(dialogues):
    return [item for dialogue in dialogues for item in examples(dialogue)]


def silent(name, total):
    return lambda more: None


def test_every_dialogue_is_heard_in_its_place_and_likeliest_first(tiny_listener, items):
    listener = tiny_listener()
    progress = []
    predictions = ListenerClassifier(listener).predict([item.context for item in items], progress.append)
    assert sum(progress) == len(items) == len(predictions)
    for item, one in list(zip(items, predictions, strict=True))[:6]:
        batch = collate(encode([item], listener.tokenizer, listener.encoding), [0], listener.tokenizer.pad)
        with torch.inference_mode():
            alone = {name: log_p[0].exp() for name, log_p in listener.model.predict(batch).items()}
        for name, actual, ids in (("emotion", one.emotions, EMOTION_ID), ("label", one.labels, LABEL_ID)):
            assert set(actual) == set(ids)
            assert list(actual.values()) == sorted(actual.values(), reverse=True)
            assert sum(actual.values()) == pytest.approx(1)
            for key, chance in actual.items():
                assert chance == pytest.approx(float(alone[name][ids[key]]), abs=1e-5)
        assert one.emotion == EMOTIONS[int(alone["emotion"].argmax())]


def test_nothing_gold_is_read(tiny_listener, items):
    listening = ListenerClassifier(tiny_listener())
    bare = listening.predict([item.context for item in items])
    other = [tuple(replace(turn, label=Label("furious")) for turn in item.context) for item in items]
    assert listening.predict(other) == bare
    changed = [
        replace(item, emotion=Label("afraid"), reply=Turn("listener", "!", Label("neutral")), situation="x")
        for item in items
    ]
    before, after = (evaluate_listening(listening, some, {}, silent, resamples=0) for some in (items, changed))
    predictions = [[(r["emotions"], r["labels"]) for r in evaluation.records] for evaluation in (before, after)]
    assert predictions[0] == predictions[1]


@pytest.fixture
def drawn(tiny_listener, items):
    """The items repeated many times, with labels sampled from a listener that is half, and a third, as confident."""
    random = np.random.default_rng(5)
    log_probs = ListenerClassifier(tiny_listener()).log_probs([item.context for item in items])
    emotions, labels = np.exp(tempered(log_probs["emotion"], 2.0)), np.exp(tempered(log_probs["label"], 3.0))
    return [
        replace(
            item,
            emotion=Label(str(random.choice(EMOTIONS, p=emotions[row]))),
            reply=replace(item.reply, label=Label(str(random.choice(LABELS, p=labels[row])))),
        )
        for _ in range(10)
        for row, item in enumerate(items)
    ]


def test_both_heads_are_calibrated_and_hear_as_before(tiny_listener, drawn):
    listener = tiny_listener()
    contexts = [item.context for item in drawn[:40]]
    before = ListenerClassifier(listener).predict(contexts)
    calibration = calibrate_listener(listener, drawn)
    assert set(calibration) == {"emotion", "label"}
    for (name, one), true in zip(calibration.items(), (2, 3), strict=True):
        assert one.items == len(drawn)
        assert one.temperature == pytest.approx(true, rel=0.15)
        assert float(listener.model.heads[name].temperature) == pytest.approx(one.temperature)
        assert one.nll_after < one.nll_before
        assert one.ece_after < one.ece_before
        assert listener.meta["calibration"][name]["temperature"] == one.temperature
    after = ListenerClassifier(listener).predict(contexts)
    assert [(one.emotion, next(iter(one.labels))) for one in after] == [
        (one.emotion, next(iter(one.labels))) for one in before
    ]
    again = calibrate_listener(listener, drawn)
    assert again["label"].temperature == pytest.approx(calibration["label"].temperature), "an earlier one is forgotten"


def test_a_head_without_labels_keeps_its_temperature(tiny_listener, items):
    listener = tiny_listener()
    bare = [replace(item, reply=Turn("listener", "oh", Label("happiness"))) for item in items]
    assert set(calibrate_listener(listener, bare)) == {"emotion"}
    assert float(listener.model.heads["label"].temperature) == 1
    with pytest.raises(ValueError, match="nothing to calibrate by: no dialogue has an emotion, and no reply one of"):
        calibrate_listener(listener, [Example("x", (Turn("speaker", "hello"),))])


def test_a_run_is_calibrated_from_the_command_line(tiny_listener, dialogues, tmp_path, capsys):
    data = tmp_path / "valid.jsonl"
    jsonl.write(dialogues, data)
    listener = tiny_listener()
    listener.meta["data"] = {"source": str(data)}
    checkpoint.save(listener, tmp_path / "run" / "best")
    main(["calibrate", str(tmp_path / "run"), "--json"])
    printed = json.loads(capsys.readouterr().out)
    again = checkpoint.load(tmp_path / "run" / "best")
    for name, one in printed.items():
        assert float(again.model.heads[name].temperature) == pytest.approx(one["temperature"])
    assert again.meta["calibration"] == {**printed, "data": str(data), "split": "valid"}
    main(["calibrate", str(tmp_path / "run")])
    out = capsys.readouterr().out
    assert all(f"{one['temperature']:.3f}" in out for one in printed.values())
    assert "valid, emotion" in " ".join(out.split())


def test_scores_are_those_of_what_was_heard(tiny_listener, items):
    listening = ListenerClassifier(tiny_listener())
    evaluation = evaluate_listening(listening, items, {"data": "mine"}, silent, resamples=0)
    scores = {score.name: score.value for score in evaluation.scores}
    predictions = listening.predict([item.context for item in items])
    ranks = [list(one.emotions).index(item.emotion.name) for one, item in zip(predictions, items, strict=True)]
    for k in (1, 2, 5):
        assert scores[f"accuracy@{k}"] == pytest.approx(100 * np.mean([rank < k for rank in ranks]))
    right = [next(iter(one.labels)) == item.reply.label.name for one, item in zip(predictions, items, strict=True)]
    assert scores["label-recall"] == pytest.approx(100 * np.mean(right)), "weighted recall is accuracy"
    assert {"macro-f1", "ece", "label-precision", "label-f1", "label-ece", "random-label-f1"} <= set(scores)
    assert evaluation.about == {"data": "mine", "items": len(items)}
    assert evaluation.confusion.sum() == len(items)
    assert [record["gold emotion"] for record in evaluation.records] == [item.emotion.name for item in items]
    assert all(len(record["labels"]) == 5 for record in evaluation.records)


def test_labels_of_another_set_are_not_scored_and_no_emotion_is_told(tiny_listener, items):
    listening = ListenerClassifier(tiny_listener())
    other = [replace(item, reply=Turn("listener", "oh", Label("happiness"))) for item in items]
    evaluation = evaluate_listening(listening, other, {}, silent, resamples=0)
    assert not any("label" in score.name for score in evaluation.scores)
    assert {record["gold label"] for record in evaluation.records} == {None}
    with pytest.raises(ValueError, match="nothing to score: no dialogue in the data has one of the 32 emotions"):
        evaluate_listening(listening, [replace(item, emotion=None) for item in items], {}, silent)


def test_an_evaluation_is_written_whole_and_shown(tiny_listener, dialogues, items, tmp_path, capsys):
    listener = tiny_listener()
    write(evaluate_listening(ListenerClassifier(listener), items, {}, silent, resamples=0), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["confusion.png", "heard.jsonl", "scores.json"]
    corpus = Corpus("mine", None, dialogues, {"data": "mine", "split": "valid"})
    new = tmp_path / "new" / "valid"
    evaluate_contexts(Options("run", limit=9, resamples=10), Subject(listener), corpus, new)
    out = capsys.readouterr().out
    assert "run on mine, valid: 9 contexts" in out
    assert "random-label-f1" in out
    evaluate_contexts(Options("run", limit=9, resamples=0, json=True), Subject(listener), corpus, None)
    printed = json.loads(capsys.readouterr().out)
    saved = json.loads((new / "scores.json").read_text())
    assert [score["value"] for score in printed["scores"]] == [score["value"] for score in saved["scores"]]


def test_what_cannot_be_heard_is_told(tiny_listener, tiny_classifier):
    assert listens(tiny_listener())
    assert not listens(tiny_classifier())
    with pytest.raises(ValueError, match="emotion-intent does not listen to dialogues; house-listener does"):
        ListenerClassifier(tiny_classifier())
    with pytest.raises(ValueError, match="dialogue 1: there is nothing to listen to, it has no turn"):
        ListenerClassifier(tiny_listener()).predict([Dialogue.from_texts(["hello"]).turns, ()])
    assert ListenerClassifier(tiny_listener()).predict([]) == []
