"""The classifier of emotions and intents against slow computations; training, saving and packing it."""

import shutil
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

import listenwell
from listenwell import checkpoint
from listenwell.classifiers.labeller import Labeller
from listenwell.configuration import ConfigError
from listenwell.contract import ABSENT, Moment, Vocabulary
from listenwell.data.batching import EncodingConfig, collate, encode
from listenwell.data.dialogue import Example, Label, Turn
from listenwell.data.sources import jsonl
from listenwell.labels.taxonomy import EMOTION_ID, LABEL_ID
from listenwell.models import build
from listenwell.packing import pack
from listenwell.text import TextConfig
from listenwell.training import run

TEXTS = ("I am so happy today!", "That is sad.", "Why did you go?")
LABELS = ("joyful", "sympathizing", "questioning")


def batch_of(ckpt, texts=TEXTS, labels=LABELS):
    items = [
        Example(text, reply=Turn("listener", text, Label(label))) for text, label in zip(texts, labels, strict=True)
    ]
    return collate(encode(items, ckpt.tokenizer, EncodingConfig()), range(len(items)), ckpt.tokenizer.pad)


@pytest.mark.parametrize("pooling", ["mean", "start", "mean-and-maximum"])
def test_labels_are_a_softmax_over_the_pooled_positions(tiny_classifier, pooling):
    classifier = tiny_classifier(pooling=pooling)
    model, tokenizer = classifier.model, classifier.tokenizer
    model.temperature.fill_(1.7)
    with torch.inference_mode():
        actual = model.label_log_probs(batch_of(classifier))
        for row, text in enumerate(TEXTS):
            ids = torch.tensor([[tokenizer.start, *tokenizer.encode(text), tokenizer.end]])
            hidden = model.backbone.model(ids)[0]
            mean, start, maximum = hidden.mean(dim=0), hidden[0], hidden.max(dim=0).values
            vector = {"mean": mean, "start": start}.get(pooling, torch.cat((3 * mean, maximum)))
            expected = F.log_softmax((model.out.weight @ vector + model.out.bias) / 1.7, dim=0)
            torch.testing.assert_close(actual[row], expected)
    assert actual.shape == (3, 41)


def test_an_utterance_longer_than_the_encoder_reads_is_cut(tiny_classifier):
    classifier = tiny_classifier()
    long = "happy " * 60
    with torch.inference_mode():
        actual = classifier.model.label_log_probs(batch_of(classifier, [long], ["joyful"]))
        kept = classifier.model.label_log_probs(batch_of(classifier, ["happy " * 70], ["joyful"]))
    assert torch.equal(actual, kept)
    assert classifier.model.backbone.longest == 38


def test_the_loss_is_the_labels_cross_entropy_with_smoothing(tiny_classifier):
    classifier = tiny_classifier()
    batch = batch_of(classifier)
    batch.label[2] = ABSENT
    classifier.model.temperature.fill_(3.0)
    with torch.inference_mode():
        terms = classifier.model.objective("classify", batch, Moment(), smoothing=0.1)
        log_p = classifier.model.logits(batch).log_softmax(-1)
    nll = [-log_p[row, LABEL_ID[name]] for row, name in enumerate(LABELS[:2])]
    smooth = [0.9 * cost - 0.1 * log_p[row].mean() for row, cost in enumerate(nll)]
    torch.testing.assert_close(terms["label"].total, sum(smooth))
    assert terms["label"].count == 2
    assert terms["label"].shown == pytest.approx(float(sum(nll)) / 2), "the temperature takes no part in learning"
    right = sum(int(log_p[row].argmax()) == LABEL_ID[name] for row, name in enumerate(LABELS[:2]))
    assert (float(terms["label-accuracy"].total), terms["label-accuracy"].learned) == (right, False)


def test_an_opening_teaches_which_emotion_it_is_and_nothing_of_the_other_labels(tiny_classifier):
    classifier = tiny_classifier()
    batch = batch_of(classifier)
    batch.emotion = torch.tensor([EMOTION_ID["joyful"], ABSENT, EMOTION_ID["sad"]])
    terms = classifier.model.objective("emotion", batch, Moment(), smoothing=0.1)
    with torch.inference_mode():
        odds = classifier.model.logits(batch).exp()[:, :32]
    log_p = (odds / odds.sum(dim=1, keepdim=True)).log()
    costs = [0.9 * -log_p[row, batch.emotion[row]] - 0.1 * log_p[row].mean() for row in (0, 2)]
    torch.testing.assert_close(terms["emotion"].total.detach(), sum(costs))
    assert terms["emotion"].count == 2
    terms["emotion"].total.backward()
    assert classifier.model.out.weight.grad[:32].any()
    assert not classifier.model.out.weight.grad[32:].any()


