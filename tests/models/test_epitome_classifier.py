"""EPITOME's classifier against slow computations; its input, training and shipped weights; calibration and scores."""

import csv
import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import listenwell
from listenwell import checkpoint
from listenwell.classifiers.empathy import EmpathyClassifier, expected_levels, gold_levels, pair_of
from listenwell.cli import main
from listenwell.contract import ABSENT, Batch, Moment
from listenwell.data.batching import EncodingConfig, Targets, collate, encode
from listenwell.data.dialogue import Example, Label, Turn, examples
from listenwell.data.sources import epitome as source
from listenwell.labels.empathy import LEVELS, MECHANISMS, PAIR_LABELS
from listenwell.labels.sets import EMPATHY
from listenwell.models.epitome import levels_of
from listenwell.packing import pack
from listenwell.text import TextConfig
from listenwell.training import run

PAIRS = (
    ("I lost my dog.", "I am so sorry. Why?", "strong-none-weak"),
    ("I am so happy today!", "Me too.", "none-weak-none"),
    ("My dog is sick.", "Oh no.", "weak-none-none"),
)


def batch_of(made, pairs=PAIRS):
    items = [
        Example(str(row), (Turn("speaker", post),), Turn("listener", reply, Label(label)))
        for row, (post, reply, label) in enumerate(pairs)
    ]
    encoded = encode(items, made.tokenizer, made.encoding, True, Targets(EMPATHY))
    return collate(encoded, range(len(items)), made.tokenizer.pad)


def slowly(made, post, reply):
    """The logits of the heads for one pair, without padding, position by position."""
    model, tokenizer = made.model, made.tokenizer
    first = [tokenizer.start, *tokenizer.encode(post), tokenizer.end]
    second = [*tokenizer.encode(reply), tokenizer.end]
    segments = torch.tensor([[0] * len(first) + [1] * len(second)])
    hidden = model.backbone.model(torch.tensor([[*first, *second]]), segments=segments)
    positions = hidden[0, len(first) :]
    logits = []
    for name in MECHANISMS:
        head = model.heads[name]
        scores = torch.stack([head.attention @ h for h in positions]) / positions.shape[1] ** 0.5
        pooled = sum(weight * h for weight, h in zip(scores.softmax(0), positions, strict=True))
        logits.append(head.out.weight @ pooled + head.out.bias)
    return torch.stack(logits)


def test_each_head_reads_the_positions_of_the_reply_in_the_light_of_the_post(tiny_epitome):
    made = tiny_epitome()
    with torch.inference_mode():
        logits = made.model.logits(batch_of(made))
        for row, (post, reply, _) in enumerate(PAIRS):
            torch.testing.assert_close(logits[row], slowly(made, post, reply), atol=1e-4, rtol=1e-4)
        swapped = made.model.logits(batch_of(made, [("Hello!", *PAIRS[0][1:]), *PAIRS[1:]]))
    assert not torch.allclose(logits[0], swapped[0])
    torch.testing.assert_close(logits[1:], swapped[1:])


def test_a_rare_level_counts_more_in_learning_and_the_probabilities_undo_it(tiny_epitome):
    made = tiny_epitome(balance=0.5)
    batch, model = batch_of(made), made.model
    model.heads["interpretations"].temperature.fill_(1.5)
    with torch.inference_mode():
        terms = model.objective("classify", batch, Moment())
        logits, log_p = model.logits(batch), model.level_log_probs(batch)
    total, plain = 0.0, 0.0
    for m, name in enumerate(MECHANISMS):
        shares = model.shares[m]
        weights = shares**-0.5
        weights = weights / sum(share * weight for share, weight in zip(shares, weights, strict=True))
        scale = 1.5 if name == "interpretations" else 1.0
        for row, (_, _, label) in enumerate(PAIRS):
            gold = LEVELS.index(label.split("-")[m])
            total += weights[gold] * F.cross_entropy(logits[row, m], torch.tensor(gold))
            p = logits[row, m].softmax(0) * shares**0.5
            plain -= (p / p.sum())[gold].log()
            expected = p ** (1 / scale) / (p ** (1 / scale)).sum()
            torch.testing.assert_close(log_p[row, m].exp(), expected)
    torch.testing.assert_close(terms["empathy"].total, total)
    torch.testing.assert_close(terms["empathy"].plain, plain)
    assert [name for name, term in terms.items() if term.learned] == ["empathy"]


