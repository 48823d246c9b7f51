"""The baselines of strategy memory: S2S, ECM on both, and transformers trained with rewards."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.contract import Moment, WordPrior
from listenwell.data.batching import collate
from listenwell.labels.sets import POLARITY
from listenwell.models import build
from listenwell.systems.bot import Bot

NAMES = ("seq2seq", "trs-ecm", "seq2seq-ecm", "trs-rl", "trs-dual")
SIZES = {
    "seq2seq": {"width": 16, "layers": 2, "word_width": 12},
    "trs": {"width": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 2, "decoder_layers": 2},
}


@pytest.fixture
def evaluator(tokenizer):
    torch.manual_seed(3)
    sizes = {"width": 16, "heads": 2, "layers": 1, "feed_forward": 24}
    model = build("text-encoder", {**sizes, "labels": "polarity"}, tokenizer.vocabulary)
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return Checkpoint("text-encoder", model.eval(), tokenizer)


@pytest.fixture
def make(tokenizer, evaluator):
    def build_model(name, attach=True):
        torch.manual_seed(7)
        model = build(name, SIZES["seq2seq" if "seq2seq" in name else "trs"], tokenizer.vocabulary)
        counts = torch.randint(1, 50, (len(tokenizer),))
        model.initialise(WordPrior(counts, emotional=torch.arange(len(tokenizer)) % 3 == 0))
        for parameter in model.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
        if attach:
            model.attach({"evaluator": evaluator})
        return model.eval()

    return build_model


@pytest.fixture
def batch(encoded, tokenizer):
    return collate(encoded, range(6), tokenizer.pad)


@torch.no_grad()
@pytest.mark.parametrize("name", NAMES)
def test_cached_steps_give_the_score_of_the_whole_reply(make, batch, name):
    model = make(name)
    state, total = model.understand(batch), torch.zeros(len(batch))
    tokens = torch.full((len(batch),), model.vocabulary.start)
    for place in range(batch.reply.tokens.shape[1]):
        logits, state = model.step(tokens, state)
        tokens = batch.reply.tokens[:, place]
        nll = -logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
        total += nll * batch.reply.mask[:, place]
    assert torch.allclose(total, model.score(batch), atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("name", NAMES)
def test_a_row_scores_the_same_alone_and_among_others(make, encoded, batch, tokenizer, name):
    model = make(name)
    alone = model.score(collate(encoded, [2], tokenizer.pad))
    assert torch.allclose(model.score(batch)[2], alone[0], atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded_it_says_the_same(make, batch, tokenizer, evaluator, name, tmp_path):
    model = make(name)
    parts = {"evaluator": evaluator} if model.same_text else {}
    saved = Checkpoint(name, model, tokenizer, parts=parts)
    checkpoint.save(saved, tmp_path / "it")
    loaded = checkpoint.load(tmp_path / "it")
    with torch.no_grad():
        assert torch.equal(loaded.model.score(batch), model.score(batch))
    talk = ["I lost my job today"]
    assert Bot(loaded).reply(talk).text == Bot(saved).reply(talk).text


@torch.no_grad()
def test_attention_and_output_of_the_recurrent_decoder_by_hand(make):
    decoder = make("seq2seq").decoder
    hidden, mask = torch.randn(1, 5, 16), torch.tensor([[True, True, True, False, False]])
    x = torch.randn(1, 2, 16)
    memory = decoder.remember(hidden, mask)
    start = torch.tanh(decoder.bridge(hidden[:, 2])).view(2, 1, 16)  # the last real position, one state per layer
    states, _ = decoder.cell(x, start)
    rows = []
    for state in states[0]:
        scores = torch.stack([state @ decoder.attention(position) for position in hidden[0, :3]])
        context = (scores.softmax(0)[:, None] * hidden[0, :3]).sum(0)
        rows.append(torch.tanh(decoder.mix(torch.cat([context, state]))))
    assert torch.allclose(decoder(x, memory)[0][0], torch.stack(rows), atol=1e-5)


@torch.no_grad()
def test_the_emotion_is_used_up_step_by_step(make):
    memory = make("trs-ecm").feeling
    hidden, emotion = torch.randn(1, 4, 16), torch.tensor([1])
    state, rows = memory.states[1].clone(), []
    for position in hidden[0]:
        rows.append(position + memory.out(torch.sigmoid(memory.read_gate(position)) * state))
        state = torch.sigmoid(memory.write_gate(position)) * state
    spoken, spent = memory.read(hidden, emotion)
    assert torch.allclose(spoken[0], torch.stack(rows), atol=1e-5)
    assert torch.allclose(memory.left_over(emotion, spent)[0], state.norm(), atol=1e-5)


@torch.no_grad()
def test_padding_spends_nothing(make):
    memory = make("trs-ecm").feeling
    hidden, mask = torch.randn(1, 5, 16), torch.tensor([[True, True, True, False, False]])
    _, short = memory.read(hidden[:, :3], torch.tensor([0]))
    _, padded = memory.read(hidden, torch.tensor([0]), mask=mask)
    assert torch.allclose(short, padded)


@torch.no_grad()
def test_the_gate_shares_the_probability_between_two_vocabularies(make):
    model = make("trs-ecm")
    memory, spoken = model.feeling, torch.randn(16)
    logits, gate = model.words.logits(spoken), torch.sigmoid(memory.choice(spoken))
    by_hand = torch.zeros_like(logits)
    for words, share in ((memory.emotional, gate), (~memory.emotional, 1 - gate)):
        by_hand[words] = share * logits[words].softmax(0)
    assert torch.allclose(memory.log_probs(spoken, model.words).exp(), by_hand, atol=1e-6)
    assert by_hand.sum() == pytest.approx(1, abs=1e-5)
    targets = torch.tensor([int(memory.emotional.nonzero()[0]), int((~memory.emotional).nonzero()[0])])
    expected = -gate.log() - (1 - gate).log()
    assert torch.allclose(memory.choice_loss(spoken.expand(2, -1), targets), expected[0], atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", ["trs-ecm", "trs-dual"])
def test_the_polarity_is_the_evaluators_in_learning_and_positive_in_use(make, batch, name, evaluator):
    model = make(name)
    state = model.understand(batch)
    requested = state.fixed["polarity"] if name == "trs-dual" else state.fixed.emotion
    assert requested.tolist() == [POLARITY.ids["positive"]] * len(batch)
    judged = model.parts.judge(batch.reply, model.vocabulary).argmax(-1)
    text = batch.reply.as_source(model.vocabulary.ctx, model.vocabulary.end)
    assert torch.equal(judged, evaluator.model.log_probs_of(text).argmax(-1))
    start = torch.full((len(batch),), model.vocabulary.start)
    other = model.encode_with_polarity(batch, torch.zeros_like(requested)) if name == "trs-dual" else None
    if other is not None:
        assert not torch.allclose(model.step(start, other)[0], model.step(start, state)[0])


@pytest.mark.parametrize(("name", "objective"), [("trs-rl", "reward"), ("trs-dual", "dual")])
def test_the_reward_teaches_the_writer_and_leaves_the_evaluator_alone(make, batch, name, objective, evaluator):
    model = make(name).train()
    before = {key: value.clone() for key, value in evaluator.model.state_dict().items()}
    terms = model(objective, batch, Moment(step=3, progress=0.5))
    terms["reward"].total.backward()
    assert model.decoder.layers[0].feed.down.weight.grad.abs().sum() > 0
    assert 0 <= float(terms["reward"].plain / terms["reward"].count) <= 1
    assert all(torch.equal(value, before[key]) for key, value in evaluator.model.state_dict().items())
    if name == "trs-dual":
        assert model.backward_model.decoder.layers[0].feed.down.weight.grad is None, "the reward is no loss of its own"
        terms["query"].total.backward()
        assert model.backward_model.decoder.layers[0].feed.down.weight.grad.abs().sum() > 0


@torch.no_grad()
def test_the_query_reward_is_the_geometric_mean_of_its_tokens(make, batch):
    model = make("trs-dual")
    turned = model.reversed_batch(batch, batch.reply)
    hidden, targets = model.backward_model.teach(turned, model.backward_model.understand(turned))
    words = model.backward_model.words
    logits = F.linear(hidden, words.choices, words.bias).log_softmax(-1)
    each = logits.gather(1, targets[:, None])[:, 0]
    owner = torch.arange(len(batch))[:, None].expand_as(turned.reply.mask)[turned.reply.mask]
    chances = [each[owner == row].mean().exp() for row in range(len(batch))]
    assert torch.allclose(model._rebuilt(turned), torch.stack(chances), atol=1e-6)


def test_easy_examples_come_first(make, batch, monkeypatch):
    model, drawn = make("trs-dual").train(), []
    draw = model.draw
    monkeypatch.setattr(model, "draw", lambda part, state, moment: drawn.append(part.rows) or draw(part, state, moment))
    judged = model.parts.judge(batch.reply, model.vocabulary).max(-1).values
    model("dual", batch, Moment(step=1, progress=0.0))
    model("dual", batch, Moment(step=1, progress=1.0))
    assert [len(rows) for rows in drawn] == [2, 6]
    assert set(drawn[0]) == {batch.rows[row] for row in judged.topk(2).indices.tolist()}


@pytest.mark.parametrize("name", ["trs-ecm", "trs-rl", "trs-dual"])
def test_without_an_evaluator_the_way_out_is_named(make, batch, name):
    objective = "reward" if name == "trs-rl" else "likelihood"
    with pytest.raises(ValueError, match=r"has no evaluator: name one in the recipe, parts: \{evaluator"):
        make(name, attach=False)(objective, batch, Moment())


def test_ecm_needs_a_lexicon(tokenizer):
    model = build("trs-ecm", SIZES["trs"], tokenizer.vocabulary)
    with pytest.raises(ValueError, match="the recipe needs a lexicon"):
        model.initialise(WordPrior(torch.ones(len(tokenizer))))
