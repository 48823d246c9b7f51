"""The temperature and the prior of a choice against a slow search; what `listenwell calibrate` does to a checkpoint."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from listenwell import checkpoint
from listenwell.batching import EncodingConfig
from listenwell.calibration import LEAST, PRIORS, calibrate, calibrate_choice, fit_temperature, tempered
from listenwell.checkpoint import Checkpoint
from listenwell.cli import main
from listenwell.decoding import Decoding
from listenwell.dialogue import Dialogue, Label, Turn, examples
from listenwell.labelling import Labeller
from listenwell.sources import jsonl
from listenwell.system import Bot
from listenwell.taxonomy import INTENTS


@pytest.fixture
def overconfident():
    """Logits three times too large for the labels that were drawn by them."""
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
    found = fit_temperature(logits, gold)
    assert found == pytest.approx(slow, abs=0.005)
    assert found == pytest.approx(3, rel=0.2)
    # Log-probabilities are logits: a constant in a row changes no softmax.
    assert fit_temperature(tempered(logits, 1.0), gold) == pytest.approx(found, abs=1e-5)


def test_tempering_divides_logits(overconfident):
    logits, _ = overconfident
    expected = np.exp(logits / 2) / np.exp(logits / 2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(tempered(logits, 2.0)), expected)


def test_without_a_mistake_the_least_temperature_is_taken():
    assert fit_temperature(np.eye(4), np.arange(4)) == pytest.approx(LEAST, rel=1e-4)


@pytest.fixture
def turns(small_corpus):
    """Listener turns labelled at random: a classifier must not be sure of anything there."""
    random = np.random.default_rng(1)
    found = (turn for dialogue in jsonl.read(small_corpus) for turn in dialogue.turns)
    return [Turn("listener", turn.text, Label(str(random.choice(INTENTS)))) for turn in found]


def test_a_classifier_is_calibrated_and_labels_as_before(tiny_classifier, turns):
    made = tiny_classifier()
    texts = [turn.text for turn in turns]
    before = Labeller(made).label(texts)
    found = calibrate(made, [*turns, Turn("listener", "a label of another set", Label("happiness"))])
    assert found.items == len(turns)
    assert found.temperature > 1
    assert float(made.model.temperature) == pytest.approx(found.temperature)
    assert found.nll_after < found.nll_before
    assert found.ece_after < found.ece_before
    assert made.meta["calibration"]["temperature"] == found.temperature
    after = Labeller(made).label(texts)
    assert [label.name for label in after] == [label.name for label in before]
    assert sum(a.confidence for a in after) < sum(b.confidence for b in before)
    assert calibrate(made, turns).temperature == pytest.approx(found.temperature), "an earlier one is forgotten"


def test_no_label_to_calibrate_by_is_told(tiny_classifier):
    with pytest.raises(ValueError, match="nothing to calibrate by: no turn has one of the 41 labels"):
        calibrate(tiny_classifier(), [Turn("speaker", "hello"), Turn("speaker", "hi", Label("anger"))])


def test_a_run_is_calibrated_from_the_command_line(tiny_classifier, turns, tmp_path, capsys):
    data = tmp_path / "valid.jsonl"
    jsonl.write([Dialogue(f"d{i}", (turn,)) for i, turn in enumerate(turns)], data)
    made = tiny_classifier()
    made.meta["data"] = {"source": str(data)}
    checkpoint.save(made, tmp_path / "run" / "best")
    main(["calibrate", str(tmp_path / "run"), "--json"])
    told = json.loads(capsys.readouterr().out)
    again = checkpoint.load(tmp_path / "run" / "best")
    assert float(again.model.temperature) == pytest.approx(told["temperature"])
    assert again.meta["calibration"] == {**told, "data": str(data), "split": "valid"}
    main(["calibrate", str(tmp_path / "run"), "--data", str(data)])
    assert f"{told['temperature']:.3f}" in capsys.readouterr().out


def test_what_cannot_be_calibrated_is_told(tiny_classifier, tmp_path):
    with pytest.raises(SystemExit, match="emotion-intent: no such folder; a run's own checkpoint is calibrated"):
        main(["calibrate", "emotion-intent"])
    checkpoint.save(tiny_classifier(), tmp_path / "bare")
    with pytest.raises(SystemExit, match="does not tell what it was trained on; name the data with --data"):
        main(["calibrate", str(tmp_path / "bare")])
    (tmp_path / "bare" / "training.json").write_text("{}")
    with pytest.raises(SystemExit, match="is what a run goes on from; give the folder of the run"):
        main(["calibrate", str(tmp_path / "bare")])


# How MEED2 chooses


@pytest.fixture
def chooser(tiny_model, tokenizer, tiny_classifier, monkeypatch, tmp_path):
    """A tiny MEED2 that hears with a tiny classifier. It expects intents, the later ones by far the most."""
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "cache"))
    model = tiny_model("meed2", predictor_layers=1, choice_prior=0.7)
    shares = torch.full((41,), 1e-4)
    shares[32:40] = 2.0 ** torch.arange(8)
    model.shares.copy_(shares / shares.sum())
    with torch.no_grad():
        model.predictor.out.weight *= 8
        model.predictor.out.bias.copy_(model.shares.log())
        model.predictor.out.bias[:32] -= 20
    made = Checkpoint("meed2", model, tokenizer, EncodingConfig(separators=True), Decoding(max_length=3))
    made.parts = {"labeller": tiny_classifier()}
    return made


@pytest.fixture
def items(small_corpus):
    return [item for dialogue in jsonl.read(small_corpus) for item in examples(dialogue)]


def slow_f1(chosen, gold):
    """The mean F1 of the labels, each counted as often as it is gold."""
    total = 0.0
    for label in set(gold):
        hits = sum(mine == right == label for mine, right in zip(chosen, gold, strict=True))
        total += gold.count(label) * 200 * hits / (chosen.count(label) + gold.count(label))
    return total / len(gold)


def test_the_prior_is_the_one_whose_choices_agree_best_with_the_replies(chooser, items, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(type(chooser.model), "step", None)  # no reply is written
        found = calibrate_choice(chooser, items)
    assert [prior for prior, _ in found.curve] == list(PRIORS) == [tenth / 10 for tenth in range(11)]
    assert (found.before, found.items, found.labels) == (0.7, len(items), "the corpus")
    assert chooser.meta["calibration"]["choice_prior"] == found.choice_prior == chooser.model.config.choice_prior
    gold = [item.reply.label.name for item in items]
    talks = [item.context for item in items]
    worth = {}
    for prior in PRIORS:  # as it talks
        chooser.model.config.choice_prior = prior
        chosen = [reply.label for reply in Bot(chooser).replies([Dialogue("d", talk) for talk in talks])]
        worth[prior] = slow_f1(chosen, gold)
    assert dict(found.curve) == pytest.approx(worth)
    assert len(set(worth.values())) > 1
    assert found.choice_prior == max(PRIORS, key=worth.__getitem__)


def test_where_the_corpus_has_other_labels_the_choice_is_held_against_the_labeller_s(chooser, items):
    bare = [replace(item, reply=Turn("listener", item.reply.text, Label("joy"))) for item in items]
    found = calibrate_choice(chooser, bare)
    assert found.labels == "the labeller"
    given = Labeller(chooser.parts["labeller"]).label([item.reply.text for item in items])
    told = [replace(i, reply=replace(i.reply, label=label)) for i, label in zip(items, given, strict=True)]
    again = calibrate_choice(chooser, told)
    assert (again.labels, again.curve) == ("the corpus", found.curve)
    chooser.parts = {}
    assert calibrate_choice(chooser, items).labels == "the corpus"
    with pytest.raises(ValueError, match="nothing to calibrate by: no reply has one of the 41 labels"):
        calibrate_choice(chooser, bare)


def test_a_run_of_meed2_is_calibrated_from_the_command_line(chooser, small_corpus, tmp_path, capsys):
    chooser.meta["data"] = {"source": str(small_corpus)}
    checkpoint.save(chooser, tmp_path / "run" / "best")
    main(["calibrate", str(tmp_path / "run"), "--json"])
    told = json.loads(capsys.readouterr().out)
    again = checkpoint.load(tmp_path / "run" / "best")
    assert again.model.config.choice_prior == told["choice_prior"]
    assert again.meta["calibration"] == {**told, "data": str(small_corpus), "split": "valid"}
    assert set(again.parts) == {"labeller"}
    assert torch.equal(again.model.shares, chooser.model.shares)
    main(["calibrate", str(tmp_path / "run")])
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for prior, f1 in told["curve"]:
        assert f"{prior:.1f} {f1:.2f} %{' chosen' if prior == told['choice_prior'] else ''}" in shown


def test_the_plain_transformer_chooses_nothing(tiny_model, tokenizer, small_corpus, tmp_path):
    checkpoint.save(Checkpoint("meed2-plain", tiny_model("meed2-plain"), tokenizer), tmp_path / "plain")
    with pytest.raises(SystemExit, match="this model knows no labels, so that it has no predictor"):
        main(["calibrate", str(tmp_path / "plain"), "--data", str(small_corpus)])
