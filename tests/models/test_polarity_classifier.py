"""The polarity classifier: its labels, its shared layers, training by a recipe, and where it is refused."""

import json
from dataclasses import replace

import pytest
import torch

from listenwell import checkpoint
from listenwell.backbones import BackboneError
from listenwell.classifiers.labeller import Labeller
from listenwell.cli import main
from listenwell.configuration import ConfigError
from listenwell.data.batching import EncodingConfig, Targets, collate, encode
from listenwell.data.dialogue import Example, Label, Turn
from listenwell.data.sources import jsonl
from listenwell.evaluation.evaluate import check_judge
from listenwell.labels.polarity import POLARITIES
from listenwell.labels.sets import label_set
from listenwell.models import build
from listenwell.packing import pack
from listenwell.text import TextConfig
from listenwell.training import run

TEXTS = ("I am so happy today!", "That is sad.", "Why did you go?")


def batch_of(ckpt, labels=POLARITIES):
    items = [Example(text, reply=Turn("speaker", text, Label(name))) for text, name in zip(TEXTS, labels, strict=True)]
    data = encode(items, ckpt.tokenizer, EncodingConfig(), targets=Targets(label_set("polarity")))
    return collate(data, range(len(items)), ckpt.tokenizer.pad)


def test_labels_are_ids_of_the_set_that_is_asked_for(tiny_classifier):
    classifier = tiny_classifier(labels="polarity")
    assert batch_of(classifier).label.tolist() == [0, 1, 2]
    assert classifier.model.label_set == label_set("polarity")
    with torch.inference_mode():
        assert classifier.model.label_log_probs(batch_of(classifier)).shape == (3, 3)
    actual = Labeller(classifier, "polarity").label(TEXTS)
    assert {label.name for label in actual} <= set(POLARITIES)
    with pytest.raises(ValueError, match="labels texts by polarity, where emotion-intent is expected"):
        Labeller(classifier)


def test_a_config_from_before_there_were_label_sets_is_still_read(tiny_classifier, tmp_path):
    classifier = tiny_classifier()
    checkpoint.save(classifier, tmp_path / "saved")
    file = tmp_path / "saved" / "config.json"
    config = json.loads(file.read_text())
    del config["model"]["labels"], config["model"]["upper"]
    file.write_text(json.dumps(config))
    assert checkpoint.load(tmp_path / "saved").model.config == classifier.model.config


def test_what_lies_below_the_upper_layers_is_borrowed(tiny_classifier, tiny_backbone, tmp_path):
    classifier = tiny_classifier(labels="polarity", upper=1)
    lower = classifier.model.borrowed()
    assert "backbone.model.embeddings.word_embeddings.weight" in lower
    assert {name.split(".")[4] for name in lower if ".layer." in name} == {"0"}
    checkpoint.save(classifier, tmp_path / "saved")
    kept = set(checkpoint.read_tensors(tmp_path / "saved" / "model.safetensors"))
    assert kept == set(classifier.model.state_dict()) - lower
    again = checkpoint.load(tmp_path / "saved")
    with torch.inference_mode():
        assert torch.equal(
            again.model.label_log_probs(batch_of(again)), classifier.model.label_log_probs(batch_of(classifier))
        )
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    config["model"]["backbone"] = str(tmp_path)
    (tmp_path / "saved" / "config.json").write_text(json.dumps(config))
    with pytest.raises(BackboneError, match=r"no config\.json or tokenizer\.json in this folder"):
        checkpoint.load(tmp_path / "saved")


@pytest.mark.parametrize("upper", [0, 3])
def test_more_layers_than_there_are_cannot_learn(tiny_backbone, tiny_classifier, upper):
    vocabulary = tiny_classifier().tokenizer.vocabulary
    with pytest.raises(ConfigError, match=f"upper is {upper}, expected 1 to 2"):
        build("polarity", {"backbone": str(tiny_backbone), "upper": upper}, vocabulary)


@pytest.fixture(scope="module")
def corpus(small_corpus, tmp_path_factory):
    """Listener turns labelled positive if they agree or encourage, negative if they sympathize, and some neutral."""
    labels = {"encouraging": "joyful", "agreeing": "proud", "sympathizing": "sad", "consoling": "angry"}
    dialogues = []
    for dialogue in jsonl.read(small_corpus):
        names = [labels.get(turn.label.name, turn.label.name) if turn.label else None for turn in dialogue.turns]
        turns = (replace(t, label=n and Label(n)) for t, n in zip(dialogue.turns, names, strict=True))
        dialogues.append(replace(dialogue, turns=tuple(turns)))
    path = tmp_path_factory.mktemp("polarity") / "polar.jsonl"
    jsonl.write(dialogues, path)
    return path


@pytest.fixture(scope="module")
def recipe(corpus, tiny_backbone, tiny_recipe, tiny_stage):
    sides = {"sides": ["reply"], "replies_by": ["speaker", "listener"]}

    def make(labels="polarity", **fields):
        stage = tiny_stage(
            examples=200,
            validate_every=10,
            criterion="label",
            keep="last",
            moves=[{"objective": "classify"}],
            streams={"train": {"examples": 8, **sides}},
            optimizers={"main": {"rate": 2e-3, "warmup": 4, "factors": {"out.*": 10}}},
        )
        return tiny_recipe(
            name="tiny-judge",
            model={"name": "polarity", "backbone": str(tiny_backbone), "upper": 1},
            text=TextConfig("backbone", backbone=str(tiny_backbone)),
            data={"source": str(corpus), "labels": labels, "labelled": True, **sides},
            stages=[stage],
            **fields,
        )

    return make