def test_a_pair_label_is_three_levels_in_one(tiny_epitome):
    ids = torch.tensor([PAIR_LABELS.index("strong-none-weak"), ABSENT, PAIR_LABELS.index("none-none-strong")])
    assert levels_of(ids).tolist() == [[2, 0, 1], [ABSENT] * 3, [0, 0, 2]]
    made = tiny_epitome()
    assert torch.equal(levels_of(batch_of(made).label), torch.tensor([[2, 0, 1], [0, 1, 0], [1, 0, 0]]))
    made.model.on_epoch_start("classify", 0, lambda: [batch_of(made)])
    torch.testing.assert_close(made.model.shares[0], torch.tensor([1.0, 1.0, 1.0]) / 3)
    torch.testing.assert_close(made.model.shares[1], torch.tensor([2.0, 1.0, 1.0]) / 4)  # unseen levels count once


def test_it_needs_a_post_and_a_reply(tiny_epitome):
    with pytest.raises(ValueError, match="an example needs a context and a reply"):
        tiny_epitome().model.logits(Batch())


def test_the_lower_layers_are_borrowed_and_not_stored(tiny_epitome, tmp_path):
    made = tiny_epitome()
    checkpoint.save(made, tmp_path / "one")
    stored = checkpoint.read_tensors(tmp_path / "one" / "model.safetensors")
    assert not any("embeddings" in name or "layer.0." in name for name in stored)
    again = EmpathyClassifier.load(tmp_path / "one")
    pairs = [pair[:2] for pair in PAIRS]
    np.testing.assert_allclose(again.log_probs(pairs), EmpathyClassifier(made).log_probs(pairs), atol=1e-6)


