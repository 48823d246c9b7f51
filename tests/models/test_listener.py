"""The listener against slow computations; what it may read and what it must not; training, saving and packing it."""

import shutil
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

import listenwell
from listenwell import checkpoint
from listenwell.classifiers.listener import ListenerClassifier
from listenwell.configuration import ConfigError
from listenwell.contract import ABSENT, Moment, Sequence, Vocabulary
from listenwell.data.batching import collate, encode
from listenwell.data.dialogue import Example, Label, Turn, examples
from listenwell.data.sources import jsonl
from listenwell.labels.taxonomy import EMOTION_ID, LABEL_ID
from listenwell.models import build
from listenwell.models.listener import latest
from listenwell.packing import pack
from listenwell.text import TextConfig
from listenwell.training import run

CONTEXTS = (
    (Turn("speaker", "I am so happy today!"),),
    (Turn("speaker", "I lost it."), Turn("listener", "Oh no, why?"), Turn("speaker", "I do not know.")),
    (Turn("speaker", "My dog is sick."),),
)
EMOTIONS = ("joyful", "sad", "anxious")
LABELS = ("encouraging", "sympathizing", "questioning")


def batch_of(ckpt, contexts=CONTEXTS, emotions=EMOTIONS, labels=LABELS):
    items = [
        Example(str(row), context, Turn("listener", "Oh.", Label(label)), emotion=Label(emotion))
        for row, (context, emotion, label) in enumerate(zip(contexts, emotions, labels, strict=True))
    ]
    return collate(encode(items, ckpt.tokenizer, ckpt.encoding), range(len(items)), ckpt.tokenizer.pad)


def slowly(ckpt, context):
    """The output of both heads for one dialogue, position by position."""
    model, tokenizer = ckpt.model, ckpt.tokenizer
    ids, roles = [], []
    for turn in context:
        piece = [tokenizer.start, *tokenizer.encode(turn.text), tokenizer.end]
        ids += piece
        roles += [0 if turn.speaker == "speaker" else 1] * len(piece)
    encoder = model.backbone.model
    speakers = torch.stack([model.speakers.weight[r] for r in roles])
    hidden = encoder(torch.tensor([ids]), added=speakers[None])[0]
    log_probs = {}
    for name, head in model.heads.items():
        scores = torch.stack([head.attention @ h for h in hidden]) / hidden.shape[1] ** 0.5
        pooled = sum(weight * h for weight, h in zip(scores.softmax(0), hidden, strict=True))
        log_probs[name] = F.log_softmax((head.out.weight @ pooled + head.out.bias) / head.temperature, dim=0)
    return log_probs


def test_each_head_is_a_softmax_over_its_own_weighted_mean_of_the_positions(tiny_listener):
    listener = tiny_listener()
    listener.model.heads["emotion"].temperature.fill_(1.7)
    listener.model.heads["label"].temperature.fill_(0.6)
    with torch.inference_mode():
        predictions = listener.model.predict(batch_of(listener))
        for row, context in enumerate(CONTEXTS):
            for name, expected in slowly(listener, context).items():
                torch.testing.assert_close(predictions[name][row], expected)
        beliefs = listener.model.understand(batch_of(listener)).beliefs
    assert {name: tuple(log_p.shape) for name, log_p in predictions.items()} == {"emotion": (3, 32), "label": (3, 41)}
    assert all(torch.equal(beliefs[name], predictions[name]) for name in predictions)


def test_who_speaks_is_heard(tiny_listener):
    listener = tiny_listener()
    swapped = (*CONTEXTS[:2], (Turn("listener", "My dog is sick."),))
    with torch.inference_mode():
        before, after = listener.model.predict(batch_of(listener)), listener.model.predict(batch_of(listener, swapped))
    for name in before:
        torch.testing.assert_close(before[name][:2], after[name][:2])
        assert not torch.allclose(before[name][2], after[name][2])


def test_a_fresh_one_reads_as_the_pretrained_encoder_does(tiny_backbone, tiny_listener):
    listener = tiny_listener()
    fresh = build("house-listener", {"backbone": str(tiny_backbone)}, listener.tokenizer.vocabulary).eval()
    fresh.initialise(None)
    weights = checkpoint.read_tensors(tiny_backbone / "model.safetensors")
    actual = fresh.backbone.model.state_dict()
    assert {name for name in weights if "pooler" not in name} == set(actual), "without the pooler"
    batch = batch_of(listener)
    with torch.inference_mode():
        hidden, mask = fresh.read(batch)
        torch.testing.assert_close(hidden, fresh.backbone(batch.context.tokens, mask))
        head = fresh.heads["emotion"]
        torch.testing.assert_close(head.pool(hidden, mask)[0], hidden[0][mask[0]].mean(dim=0))


