"""Temperatures against a slow search, label choices against all alternatives, and `calibrate` on checkpoints."""

import json
import math
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.classifiers.calibration import (
    LEAST,
    MOST,
    calibrate,
    calibrate_choice,
    fit_choice,
    fit_temperature,
    tempered,
)
from listenwell.classifiers.labeller import Labeller
from listenwell.cli import main
from listenwell.data.batching import EncodingConfig
from listenwell.data.dialogue import Dialogue, Label, Turn, examples
from listenwell.data.sources import jsonl
from listenwell.decoding import Decoding
from listenwell.labels.taxonomy import INTENTS
from listenwell.systems.bot import Bot


@pytest.fixture
def overconfident():
    """Logits three times too large for the labels that were sampled from them."""
    random = np.random.default_rng(2)
    logits = random.normal(size=(600, 7))
    chances = np.exp(tempered(logits, 1.0))
    gold = np.array([random.choice(7, p=row) for row in chances])
    return 3 * logits, gold


def test_the_temperature_is_that_of_a_slow_search(overconfident):
    logits, gold = overconfident

    def nll(temperature):
        scaled = logits / temperature
        return np.mean([np.log(np.exp(row).sum()) - row[label] for row, label in zip(scaled, gold, strict=True)])

    grid = np.linspace(1, 6, 2001)
    slow = grid[np.argmin([nll(temperature) for temperature in grid])]
    calibration = fit_temperature(logits, gold)
    assert calibration == pytest.approx(slow, abs=0.005)
    assert calibration == pytest.approx(3, rel=0.2)
    # Log-probabilities are logits: adding a constant to a row does not change its softmax.
    assert fit_temperature(tempered(logits, 1.0), gold) == pytest.approx(calibration, abs=1e-5)


def golden_section(logits, gold):
    """The search that found the temperatures of the shipped checkpoints."""

    def nll(logarithm):
        return -tempered(logits, math.exp(logarithm))[np.arange(len(gold)), gold].mean()

    ratio, low, high = (math.sqrt(5) - 1) / 2, math.log(LEAST), math.log(MOST)
    while high - low > 1e-6:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if nll(left) < nll(right) else (left, high)
    return math.exp((low + high) / 2)


@pytest.mark.parametrize("scale", [0.03, 0.3, 1.0, 5.0])
def test_the_temperature_is_that_of_a_golden_section(overconfident, scale):
    logits, gold = overconfident
    assert fit_temperature(scale * logits, gold) == pytest.approx(golden_section(scale * logits, gold), rel=1e-6)


@pytest.mark.parametrize(("scale", "bound"), [(1e-3, LEAST), (1e3, MOST)])
def test_a_temperature_stays_within_its_bounds(overconfident, scale, bound):
    logits, gold = overconfident
    assert fit_temperature(scale * logits, gold) == pytest.approx(bound, rel=1e-6)


def test_calibration_without_scipy_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ImportError, match=r"calibration needs scipy: pip install 'listenwell\[metrics\]'"):
        fit_temperature(np.eye(4), np.arange(4))


def test_tempering_divides_logits(overconfident):
    logits, _ = overconfident
    expected = np.exp(logits / 2) / np.exp(logits / 2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(tempered(logits, 2.0)), expected)


def test_without_a_mistake_the_least_temperature_is_taken():
    assert fit_temperature(np.eye(4), np.arange(4)) == pytest.approx(LEAST, rel=1e-4)


@pytest.fixture
def turns(small_corpus):
    """Listener turns with random labels, about which a classifier must not be confident."""
    random = np.random.default_rng(1)
    read_back = (turn for dialogue in jsonl.read(small_corpus) for turn in dialogue.turns)
    return [Turn("listener", turn.text, Label(str(random.choice(INTENTS)))) for turn in read_back]


def test_a_classifier_is_calibrated_and_labels_as_before(tiny_classifier, turns):
    classifier = tiny_classifier()
    texts = [turn.text for turn in turns]
    before = Labeller(classifier).label(texts)
    calibration = calibrate(classifier, [*turns, Turn("listener", "a label of another set", Label("happiness"))])
    assert calibration.items == len(turns)
    assert calibration.temperature > 1
    assert float(classifier.model.temperature) == pytest.approx(calibration.temperature)
    assert calibration.nll_after < calibration.nll_before
    assert calibration.ece_after < calibration.ece_before
    assert classifier.meta["calibration"]["temperature"] == calibration.temperature
    after = Labeller(classifier).label(texts)
    assert [label.name for label in after] == [label.name for label in before]
    assert sum(a.confidence for a in after) < sum(b.confidence for b in before)
    assert calibrate(classifier, turns).temperature == pytest.approx(calibration.temperature), (
        "an earlier one is forgotten"
    )


