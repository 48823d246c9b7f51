"""The temperature against a slow search; and what `listenwell calibrate` does to a checkpoint."""

import json

import numpy as np
import pytest

from listenwell import checkpoint
from listenwell.calibration import LEAST, calibrate, fit_temperature, tempered
from listenwell.cli import main
from listenwell.dialogue import Dialogue, Label, Turn
from listenwell.labelling import Labeller
from listenwell.sources import jsonl
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
