"""MoEL: all listeners together against each one alone, their weights, and gold emotions in training only."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.configuration import ConfigError
from listenwell.contract import ABSENT, Moment
from listenwell.data.batching import EncodingConfig, collate
from listenwell.decoding import Decoding, decode
from listenwell.labels.taxonomy import EMOTIONS
from listenwell.models import build
from listenwell.models.moel import SHARED, likeliest, with_gold

SIZES = {"listener_width": 6, "listener_heads": 2, "listener_feed_forward": 10}
SHAPES = {
    "all": {"name": "moel"},
    "top 5": {"name": "moel-top-k"},
    "the likeliest": {"name": "moel", "top_k": 1, "emotion_from": "mean", "decoder_layers": 1},
}


@pytest.fixture
def make(tiny_model):
    return lambda name="moel", **choices: tiny_model(name, **{**SIZES, **choices})


@pytest.fixture(params=SHAPES, ids=str)
def model(request, make):
    return make(**SHAPES[request.param])


@pytest.fixture
def batch(encoded, tokenizer):
    """Six replies of different lengths."""
    return collate(encoded, range(6), tokenizer.pad)


def slow_listener(listeners, number, reply, context):
    """One listener on one row, alone: (time, width) and (context time, width), one head at a time."""
    own = {name: parameter[number] for name, parameter in listeners.named_parameters()}

    def norm(x):
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()

    def attend(queries, keys, values, causal):
        heads = []
        for q, k, v in zip(*(part.chunk(listeners.heads, dim=-1) for part in (queries, keys, values)), strict=True):
            scores = q @ k.T / math.sqrt(q.shape[-1])
            if causal:
                scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
            heads.append(scores.softmax(-1) @ v)
        return torch.cat(heads, dim=-1)

    x = reply
    queries, keys, values = (norm(x) @ own["self_in"].T).chunk(3, dim=-1)
    x = x + attend(queries, keys, values, causal=True) @ own["self_out"]
    keys, values = (context @ own["cross_memory"].T).chunk(2, dim=-1)
    x = x + attend(norm(x) @ own["cross_in"].T, keys, values, causal=False) @ own["cross_out"]
    return x + F.relu(norm(x) @ own["up"].T + own["up_bias"]) @ own["down"] + own["down_bias"]


def believed_by_hand(model, hidden, mask, row):
    real = hidden[row][mask[row]]
    felt = real[0] if model.config.emotion_from == "ctx" else real.mean(0)
    return (model.emotion.weight @ felt).softmax(-1)


def shares_by_hand(p, top_k):
    if not top_k:
        return p.tolist()
    chosen = sorted(range(32), key=lambda index: -p[index].item())[:top_k]
    total = sum(p[index].item() for index in chosen)
    return [p[index].item() / total if index in chosen else 0.0 for index in range(32)]


@torch.no_grad()
def test_the_emotion_is_the_context_held_against_the_listeners_keys(model, batch):
    hidden, mask = model.encode(batch)
    believed = model.understand(batch).beliefs["emotion"]
    assert believed.shape == (6, 32)
    for row in range(6):
        assert torch.allclose(believed[row].exp(), believed_by_hand(model, hidden, mask, row), atol=1e-6)


@torch.no_grad()
def test_the_mixture_is_that_of_each_listener_alone(model, batch):
    hidden, mask = model.encode(batch)
    replies = model.embed(batch.reply.shifted(model.vocabulary.start), batch.reply.roles)
    state = model.understand(batch).fixed
    actual, _ = model.decoder(replies, state)
    for row in range(6):
        reply, context = replies[row], hidden[row][mask[row]]
        shares = shares_by_hand(believed_by_hand(model, hidden, mask, row), model.config.top_k)
        mixed = slow_listener(model.decoder.listeners, SHARED, reply, context)
        for emotion, share in enumerate(shares):
            mixed = mixed + share * slow_listener(model.decoder.listeners, 1 + emotion, reply, context)
        memory = model.decoder.meta.remember(context[None], torch.ones(1, len(context), dtype=torch.bool))
        slow, _ = model.decoder.meta(mixed[None], memory)
        real = batch.reply.mask[row]
        assert torch.allclose(actual[row][real], slow[0][real], atol=1e-4)


@torch.no_grad()
def test_the_top_k_sum_to_one_and_the_others_have_no_share():
    p = torch.randn(4, 32).softmax(-1)
    for k in (1, 5, 32):
        slow = torch.tensor([shares_by_hand(row, k) for row in p])
        assert torch.allclose(likeliest(p, k), slow, atol=1e-6)
    assert torch.allclose(likeliest(p, 32), p, atol=1e-6)


@torch.no_grad()
def test_only_listeners_that_speak_to_a_row_of_the_batch_are_computed(make, batch):
    model = make(top_k=2)
    state = model.understand(batch).fixed
    speaking = {1 + index for row in state.shares for index in row.nonzero()[:, 0].tolist()}
    assert state.who[0].tolist() == [SHARED, *sorted(speaking)]
    assert state.listeners.keys.shape[1] == len(state.who[0]) * 2 < 33 * 2
    before = model.score(batch)
    for number in set(range(1, 33)) - speaking:
        model.decoder.listeners.down_bias[number] += torch.arange(16)
    assert torch.equal(model.score(batch), before)
    model.decoder.listeners.down_bias[min(speaking)] += torch.arange(16)
    assert not torch.equal(model.score(batch), before)


@torch.no_grad()
def test_a_choice_of_all_32_is_no_choice(make, batch):
    assert torch.allclose(make(top_k=32).score(batch), make().score(batch), rtol=1e-5)


def step_logprobs(model, state, targets):
    """log p of the targets (rows, time), step by step."""
    actual, last = [], torch.full_like(targets[:, 0], model.vocabulary.start)
    for token in targets.T:
        logits, state = model.step(last, state)
        actual.append(logits.log_softmax(-1).gather(1, token[:, None])[:, 0])
        last = token
    return torch.stack(actual, dim=1)


@torch.no_grad()
def test_cached_steps_give_what_teacher_forcing_gives(model, batch):
    slow = step_logprobs(model, model.understand(batch), batch.reply.tokens)
    assert torch.allclose(model.score(batch), -(slow * batch.reply.mask).sum(1), rtol=1e-5)


@torch.no_grad()
def test_a_rows_score_does_not_depend_on_its_batch(model, encoded, tokenizer):
    together = model.score(collate(encoded, range(8), tokenizer.pad))
    for row in range(8):
        alone = model.score(collate(encoded, [row], tokenizer.pad))
        assert alone.item() == pytest.approx(together[row].item(), rel=1e-5)


@torch.no_grad()
def test_rows_chosen_or_repeated_midway_go_on_as_they_would_have(model, batch):
    _, state = model.step(torch.full((6,), model.vocabulary.start), model.understand(batch))
    words = torch.arange(10, 16)
    whole, after = model.step(words, state)
    rows = torch.tensor([4, 1, 1])
    chosen, _ = model.step(words[rows], state.select(rows))
    assert torch.allclose(chosen, whole[rows], atol=1e-5)
    repeated, _ = model.step(words.repeat_interleave(2), state.repeat(2))
    assert torch.allclose(repeated, whole.repeat_interleave(2, dim=0), atol=1e-5)
    assert (state.length, after.length) == (1, 2)


@torch.no_grad()
def test_beams_are_scored_as_the_model_scores_them(model, batch):
    vocabulary = model.vocabulary
    banned = (vocabulary.pad, vocabulary.unk, vocabulary.start, vocabulary.ctx)
    options = Decoding(method="beam", beams=3, candidates=3, max_length=8)
    state = model.understand(batch)
    replies = decode(model, state, options, start=vocabulary.start, end=vocabulary.end, banned=banned)
    for row, actual in enumerate(replies):
        assert len(actual) == 3
        best = actual[0]
        tokens = torch.tensor([best.tokens + [vocabulary.end] * best.finished])
        slow = step_logprobs(model, state.select(torch.tensor([row])), tokens)
        assert best.logprob == pytest.approx(slow.sum().item(), rel=1e-4)


@torch.no_grad()
def test_the_terms_by_hand(model, batch):
    gold = batch.emotion.clone()
    gold[1] = ABSENT
    terms = model.objective("likelihood", replace(batch, emotion=gold), Moment(), emotion_smoothing=0.1)
    believed = model.understand(batch).beliefs["emotion"]
    assert set(terms) == {"reply", "emotion", "emotion-accuracy"}
    assert terms["reply"].total.item() == pytest.approx(model.score(batch).sum().item(), rel=1e-5)
    assert terms["reply"].count == int(batch.reply.mask.sum())
    rows = [0, 2, 3, 4, 5]
    slow = sum(-0.9 * believed[row, gold[row]].item() - 0.1 * believed[row].mean().item() for row in rows)
    assert terms["emotion"].total.item() == pytest.approx(slow, rel=1e-4)
    assert terms["emotion"].count == terms["emotion-accuracy"].count == 5


@torch.no_grad()
def test_the_gold_emotion_is_mixed_in_where_there_is_one():
    p = torch.randn(3, 32).softmax(-1)
    mixed = with_gold(p, torch.tensor([4, ABSENT, 31]), 0.25)
    for row, gold in ((0, 4), (2, 31)):
        slow = [0.75 * p[row, index].item() + 0.25 * (index == gold) for index in range(32)]
        assert mixed[row].tolist() == pytest.approx(slow, rel=1e-5)
    assert torch.equal(mixed[1], p[1])


def reply_loss(model, batch, progress=0.0, **options):
    return model.likelihood(batch, Moment(progress=progress), **options)["reply"].total.item()


@torch.no_grad()
def test_the_share_of_the_gold_emotion_falls_to_none_in_training(make, batch):
    model = make(dropout=0.0).train()
    hidden, mask = model.encode(batch)
    believed = model.believe(model.summary(hidden, mask)).exp()
    plain = reply_loss(model, batch)
    for progress, share in ((0.0, 0.8), (0.25, 0.4), (0.5, 0.0), (0.9, 0.0)):
        state = model.understand(batch)
        state.fixed.shares = with_gold(believed, batch.emotion, share)
        slow = step_logprobs(model, state, batch.reply.tokens)
        loss = reply_loss(model, batch, progress, gold=0.8, gold_until=0.5)
        assert loss == pytest.approx(-(slow * batch.reply.mask).sum().item(), rel=1e-5)
        assert (abs(loss - plain) > 1e-3) == (share > 0)
    assert reply_loss(model, batch, gold=0.8, gold_until=0.0) == plain


@torch.no_grad()
def test_no_gold_emotion_is_seen_but_in_training(make, batch):
    model = make(dropout=0.0)
    changed = replace(batch, emotion=(batch.emotion + 1) % 32)
    for training in (True, False):
        model.train(training)
        assert torch.equal(model.score(batch), model.score(changed))
        assert torch.equal(model.score(batch), model.score(replace(batch, emotion=None)))
        state, other = model.understand(batch), model.understand(changed)
        assert torch.equal(state.fixed.shares, other.fixed.shares)
        assert torch.equal(state.fixed.shares, state.beliefs["emotion"].exp())
        same = reply_loss(model, batch, gold=1.0) == reply_loss(model, changed, gold=1.0)
        assert same == (not training)


@pytest.mark.parametrize("gold", [0.0, 0.5])
def test_all_that_a_model_has_learns_and_every_listener(make, batch, gold):
    model = make().train()
    terms = model.likelihood(batch, Moment(), gold=gold)
    sum(term.mean for term in terms.values() if term.learned).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    for name, parameter in model.decoder.listeners.named_parameters():
        assert (parameter.grad.flatten(1).abs().sum(1) > 0).all(), name


def test_of_the_top_k_only_those_that_speak_learn(make, batch):
    model = make(top_k=2)
    model.likelihood(batch, Moment())["reply"].total.backward()
    learned = model.decoder.listeners.up.grad.flatten(1).abs().sum(1) > 0
    with torch.no_grad():
        speaking = model.understand(batch).fixed.who[0]
    assert learned.nonzero()[:, 0].tolist() == speaking.tolist()
    assert len(speaking) < 33


def test_where_the_gold_emotion_decides_alone_only_its_listener_and_the_shared_one_learn(make, batch):
    model = make(dropout=0.0).train()
    loss = model.likelihood(batch, Moment(progress=0.7), gold=1.0, gold_until=None)["reply"].total
    loss.backward()
    learned = model.decoder.listeners.up.grad.flatten(1).abs().sum(1) > 0
    assert learned.nonzero()[:, 0].tolist() == sorted({SHARED, *(1 + batch.emotion).tolist()})
    with torch.no_grad():
        state = model.understand(batch)  # all listeners take part, most of them with zero weight
        state.fixed.shares = with_gold(state.fixed.shares, batch.emotion, 1.0)
        slow = step_logprobs(model, state, batch.reply.tokens)
    assert loss.item() == pytest.approx(-(slow * batch.reply.mask).sum().item(), rel=1e-5)


def test_the_reply_teaches_who_should_speak(make, batch):
    model = make()
    model.likelihood(batch, Moment())["reply"].total.backward()
    assert model.emotion.weight.grad.abs().sum() > 0


@torch.no_grad()
def test_the_reasons_name_the_three_loudest_listeners(make, batch):
    state = make().understand(batch)
    shares = state.beliefs["emotion"][2].exp().tolist()
    loudest = sorted(range(32), key=lambda index: -shares[index])[:3]
    listeners = make().reasons(state, 2)["listeners"]
    assert list(listeners) == [EMOTIONS[index] for index in loudest]
    assert list(listeners.values()) == pytest.approx([shares[index] for index in loudest], abs=1e-4)
    alone = make(top_k=1)
    assert alone.reasons(alone.understand(batch), 2) == {"listeners": {EMOTIONS[loudest[0]]: 1.0}}


@torch.no_grad()
def test_what_is_loaded_scores_bit_for_bit_as_what_was_saved(model, batch, tokenizer, tmp_path):
    name = "moel-top-k" if model.config.top_k == 5 else "moel"
    checkpoint.save(Checkpoint(name, model, tokenizer, EncodingConfig(), Decoding()), tmp_path / "best")
    again = checkpoint.load(tmp_path / "best").model
    assert again.config == model.config
    assert torch.equal(again.score(batch), model.score(batch))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"top_k": 33}, "model moel: top_k 33 is not between 0 and 32"),
        ({"listener_heads": 3}, "model moel: listener_width 40 does not divide into 3 listener_heads"),
        ({"emotion": False}, "model moel: emotion is False, expected one of True"),
    ],
)
def test_sizes_that_do_not_go_together_are_named(choices, message, tokenizer):
    with pytest.raises(ConfigError, match=message):
        build("moel", choices, tokenizer.vocabulary)