def test_no_label_to_calibrate_by_is_told(tiny_classifier):
    with pytest.raises(ValueError, match="nothing to calibrate by: no turn has one of the 41 labels"):
        calibrate(tiny_classifier(), [Turn("speaker", "hello"), Turn("speaker", "hi", Label("anger"))])


def test_a_run_is_calibrated_from_the_command_line(tiny_classifier, turns, tmp_path, capsys):
    data = tmp_path / "valid.jsonl"
    jsonl.write([Dialogue(f"d{i}", (turn,)) for i, turn in enumerate(turns)], data)
    classifier = tiny_classifier()
    classifier.meta["data"] = {"source": str(data)}
    checkpoint.save(classifier, tmp_path / "run" / "best")
    main(["calibrate", str(tmp_path / "run"), "--json"])
    printed = json.loads(capsys.readouterr().out)
    again = checkpoint.load(tmp_path / "run" / "best")
    assert float(again.model.temperature) == pytest.approx(printed["temperature"])
    assert again.meta["calibration"] == {**printed, "data": str(data), "split": "valid"}
    main(["calibrate", str(tmp_path / "run"), "--data", str(data)])
    assert f"{printed['temperature']:.3f}" in capsys.readouterr().out


def test_what_cannot_be_calibrated_is_told(tiny_classifier, tmp_path):
    with pytest.raises(SystemExit, match="emotion-intent: no such folder; a run's own checkpoint is calibrated"):
        main(["calibrate", "emotion-intent"])
    checkpoint.save(tiny_classifier(), tmp_path / "bare")
    with pytest.raises(SystemExit, match="does not say what it was trained on; name the data with --data"):
        main(["calibrate", str(tmp_path / "bare")])
    (tmp_path / "bare" / "training.json").write_text("{}")
    with pytest.raises(SystemExit, match="is the state a run resumes from; give the folder of the run"):
        main(["calibrate", str(tmp_path / "bare")])


# How MEED2 chooses


@pytest.fixture
def chooser(tiny_model, tokenizer, tiny_classifier, monkeypatch, tmp_path):
    """A tiny MEED2 with a tiny classifier as its labeller. It expects intents, the later ones by far the most."""
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "cache"))
    model = tiny_model("meed2", predictor_layers=1)
    with torch.no_grad():
        model.predictor.out.weight *= 8
        model.predictor.out.bias.fill_(-20)
        model.predictor.out.bias[32:40] = 0.7 * torch.arange(8)
    ckpt = Checkpoint("meed2", model, tokenizer, EncodingConfig(separators=True), Decoding(max_length=3))
    ckpt.parts = {"labeller": tiny_classifier()}
    return ckpt


@pytest.fixture
def items(small_corpus):
    return [item for dialogue in jsonl.read(small_corpus) for item in examples(dialogue)]


def slow_f1(chosen, gold):
    """The mean F1 over labels, weighted by how often each is gold."""
    total = 0.0
    for label in set(gold):
        hits = sum(mine == right == label for mine, right in zip(chosen, gold, strict=True))
        total += gold.count(label) * 200 * hits / (chosen.count(label) + gold.count(label))
    return total / len(gold)


def expected_f1(chances, chosen):
    """The expected F1 of choices under probabilities (items, classes), weighted by expected class frequency."""
    total = 0.0
    for label in range(chances.shape[1]):
        hits = sum(chances[row, label] for row, mine in enumerate(chosen) if mine == label)
        share = chances[:, label].sum()
        total += share * 2 * hits / (share + sum(mine == label for mine in chosen))
    return total / len(chances)


def test_the_choice_is_as_good_as_the_best_of_all_choices():
    random = np.random.default_rng(5)
    for _ in range(8):
        chances = random.dirichlet([2.0, 0.7, 0.3], size=7)
        scale, offset = fit_choice(chances)
        reached = expected_f1(chances, (scale * (chances - offset)).argmax(axis=1))
        best = max(expected_f1(chances, chosen) for chosen in product(range(3), repeat=7))
        assert expected_f1(chances, chances.argmax(axis=1)) <= reached <= best
        assert reached > 0.97 * best  # so few items that one of them changes the value of the others