@pytest.fixture(scope="module")
def trained(recipe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge") / "run"
    run.train(recipe(), folder, quiet=True)
    return folder


def test_only_the_upper_layers_learn_and_only_labelled_turns_are_read(trained, tiny_classifier, corpus):
    ckpt = checkpoint.load(trained / "best")
    fresh = tiny_classifier(labels="polarity", upper=1).model.state_dict()
    # Lower layers that were trained would be lost in the checkpoint; "last" is what the run itself resumed from.
    for place in ("best", "last"):
        actual = checkpoint.load(trained / place).model
        lower = actual.borrowed()
        assert all(torch.equal(weight, fresh[name]) for name, weight in actual.state_dict().items() if name in lower)
    upper = "backbone.model.encoder.layer.1.output.dense.weight"
    assert not torch.equal(ckpt.model.state_dict()[upper], fresh[upper])
    dialogues = list(jsonl.read(corpus, "train"))
    labelled = [
        t for d in dialogues for t in d.turns if t.label and t.label.name in ("joyful", "proud", "sad", "angry")
    ]
    neutral = [t for d in dialogues for t in d.turns if t.label and t.label.name in ("questioning", "suggesting")]
    assert ckpt.meta["data"]["examples"] == len(labelled) + len(neutral)


def test_gradients_stop_above_what_is_borrowed(recipe, tiny_classifier):
    from listenwell.training.optimizers import OptimizerSet

    classifier = tiny_classifier(labels="polarity", upper=1)
    optimizer_set = OptimizerSet(classifier.model, recipe().stages[0].optimizers)
    classifier.model.train()
    optimizer_set.activate("main")
    assert not classifier.model.backbone.model.embeddings.training, "no dropout in what does not learn"
    assert classifier.model.backbone.model.encoder.layer[1].training
    seen = []
    classifier.model.backbone.model.encoder.layer[1].register_forward_pre_hook(
        lambda module, given: seen.append(given[0])
    )
    classifier.model.logits(batch_of(classifier)).sum().backward()
    assert not seen[0].requires_grad, "nothing below is remembered for a backward pass"
    lower = classifier.model.borrowed()
    assert all((p.grad is None) == (name in lower) for name, p in classifier.model.named_parameters())


def test_data_of_another_label_set_is_refused_before_the_first_stage(recipe, tmp_path):
    with pytest.raises(
        ConfigError, match=r"stage joint, .*its labels are emotion-intent, but classify of polarity knows labels: po"
    ):
        run.train(recipe(labels="emotion-intent"), tmp_path / "run", quiet=True)


def test_it_is_calibrated_and_evaluated_by_the_usual_commands(trained, corpus, capsys):
    main(["calibrate", str(trained), "--json"])
    assert json.loads(capsys.readouterr().out)["items"] > 0
    main(["evaluate", str(trained), "--split", "valid", "--resamples", "0", "--json"])
    printed = json.loads(capsys.readouterr().out)
    names = {score["name"] for score in printed["scores"]}
    assert {"accuracy@1", "accuracy@2", "macro-f1"} <= names
    assert "accuracy@5" not in names
    assert {one["label"] for one in printed["classes"]} <= set(POLARITIES)
    assert (trained / "evaluation" / "valid" / "confusion.png").is_file()
    main(["evaluate", str(trained), "--data", str(corpus), "--split", "all", "--resamples", "0", "--json"])
    assert (trained / "evaluation" / "all").is_dir(), "its own data, named"


def test_packed_it_is_small_says_what_it_is_for_and_is_shared_by_any_name(
    trained, score_run, tmp_path, tiny_classifier
):
    score_run(trained)
    place = pack(trained, tmp_path / "zoo" / "sentiment")
    assert "whether an utterance is negative, neutral or positive" in (place / "CARD.md").read_text()
    whole = tiny_classifier()
    whole.meta |= {"data": {"source": "x"}, "recipe": {"name": "x"}, "begun": "then"}
    whole.parts = {"evaluator": checkpoint.load(trained / "best")}
    checkpoint.save(whole, tmp_path / "whole")
    score_run(tmp_path / "whole")
    packed = pack(tmp_path / "whole", tmp_path / "zoo" / "whole")
    assert json.loads((packed / "parts" / "evaluator.json").read_text()) == {"beside": "sentiment"}
    assert checkpoint.load(packed).parts["evaluator"].model.label_set.name == "polarity"


def test_a_judge_that_the_system_has_itself_is_refused(trained, score_run, tiny_classifier, tmp_path):
    score_run(trained)
    whole = tiny_classifier()
    judge = checkpoint.load(trained / "best")
    check_judge(judge, whole)
    packed = checkpoint.load(pack(trained, tmp_path / "packed"))
    inner = tiny_classifier()
    inner.parts = {"sentiment": judge}
    whole.parts = {"planner": inner}
    for one in (judge, packed):
        with pytest.raises(ValueError, match="the judge is the sentiment that emotion-intent itself has; name another"):
            check_judge(one, whole)
    check_judge(tiny_classifier(labels="polarity"), whole)