def test_of_a_dialogue_longer_than_the_encoder_reads_the_oldest_goes(tiny_listener):
    listener = tiny_listener()
    listener.encoding.max_context = 500
    long = (Turn("speaker", "sad " * 30), *CONTEXTS[1], Turn("listener", "happy " * 30), *CONTEXTS[2])
    other = (Turn("speaker", "why " * 30), *long[1:])
    three = (long, other, CONTEXTS[0])
    with torch.inference_mode():
        predictions = listener.model.predict(batch_of(listener, three))["emotion"]
    assert listener.model.backbone.longest == 38
    torch.testing.assert_close(predictions[0], predictions[1])
    torch.testing.assert_close(predictions[2], slowly(listener, CONTEXTS[0])["emotion"])


def test_latest_keeps_the_last_real_positions():
    tokens = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0], [9, 0, 0, 0, 0]])
    kept = latest(Sequence(tokens, tokens > 0, tokens * 10), 3)
    assert kept.tokens.tolist() == [[3, 4, 5], [6, 7, 8], [9, 0, 0]]
    assert kept.roles.tolist() == [[30, 40, 50], [60, 70, 80], [90, 0, 0]]
    assert kept.mask.sum(dim=1).tolist() == [3, 3, 1]


def test_two_readings_under_two_dropouts_are_drawn_together(tiny_listener):
    listener = tiny_listener(dropout=0.3)
    batch = batch_of(listener)
    model = listener.model.train()
    torch.manual_seed(9)
    terms = model.objective("listen", batch, Moment(), smoothing=0.1, apart=0.7)
    torch.manual_seed(9)
    one, other = (model.logits(batch)["emotion"].log_softmax(-1) for _ in range(2))
    wanted = sum((p.exp() * (p - q)).sum() / 2 + (q.exp() * (q - p)).sum() / 2 for p, q in zip(one, other, strict=True))
    assert wanted > 0.01
    torch.testing.assert_close(terms["apart"].total, 0.7 * wanted)
    assert (terms["apart"].count, terms["emotion"].count, terms["label"].count) == (3, 6, 6)
    torch.testing.assert_close(terms["apart"].plain, wanted.detach())
    gold = batch.emotion
    plain = F.cross_entropy(one, gold, reduction="sum") + F.cross_entropy(other, gold, reduction="sum")
    torch.testing.assert_close(terms["emotion"].plain, plain)
    terms["apart"].total.backward()
    assert model.heads["emotion"].out.weight.grad.abs().sum() > 0
    model.eval()
    with torch.inference_mode():
        assert set(model.objective("listen", batch, Moment(), apart=0.7)) == {
            *("emotion", "emotion-accuracy", "label", "label-accuracy")
        }  # validation encodes only once


def test_the_losses_are_cross_entropies_with_smoothing_of_their_own(tiny_listener):
    listener = tiny_listener()
    batch = batch_of(listener)
    batch.label[1] = ABSENT
    listener.model.heads["emotion"].temperature.fill_(3.0)
    with torch.inference_mode():
        terms = listener.model.objective("listen", batch, Moment(), smoothing=0.1, label_smoothing=0.2)
        given = listener.model.objective("situation", batch, Moment(), smoothing=0.1)
        log_p = {name: logits.log_softmax(-1) for name, logits in listener.model.logits(batch).items()}
    gold = {
        "emotion": [(row, EMOTION_ID[name]) for row, name in enumerate(EMOTIONS)],
        "label": [(row, LABEL_ID[LABELS[row]]) for row in (0, 2)],
    }
    for head, share in (("emotion", 0.1), ("label", 0.2)):
        nll = [-log_p[head][row, label] for row, label in gold[head]]
        mean = [-log_p[head][row].mean() for row, _ in gold[head]]
        smooth = sum((1 - share) * cost + share * even for cost, even in zip(nll, mean, strict=True))
        torch.testing.assert_close(terms[head].total, smooth)
        assert terms[head].count == len(gold[head])
        assert terms[head].shown == pytest.approx(float(sum(nll)) / len(nll)), "temperatures take no part in learning"
        right = sum(int(log_p[head][row].argmax()) == label for row, label in gold[head])
        assert (float(terms[f"{head}-accuracy"].total), terms[f"{head}-accuracy"].learned) == (right, False)
    torch.testing.assert_close(given["situation"].total, terms["emotion"].total)
    assert set(given) == {"situation", "situation-accuracy"}