def test_equal_pairs_are_read_once_and_levels_are_chosen_as_they_were_weighed(tiny_epitome):
    classifier = EmpathyClassifier(tiny_epitome(balance=1.0))
    pairs, ready = [pair[:2] for pair in PAIRS], []
    log_p = classifier.log_probs([*pairs, pairs[0]], ready.append)
    assert sum(ready) == 4
    np.testing.assert_allclose(log_p[3], log_p[0])
    np.testing.assert_allclose(np.exp(log_p).sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(classifier.expected(pairs), expected_levels(np.exp(log_p[:3])))
    rare = np.log([[[0.7, 0.2, 0.1]] * 3])
    assert classifier.choose(rare).tolist() == [[0, 1, 1]], "0.2 is much for a level that one pair in twenty has"
    assert expected_levels(np.array([0.2, 0.3, 0.5])) == pytest.approx(1.3)


def test_gold_is_what_people_said():
    item = Example("a", (Turn("speaker", "x"),), Turn("listener", "y", Label("weak-none-strong")))
    bare = Example("b", (Turn("speaker", "x"),), Turn("listener", "y", Label("sad")))
    assert gold_levels([item, bare]).tolist() == [[1, 0, 2], [ABSENT] * 3]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Small files in EPITOME's format, in which the levels are easy to tell apart."""
    folder = tmp_path_factory.mktemp("data") / "epitome"
    folder.mkdir()
    says = {
        "emotional-reactions": ("well", "oh", "sorry"),
        "interpretations": ("it", "know", "my"),
        "explorations": (".", "you", "?"),
    }
    random = np.random.default_rng(1)
    levels = random.integers(0, 3, size=(160, 3))
    for m, part in enumerate(MECHANISMS):
        with (folder / f"{part}.csv").open("w", encoding="utf-8", newline="") as stream:
            rows = csv.writer(stream)
            rows.writerow(source.HEADER)
            for number, given in enumerate(levels):
                reply = " ".join(says[name][level] for name, level in zip(MECHANISMS, given, strict=True))
                rows.writerow([f"p{number}", f"r{number}", f"I am sad {number}", reply, given[m], ""])
    return folder


@pytest.fixture(scope="module")
def trained(corpus, tiny_backbone, tiny_recipe, tiny_stage, tmp_path_factory):
    folder = tmp_path_factory.mktemp("epitome") / "run"
    stage = tiny_stage(
        epochs=25,
        validate_every=30,
        criterion="empathy",
        keep="last",
        moves=[{"objective": "classify"}],
        streams={"train": {"examples": 8}},
        optimizers={"main": {"rate": 1e-3, "warmup": 4, "factors": {"heads.*": 5}}},
    )
    recipe = tiny_recipe(
        name="tiny-epitome",
        data={"source": "epitome", "path": str(corpus), "part": "levels", "labels": "empathy"},
        model={"name": "epitome", "backbone": str(tiny_backbone), "upper": 2},
        text=TextConfig("backbone", backbone=str(tiny_backbone)),
        encoding=EncodingConfig(max_context=12, max_reply=24, separators=True),
        stages=[stage],
    )
    run.train(recipe, folder, quiet=True)
    return folder


def test_it_learns_by_a_recipe(trained, corpus):
    classifier = EmpathyClassifier.load(trained)
    items = [item for dialogue in source.read(corpus, "train", part="levels") for item in examples(dialogue)]
    chosen = classifier.choose(classifier.log_probs([pair_of(item) for item in items]))
    assert (chosen == gold_levels(items)).mean() > 0.45, "a third would be chance"


def test_it_is_calibrated_scored_and_packed(trained, corpus, tmp_path, capsys):
    main(["calibrate", str(trained), "--path", str(corpus), "--json"])
    assert set(json.loads(capsys.readouterr().out)) == set(MECHANISMS)
    main(["evaluate", str(trained), "--path", str(corpus), "--resamples", "50"])
    out = " ".join(capsys.readouterr().out.split())
    assert "scores.json, levels.jsonl" in out
    written = json.loads((trained / "evaluation" / "test" / "scores.json").read_text())
    scores = {score["name"]: score for score in written["scores"]}
    assert list(scores) == [f"{name}-{kind}" for name in MECHANISMS for kind in ("macro-f1", "accuracy", "ece")]
    assert scores["explorations-macro-f1"]["low"] <= scores["explorations-macro-f1"]["value"]
    assert set(written["about"]["mean levels"]) == set(MECHANISMS)
    lines = (trained / "evaluation" / "test" / "levels.jsonl").read_text().splitlines()
    assert set(json.loads(lines[0])) == {"id", "gold", "level", "expected"}, "no text of the corpus"
    with pytest.raises(ValueError, match=r"epitome .* does not talk"):
        listenwell.load(trained)
    place = pack(trained, tmp_path / "packed")
    card = (place / "CARD.md").read_text()
    assert "EPITOME (academic use only): for academic use only" in " ".join(card.split())
    assert "no\n  person's judgement" in card
    pairs = [pair[:2] for pair in PAIRS]
    before, after = (EmpathyClassifier.load(at).distribution(pairs) for at in (trained, place))
    assert abs(before - after).max() < 0.1


def test_what_is_for_replies_is_refused_and_other_data_is_told(trained, corpus, small_corpus):
    with pytest.raises(SystemExit, match="writes no replies; leave --empathy out"):
        main(["evaluate", str(trained), "--path", str(corpus), "--empathy", str(trained)])
    with pytest.raises(SystemExit, match="no reply has levels of empathy"):
        main(["evaluate", str(trained), "--data", str(small_corpus), "--split", "valid"])