def test_the_more_there_are_the_nearer_comes_what_is_expected():
    random = np.random.default_rng(5)
    chances = random.dirichlet([3.0, 0.6, 0.4, 0.2], size=4000)
    gold = np.array([random.choice(4, p=row) for row in chances])
    scale, offset = fit_choice(chances)
    chosen = (scale * (chances - offset)).argmax(axis=1)
    likeliest = chances.argmax(axis=1)
    assert slow_f1(chosen.tolist(), gold.tolist()) == pytest.approx(100 * expected_f1(chances, chosen), abs=1.5)
    assert slow_f1(chosen.tolist(), gold.tolist()) > slow_f1(likeliest.tolist(), gold.tolist()) + 1


def test_the_choice_is_held_against_the_replies(chooser, items, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(type(chooser.model), "step", None)  # no reply is written
        calibration = calibrate_choice(chooser, items)
    assert (calibration.items, calibration.labels) == (len(items), "the corpus")
    gold = [item.reply.label.name for item in items]
    talks = [Dialogue("d", item.context) for item in items]
    assert calibration.temperature == pytest.approx(float(chooser.model.predictor.temperature))
    assert calibration.nll_after < calibration.nll_before
    ways = {"after": (chooser.model.label_scale.clone(), chooser.model.label_offset.clone()), "before": (1.0, 0.0)}
    for when, (scale, offset) in ways.items():  # the same as in conversation
        chooser.model.label_scale[:], chooser.model.label_offset[:] = scale, offset
        chosen = [reply.label for reply in Bot(chooser).replies(talks)]
        assert getattr(calibration, f"f1_{when}") == pytest.approx(slow_f1(chosen, gold))
        right = sum(mine == label for mine, label in zip(chosen, gold, strict=True))
        assert getattr(calibration, f"accuracy_{when}") == pytest.approx(100 * right / len(gold))
    calibrate_choice(chooser, items)
    assert torch.equal(chooser.model.label_scale, ways["after"][0]), "an earlier way is forgotten"


def test_where_the_corpus_has_other_labels_the_choice_is_held_against_the_labeller_s(chooser, items):
    bare = [replace(item, reply=Turn("listener", item.reply.text, Label("joy"))) for item in items]
    calibration = calibrate_choice(chooser, bare)
    assert calibration.labels == "the labeller"
    given = Labeller(chooser.parts["labeller"]).label([item.reply.text for item in items])
    labelled = [replace(i, reply=replace(i.reply, label=label)) for i, label in zip(items, given, strict=True)]
    again = calibrate_choice(chooser, labelled)
    assert again == replace(calibration, labels="the corpus")
    chooser.parts = {}
    assert calibrate_choice(chooser, items).labels == "the corpus"
    with pytest.raises(ValueError, match="nothing to calibrate by: no reply has one of the 41 labels"):
        calibrate_choice(chooser, bare)


def test_a_run_of_meed2_is_calibrated_from_the_command_line(chooser, small_corpus, tmp_path, capsys):
    chooser.meta["data"] = {"source": str(small_corpus)}
    checkpoint.save(chooser, tmp_path / "run" / "best")
    main(["calibrate", str(tmp_path / "run"), "--json"])
    printed = json.loads(capsys.readouterr().out)
    again = checkpoint.load(tmp_path / "run" / "best")
    assert again.meta["calibration"] == {**printed, "data": str(small_corpus), "split": "valid"}
    assert set(again.parts) == {"labeller"}
    assert not torch.equal(again.model.label_scale, chooser.model.label_scale)
    main(["calibrate", str(tmp_path / "run")])
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "against the labels of the corpus the likeliest chosen" in shown
    assert f"temperature of the predictor 1 {printed['temperature']:.3f}" in shown
    assert f"weighted F1 {printed['f1_before']:.2f} % {printed['f1_after']:.2f} %" in shown
    assert f"accuracy {printed['accuracy_before']:.2f} % {printed['accuracy_after']:.2f} %" in shown


def test_the_plain_transformer_chooses_nothing(tiny_model, tokenizer, small_corpus, tmp_path):
    checkpoint.save(Checkpoint("meed2-plain", tiny_model("meed2-plain"), tokenizer), tmp_path / "plain")
    with pytest.raises(SystemExit, match="this model was built without labels, so it has no predictor"):
        main(["calibrate", str(tmp_path / "plain"), "--data", str(small_corpus)])