def test_gold_is_for_losses_alone(tiny_listener):
    listener = tiny_listener()
    with torch.inference_mode():
        before = listener.model.predict(batch_of(listener))
        after = listener.model.predict(batch_of(listener, emotions=("afraid",) * 3, labels=("neutral",) * 3))
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_saved_and_loaded_it_says_the_same_bit_for_bit_without_the_backbone(tiny_listener, tiny_backbone, tmp_path):
    there = shutil.copytree(tiny_backbone, tmp_path / "there")
    listener = tiny_listener(backbone=str(there))
    listener.model.heads["label"].temperature.fill_(1.3)
    checkpoint.save(listener, tmp_path / "saved")
    shutil.rmtree(there)
    again = checkpoint.load(tmp_path / "saved")
    assert again.model.config == listener.model.config
    with torch.inference_mode():
        before, after = listener.model.predict(batch_of(listener)), again.model.predict(batch_of(again))
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.fixture(scope="module")
def trained(small_corpus, tiny_backbone, tiny_recipe, tiny_stage, tmp_path_factory):
    """A run on the small corpus, by both objectives."""
    folder = tmp_path_factory.mktemp("listener") / "run"
    stage = tiny_stage(
        examples=1500,
        validate_every=10,
        criterion="emotion",
        keep="last",
        moves=[
            {"objective": "listen", "stream": "listeners", "options": {"smoothing": 0.1}, "hold": True},
            {"objective": "situation", "stream": "situations", "optional": True},
        ],
        streams={"listeners": {"examples": 8}, "situations": {"sides": ["situation"], "examples": 4}},
        optimizers={"main": {"rate": 2e-3, "warmup": 4, "factors": {"heads.*": 10}}},
    )
    recipe = tiny_recipe(
        name="tiny-listener",
        model={"name": "house-listener", "backbone": str(tiny_backbone)},
        text=TextConfig("backbone", backbone=str(tiny_backbone)),
        stages=[stage],
    )
    run.train(recipe, folder, quiet=True)
    return folder


def items_of(corpus):
    return [item for dialogue in jsonl.read(corpus, "train") for item in examples(dialogue)]


def test_it_learns_both_by_a_recipe_and_does_not_talk(trained, small_corpus):
    items = items_of(small_corpus)
    predictions = ListenerClassifier.load(trained).predict([item.context for item in items])
    emotions = [(one.emotion, item.emotion.name) for one, item in zip(predictions, items, strict=True)]
    labels = [
        (next(iter(one.labels)), item.reply.label.name)
        for one, item in zip(predictions, items, strict=True)
        if item.reply.label and item.reply.label.name in LABEL_ID
    ]
    for pairs in (emotions, labels):
        gold = [right for _, right in pairs]
        assert sum(actual == right for actual, right in pairs) > max(map(gold.count, gold)), (
            "better than always the same"
        )
    with pytest.raises(ValueError, match=r"house-listener .* does not talk"):
        listenwell.load(trained)


def test_packed_in_8_bits_it_hears_alike(trained, score_run, small_corpus, tmp_path):
    score_run(trained)
    contexts = [item.context for item in items_of(small_corpus)][:5]
    place = pack(trained, tmp_path / "packed")
    before, after = (ListenerClassifier.load(at).log_probs(contexts) for at in (trained, place))
    for head in before:
        assert abs(torch.tensor(before[head]).exp() - torch.tensor(after[head]).exp()).max() < 0.1


def test_what_does_not_fit_is_told(tiny_listener, tiny_backbone):
    choices = {"backbone": str(tiny_backbone)}
    with pytest.raises(ConfigError, match=r"the text has 9,000 tokens, but the backbone knows \d+; write text: {kind"):
        build("house-listener", choices, Vocabulary(9_000))
    listener = tiny_listener()
    with pytest.raises(ValueError, match="no dialogue to listen to: an example holds it as its context"):
        listener.model.predict(replace(batch_of(listener), context=None))
    with pytest.raises(TypeError, match="Listener does not decode"):
        listener.model.step(torch.zeros(1), None)
