"""Every model that predicts words starts at the word frequencies and can learn from there."""

from dataclasses import fields
from importlib import import_module

import pytest
import torch

from listenwell.checkpoint import Checkpoint
from listenwell.contract import Moment, WordPrior
from listenwell.data.batching import EncodingConfig, collate, encode, lengthened
from listenwell.data.dialogue import examples
from listenwell.data.sources import jsonl
from listenwell.labels.sets import POLARITY
from listenwell.models import MODELS, build
from listenwell.text import backbone_tokenizer

PRETRAINED = {"house-writer"}
"""Models whose words are chosen by a pretrained language model: they start at more than frequencies."""

REPLIES = {"strategy-memory": "condition"}
"""The objective that replies are first learned by, where it is not `likelihood`."""

WIDTHS = [(16, 0), (16, 8), (96, 32)]
"""Of the model and of its word table: without a projection, with one, with one that has room beside the words."""


def classifier(labels, tokenizer):
    """A part that the model passes its tokens to, which predicts the emotion of a query or the polarity of a reply."""
    sizes = {"width": 16, "heads": 2, "layers": 1, "feed_forward": 24}
    model = build("text-encoder", {**sizes, "labels": labels.name}, tokenizer.vocabulary)
    return Checkpoint("text-encoder", model.eval(), tokenizer)


def model_class(name):
    return getattr(import_module(MODELS[name].module), MODELS[name].cls)


LEARNERS = [name for name in MODELS if model_class(name).talks and name not in PRETRAINED]


@pytest.fixture
def start(tiny_backbone, small_corpus):
    """Make a model initialized as in training, with the counts it was initialized from and a batch."""

    def make(name, width, word_width):
        known = {field.name for field in fields(model_class(name).Config)}
        # All models use the backbone's word pieces, even those without a backbone, so that one vocabulary serves all.
        pieces = backbone_tokenizer(str(tiny_backbone))
        items = [item for dialogue in jsonl.read(small_corpus, "valid") for item in examples(dialogue)]
        batch = collate(encode(items, pieces, EncodingConfig(max_context=30, separators=True)), range(6), pieces.pad)
        counts = torch.bincount(batch.reply.tokens[batch.reply.mask], minlength=len(pieces))
        sizes = {"width": width, "word_width": word_width, "heads": 2, "feed_forward": 24}
        sizes = {key: value for key, value in sizes.items() if key in known}
        backbone = {"backbone": str(tiny_backbone)} if "backbone" in known else {}
        torch.manual_seed(7)
        model = build(name, {**sizes, **backbone}, pieces.vocabulary)
        vectors, known = torch.randn(len(pieces), 12), torch.arange(len(pieces)) % 2 == 0
        model.initialise(WordPrior(counts, vectors, known, emotional=torch.arange(len(pieces)) % 3 == 0))
        sets = {"detector": model.emotions, "evaluator": POLARITY}
        model.attach({part: classifier(sets[part], pieces) for part in model.same_text})
        return model, counts, batch

    return make


@pytest.mark.parametrize(("width", "word_width"), WIDTHS)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_starts_at_the_perplexity_of_unigrams(start, name, width, word_width):
    model, counts, batch = start(name, width, word_width)
    with torch.no_grad():
        nll = model.eval().score(batch, torch.Generator().manual_seed(1)).sum() / batch.reply.mask.sum()
    unigrams = ((counts + 0.5) / (counts + 0.5).sum()).log()
    expected = -unigrams[batch.reply.tokens[batch.reply.mask]].mean()
    # Under 1 % at the sizes of the recipes; with so few dimensions there is more noise.
    assert nll.exp().item() == pytest.approx(expected.exp().item(), rel=0.03)


@pytest.mark.parametrize(("width", "word_width"), WIDTHS)
@pytest.mark.parametrize("name", LEARNERS)
def test_after_one_step_from_there_every_part_of_a_model_learns(start, name, width, word_width):
    model, _, batch = start(name, width, word_width)
    objective = REPLIES.get(name, "likelihood")
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        sum(term.total for term in model(objective, batch, Moment()).values() if term.learned).backward()
        optimizer.step()
    # The part that writes, if the model has other parts.
    model = getattr(model, "generator", getattr(model, "conversation", model))
    words, decoder = model.words, getattr(model, "forward_model", model).decoder
    assert words.table.grad.any()
    assert all(weight.grad is not None and weight.grad.any() for weight in decoder.parameters() if weight.dim() > 1)


@pytest.mark.parametrize("name", LEARNERS)
def test_padding_to_a_rounder_length_changes_no_loss(start, name):
    model, _, batch = start(name, 16, 8)
    longer = lengthened(batch, 8, pad=0, padding_label=0)
    assert longer.context.tokens.shape[1] % 8 == longer.reply.tokens.shape[1] % 8 == 0
    assert longer.reply.tokens.shape[1] > batch.reply.tokens.shape[1]
    objective = REPLIES.get(name, "likelihood")
    losses = []
    for side in (batch, longer):
        torch.manual_seed(3)
        with torch.no_grad():
            losses.append({key: term.shown for key, term in model.eval()(objective, side, Moment()).items()})
    assert losses[0] == pytest.approx(losses[1], rel=1e-4, abs=1e-5)
