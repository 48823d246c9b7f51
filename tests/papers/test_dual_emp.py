"""Dual-Emp: the consensus, the two-source decoder, both bounds, and learning from unpaired texts."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.contract import Batch, Controls, Moment, Sequence, Vocabulary
from listenwell.data.batching import EncodingConfig, collate
from listenwell.decoding import Decoding, decode
from listenwell.labels.sets import label_set
from listenwell.labels.taxonomy import EMOTIONS
from listenwell.models import build, dual_emp_unpaired
from listenwell.models.dual_emp import LISTENER, SPEAKER
from listenwell.models.dual_emp_unpaired import copied, write_back, write_missing_side

K = 4


@pytest.fixture
def make(tiny_model):
    return lambda name="dual-emp", **choices: tiny_model(name, **{"consensus_size": K, **choices})


@pytest.fixture
def model(make):
    return make()


@pytest.fixture
def batch(encoded, tokenizer):
    """Six replies of different lengths."""
    return collate(encoded, range(6), tokenizer.pad)


def norm(layer, x):
    return F.layer_norm(x, x.shape[-1:], layer.weight, layer.bias)


def slow_attention(layer, queries, memory, causal=False):
    """Attention for one row, one head at a time: (time, width) on (memory time, width)."""
    query = layer.query(queries)
    keys, values = layer.key_value(memory).chunk(2, dim=-1)
    heads = []
    for q, k, v in zip(*(part.chunk(layer.heads, dim=-1) for part in (query, keys, values)), strict=True):
        scores = q @ k.T / math.sqrt(q.shape[-1])
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
        heads.append(scores.softmax(-1) @ v)
    return layer.out(torch.cat(heads, dim=-1))


@torch.no_grad()
def test_the_consensus_is_inferred_from_the_first_position(model, batch):  # Eq 3
    for direction in ("forward", "backward"):
        source = model.source(batch, direction)
        hidden = model.encode(source, direction)
        part = model.model(direction)
        _, first, _, second = part.inference
        by_hand = second(first(hidden[:, 0]).relu()).softmax(-1)
        assert torch.allclose(part.infer(hidden, source.mask).exp(), by_hand, atol=1e-6)
        assert torch.allclose(by_hand.sum(-1), torch.ones(6), atol=1e-6)


@torch.no_grad()
def test_the_emotion_is_what_the_consensus_says_of_it_summed_over_all_values(model, batch):  # Eq 4
    log_q = model.understand(batch).beliefs["consensus"]
    believed = model.understand(batch).beliefs["emotion"]
    for row in range(6):
        slow = sum(
            log_q[row, z].exp() * (model.emotion.weight @ model.consensus.weight[z] + model.emotion.bias).softmax(-1)
            for z in range(K)
        )
        assert torch.allclose(believed[row].exp(), slow, atol=1e-6)


def test_each_side_gives_half_of_the_emotion_loss_and_all_terms_share_one_count(model, batch):
    model.train()
    terms = model.paired(batch, Moment())
    assert terms["emotion"].total.requires_grad
    assert terms["emotion"].count == terms["reply"].count == terms["kl"].count == float(batch.reply.mask.sum())
    model.eval()
    single = model.paired(batch, Moment())
    believed = model.understand(batch).beliefs["emotion"]
    assert torch.allclose(single["emotion"].total, 0.5 * F.nll_loss(believed, batch.emotion, reduction="sum"))


@torch.no_grad()
def test_the_decoder_attends_to_the_source_and_to_the_consensus_apart(model, batch):  # Eqs 6-8
    hidden = model.encode(batch.context, "forward")
    decoder = model.model("forward").decoder
    embedding = model.consensus.weight[torch.arange(6) % K]
    x = torch.randn(6, 5, 16)
    actual, _ = decoder(x, decoder.remember(hidden, batch.context.mask, embedding))
    for row in range(6):
        slow, memory = x[row], hidden[row][batch.context.mask[row]]
        for layer in decoder.layers:
            normed = norm(layer.self_norm, slow)
            slow = slow + slow_attention(layer.self_attention, normed, normed, causal=True)
            normed = norm(layer.cross_norm, slow)
            slow = slow + slow_attention(layer.source_attention, normed, memory)  # (6)
            value = layer.consensus_attention.value(embedding[row][None])
            found_by_each = torch.ones(len(slow), 1).softmax(-1) @ value  # (7): one key, so each query's weights are 1
            felt = layer.consensus_attention.out(found_by_each)
            joined = norm(layer.join_norm, torch.cat([slow, felt], dim=-1))
            slow = slow + layer.join.down(layer.join.up(joined).relu())  # (8)
        assert torch.allclose(actual[row], norm(decoder.norm, slow), atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_step_at_a_time_is_the_whole_at_once(model, batch, direction):  # Eq 9
    target = model.target(batch, direction)
    if direction == "backward":  # what is generated is a single speaker turn
        target = replace(target, roles=torch.full_like(target.roles, SPEAKER))
    state = model.understand(batch, direction=direction)
    hidden, tokens = model.teach(target, state.fixed["memory"], direction)
    at_once = F.linear(hidden, model.words.choices, model.words.bias).log_softmax(-1)
    actual, last = [], torch.full_like(target.tokens[:, 0], 99 % len(model.words.table))
    for position in range(target.tokens.shape[1]):
        logits, state = model.step(last, state)
        actual.append(logits.log_softmax(-1))
        last = target.tokens[:, position]
    slow = torch.stack(actual, dim=1)[target.mask]
    assert torch.allclose(at_once, slow, atol=1e-4)
    assert torch.equal(tokens, target.tokens[target.mask])


def test_the_first_input_is_the_consensus_and_not_a_start_token(model, batch):
    with torch.no_grad():
        state = model.understand(batch)
        one, _ = model.step(torch.zeros(6, dtype=torch.long), state)
        other, _ = model.step(torch.full((6,), 9), state)
        assert torch.equal(one, other)


def test_a_reply_is_read_backwards_as_a_context_is(model, batch):
    source = model.source(batch, "backward")
    assert (source.tokens[:, 0] == model.vocabulary.ctx).all()
    for row in range(6):
        said = batch.reply.tokens[row][batch.reply.mask[row]].tolist()
        assert source.tokens[row][source.mask[row]].tolist() == [model.vocabulary.ctx, *said[:-1]]
        assert set(source.roles[row][source.mask[row]].tolist()) == {LISTENER}


def test_the_backward_model_writes_the_whole_context_with_marks_between_turns():
    ids = Vocabulary(size=40)
    context = Sequence(
        torch.tensor([[4, 10, 11, 20, 21, 30], [4, 12, 13, 0, 0, 0]]),
        torch.tensor([[True] * 6, [True] * 3 + [False] * 3]),
        torch.tensor([[0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0]]),
    )
    target = context.as_target(ids.ctx, ids.start, ids.end, ids.pad)
    assert target.tokens.tolist() == [[10, 11, 2, 20, 21, 2, 30, 3], [12, 13, 3, 0, 0, 0, 0, 0]]
    assert target.roles.tolist() == [[0, 0, 0, 1, 1, 1, 0, 0], [0] * 8]
    assert target.mask.sum(1).tolist() == [8, 3]


def costs(model, batch, direction):
    """−log p(target | source, z) of each row, for each z: (batch, K)."""
    source = model.source(batch, direction)
    hidden = model.encode(source, direction)
    actual = []
    for z in range(model.config.consensus_size):
        memory = model.model(direction).decoder.remember(hidden, source.mask, model.consensus.weight[z].expand(6, -1))
        actual.append(model.cost(model.target(batch, direction), memory, direction)[1])
    return torch.stack(actual, dim=1)


@torch.no_grad()
def test_both_bounds_lie_below_the_composite_likelihood(model, batch):  # Eqs 11, 12
    reply, context = costs(model, batch, "forward"), costs(model, batch, "backward")
    composite = torch.logsumexp(-reply - context - math.log(K), dim=1)
    for side in ("forward", "backward"):
        source = model.source(batch, side)
        log_q = model.model(side).infer(model.encode(source, side), source.mask)
        q = log_q.exp()
        bound = (q * (-reply - context)).sum(1) - (q * (log_q + math.log(K))).sum(1)
        assert (bound <= composite + 1e-4).all()
    # The bound is tight if q is the posterior of that likelihood.
    best = (-reply - context).log_softmax(dim=1)
    tight = (best.exp() * (-reply - context - best)).sum(1) - math.log(K)
    assert torch.allclose(tight, composite, atol=1e-3)


@torch.no_grad()
def test_the_terms_of_paired_data_are_both_directions_under_both_consensuses(model, batch):  # Eq 13
    terms = model.paired(batch, Moment())
    by_direction = {"reply": costs(model, batch, "forward"), "context": costs(model, batch, "backward")}
    for side, suffix in (("forward", ""), ("backward", "-dual")):
        source = model.source(batch, side)
        log_q = model.model(side).infer(model.encode(source, side), source.mask)
        chosen = log_q.argmax(1)
        for name, nll in by_direction.items():
            assert float(terms[name + suffix].total) == pytest.approx(float(nll[range(6), chosen].sum()), rel=1e-4)
        kl = (log_q.exp() * (log_q + math.log(K))).sum()
        assert float(terms["kl" + suffix].total) == pytest.approx(float(kl), rel=1e-4)


def test_the_kl_rises_over_the_first_tenth_of_a_stage(model, batch):
    model.train()
    for progress, share in ((0.0, 0.0), (0.05, 0.5), (0.5, 1.0)):
        kl = model.paired(batch, Moment(progress=progress))["kl"]
        assert float(kl.total) == pytest.approx(share * float(kl.plain), rel=1e-4, abs=1e-6)


def test_the_draw_lets_the_gradient_through(model, batch):
    model.train()
    model.paired(batch, Moment())["reply"].total.backward()
    assert model.model("forward").inference[1].weight.grad.abs().sum() > 0
    assert not model.model("backward").inference[1].weight.grad.any()


@torch.no_grad()
def test_the_likelihood_sums_the_consensus_out(model, batch):
    log_q = model.understand(batch).beliefs["consensus"]
    slow = -torch.logsumexp(log_q - costs(model, batch, "forward"), dim=1)
    assert torch.allclose(model.score(batch), slow, atol=1e-3)


@torch.no_grad()
def test_the_single_model_has_one_direction_and_one_bound(make, batch):
    model = make("sing-emp")
    assert model.directions == ("forward",)
    assert set(model.paired(batch, Moment())) == {"reply", "kl", "emotion", "emotion-accuracy", "information"}
    with pytest.raises(ValueError, match="no backward model"):
        model.understand(batch, direction="backward")


# Unpaired data


@pytest.fixture
def toy():
    """Six ids, two of them words, so that all replies of at most two words can be enumerated."""
    torch.manual_seed(1)
    sizes = {"width": 8, "heads": 2, "feed_forward": 8, "dropout": 0.0, "consensus_size": 3}
    model = build("dual-emp", sizes, Vocabulary(size=7))
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return model


def one_context():
    tokens = torch.tensor([[4, 5, 6, 5]])
    return Batch(Sequence(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros_like(tokens)))


def test_the_policy_gradient_is_that_of_the_expected_reward(toy):  # Eqs 15, 16
    """Summed over all replies, −(r − b)·∇log q weighted by q is −∇ Σ q(ŷ) r(ŷ), for any baseline b."""
    batch, embedding = one_context(), toy.consensus.weight[1:2].detach()
    source = toy.source(batch, "forward")
    memory = toy.model("forward").decoder.remember(toy.encode(source, "forward"), source.mask, embedding)
    replies = [[*words, 3] for length in range(3) for words in itertools.product((5, 6), repeat=length)]
    log_q, rewards = [], []
    for reply in replies:
        tokens = torch.tensor([reply])
        written = Sequence(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.full_like(tokens, LISTENER))
        hidden, targets = toy.teach(written, memory, "forward")
        logits = F.linear(hidden, toy.words.choices, toy.words.bias)
        log_q.append(logits.log_softmax(-1)[range(len(targets)), targets].sum())
        with torch.no_grad():
            _, nll = write_back(toy, batch, written, embedding, "backward")
            rewards.append(float((-nll / 4).exp()))
    weights = [parameter for name, parameter in toy.named_parameters() if name.startswith("forward_model.decoder")]
    log_q = torch.stack(log_q)
    # Replies of three or more words are left out on both sides: q is renormalized over those enumerated.
    listed = log_q.log_softmax(0)
    exact = torch.autograd.grad(-(listed.exp() * torch.tensor(rewards)).sum(), weights, retain_graph=True)
    for baseline in (0.0, 0.3):
        advantage = torch.tensor(rewards) - baseline
        estimate = torch.autograd.grad(-(listed.exp().detach() * advantage * listed).sum(), weights, retain_graph=True)
        for one, other in zip(exact, estimate, strict=True):
            assert torch.allclose(one, other, atol=1e-6)


def test_the_policy_term_is_the_advantage_times_the_log_probability(toy, monkeypatch):
    """`unpaired_context` returns this estimate for the reply that was sampled."""
    batch = replace(one_context(), emotion=torch.tensor([2]), rows=(0,))
    toy.eval()
    drawn, greedy = write_missing_side(toy, batch, "forward", toy.consensus.weight[:1].detach(), Moment(step=4))
    monkeypatch.setattr(dual_emp_unpaired, "write_missing_side", lambda *_: (drawn, greedy))
    terms = toy.unpaired_context(batch, Moment(step=4))
    embedding = toy.understand(batch).fixed["memory"].embedding
    _, nll = write_back(toy, batch, drawn, embedding, "backward")
    _, base = write_back(toy, batch, greedy, embedding, "backward")
    length = toy.target(batch, "backward").mask.sum()
    advantage = (-nll / length).exp() - (-base / length).exp()
    _, cost = toy.cost(drawn, toy.understand(batch).fixed["memory"], "forward")
    assert float(terms["policy-from-context"].total) == pytest.approx(float(advantage * cost), rel=1e-4, abs=1e-6)
    assert float(terms["back-from-context"].total) == pytest.approx(float(nll), rel=1e-4)
    assert terms["reward-from-context"].shown == pytest.approx(float((-nll / length).exp()), rel=1e-4)


@pytest.mark.parametrize("objective", ["unpaired-context", "unpaired-reply"])
def test_from_one_side_both_directions_learn(model, batch, objective):  # Eqs 15, 17
    model.train()
    side = {"reply": None} if objective == "unpaired-context" else {"context": None}
    terms = model.objective(objective, replace(batch, **side), Moment(step=1))
    loss = sum(term.total / term.count for term in terms.values() if term.learned)
    loss.backward()
    for direction in ("forward", "backward"):
        assert model.model(direction).decoder.norm.weight.grad.abs().sum() > 0
    assert {name.split("-from-")[0] for name in terms} >= {
        "back", "policy", "kl", "emotion", "reward", "advantage-variance", "entropy", "copied"
    }  # fmt: skip


def test_what_is_copied_is_counted_by_pairs_of_tokens():
    def side(*rows):
        tokens = torch.tensor(rows)
        return Sequence(tokens, tokens != 0, torch.zeros_like(tokens))

    source = side([4, 5, 6, 7], [4, 5, 6, 7])
    assert copied(side([5, 6, 7, 3], [7, 6, 5, 0]), source).tolist() == [pytest.approx(2 / 3), 0.0]


# As a system


@torch.no_grad()
def test_an_explanation_names_the_consensus_and_what_it_stands_for(model, batch):
    state = model.understand(batch)
    reasons = model.reasons(state, 2)
    assert reasons["consensus"] == int(state.beliefs["consensus"][2].argmax())
    assert 0 < reasons["probability"] <= 1
    assert next(iter(reasons["stands for"])) in EMOTIONS


@torch.no_grad()
def test_the_consensus_may_stand_for_emotions_of_another_set(make, batch):
    model = make(emotions="nlpcc")
    state = model.understand(batch)
    assert state.beliefs["emotion"].shape == (6, len(label_set("nlpcc")))
    assert set(model.reasons(state, 2)["stands for"]) < set(label_set("nlpcc").labels)


@torch.no_grad()
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_it_is_saved_and_read_back_bit_for_bit(model, batch, tokenizer, tmp_path, direction):
    ckpt = Checkpoint("dual-emp", model, tokenizer, EncodingConfig(), Decoding(max_length=8))
    checkpoint.save(ckpt, tmp_path / "made")
    again = checkpoint.load(tmp_path / "made").model
    assert torch.equal(model.score(batch), again.score(batch))
    ends = {"start": tokenizer.start, "end": tokenizer.end, "banned": tokenizer.banned}
    said = [decode(one, one.understand(batch, direction=direction), ckpt.decoding, **ends) for one in (model, again)]
    assert said[0] == said[1]


def test_a_reply_may_be_written_under_a_consensus_that_is_asked_for(model, batch):
    chosen = model.understand(batch)
    other = (int(chosen.beliefs["consensus"][0].argmax()) + 1) % model.config.consensus_size
    state = model.understand(batch, Controls(latent_value=other))
    assert model.reasons(state, 0)["consensus"] == other
    assert torch.equal(state.beliefs["emotion"], chosen.beliefs["emotion"]), "what is heard stays"
    start = torch.full((len(batch),), model.vocabulary.start)
    assert not torch.equal(model.step(start, state)[0], model.step(start, chosen)[0])
    with pytest.raises(ValueError, match="the consensus has the values 0 to"):
        model.understand(batch, Controls(latent_value=99))