def test_polarity_has_nothing_to_learn_from_an_emotion(tiny_classifier):
    classifier = tiny_classifier(labels="polarity")
    with pytest.raises(ValueError, match="tells polarity apart, and an emotion has nothing to teach it"):
        classifier.model.objective("emotion", batch_of(classifier), Moment())


def test_a_fresh_one_starts_from_the_pretrained_weights(tiny_classifier, tiny_backbone):
    weights = checkpoint.read_tensors(tiny_backbone / "model.safetensors")
    classifier = tiny_classifier().model.backbone.model.state_dict()
    assert {name for name in weights if "pooler" not in name} == set(classifier)
    assert all(torch.equal(weight, weights[name]) for name, weight in classifier.items())


def test_saved_and_loaded_it_says_the_same_bit_for_bit_without_the_backbone(tiny_classifier, tiny_backbone, tmp_path):
    there = shutil.copytree(tiny_backbone, tmp_path / "there")
    classifier = tiny_classifier(backbone=str(there))
    classifier.model.temperature.fill_(1.3)
    checkpoint.save(classifier, tmp_path / "saved")
    shutil.rmtree(there)
    again = checkpoint.load(tmp_path / "saved")
    assert again.model.config == classifier.model.config
    with torch.inference_mode():
        assert torch.equal(
            again.model.label_log_probs(batch_of(again)), classifier.model.label_log_probs(batch_of(classifier))
        )


@pytest.fixture(scope="module")
def trained(small_corpus, tiny_backbone, tiny_recipe, tiny_stage, tmp_path_factory):
    """A run on the listener turns of the small corpus, each of which has an intent."""
    folder = tmp_path_factory.mktemp("classifier") / "run"
    sides = {"sides": ["reply"], "replies_by": ["listener"]}
    stage = tiny_stage(
        examples=1000,
        validate_every=10,
        criterion="label",
        keep="last",
        moves=[{"objective": "classify", "options": {"smoothing": 0.1}}],
        streams={"train": {"examples": 8, **sides}},
        optimizers={"main": {"rate": 2e-3, "warmup": 4, "factors": {"out.*": 10}}},
    )
    recipe = tiny_recipe(
        name="tiny-classifier",
        model={"name": "emotion-intent", "backbone": str(tiny_backbone)},
        text=TextConfig("backbone", backbone=str(tiny_backbone)),
        data={"source": str(small_corpus), **sides},
        stages=[stage],
    )
    run.train(recipe, folder, quiet=True)
    return folder


def test_it_learns_by_a_recipe_and_does_not_talk(trained, small_corpus):
    labeller = Labeller.load(trained)
    turns = [t for d in jsonl.read(small_corpus, "train") for t in d.turns if t.label and t.label.name in LABEL_ID]
    actual = labeller.label([turn.text for turn in turns])
    right = sum(label.name == turn.label.name for label, turn in zip(actual, turns, strict=True))
    commonest = max(sum(t.label == turn.label for t in turns) for turn in turns)
    assert right > commonest, "better than always the same"
    with pytest.raises(ValueError, match="emotion-intent reads and does not talk; listenwell evaluate measures it"):
        listenwell.load(trained)


def test_packed_in_8_bits_it_labels_alike_and_its_card_does_not_promise_talk(trained, score_run, tmp_path):
    score_run(trained)
    place = pack(trained, tmp_path / "packed")
    before, after = (Labeller.load(at).distribution(TEXTS) for at in (trained, place))
    assert abs(before - after).max() < 0.05
    card = (place / "CARD.md").read_text()
    assert "it labels utterances with emotions and intents" in card
    assert "conversation with somebody" not in card
    assert "`listenwell train tiny-classifier`, `listenwell calibrate` and `listenwell evaluate`" in card


def test_what_does_not_fit_is_told(tiny_classifier, tiny_backbone):
    choices = {"backbone": str(tiny_backbone)}
    with pytest.raises(ConfigError, match=r"the text has 9,000 tokens, but the backbone knows \d+; write text: {kind"):
        build("emotion-intent", choices, Vocabulary(9_000))
    with pytest.raises(ConfigError, match="no encoder can be made of this architecture"):
        build("emotion-intent", {**choices, "architecture": {"model_type": "no-such"}}, Vocabulary(9))
    classifier = tiny_classifier()
    with pytest.raises(ValueError, match=r"no utterance to classify: .* its reply \(sides: \[reply\]\)"):
        classifier.model.label_log_probs(replace(batch_of(classifier), reply=None))
    with pytest.raises(TypeError, match="Classifier does not decode"):
        classifier.model.step(torch.zeros(1), None)
