"""Strategy memory: reading and writing, Eqs 1 to 5, frozen parts in phase 2, replies, saving, bad input."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint, CheckpointError
from listenwell.contract import Controls, Moment, State, WordPrior
from listenwell.data.batching import EncodingConfig, collate
from listenwell.decoding import Decoding, decode
from listenwell.layers.clustering import centres
from listenwell.layers.latent import Gaussian
from listenwell.layers.slot_memory import MemoryOptions, StrategyMemory, by_memory
from listenwell.models import build
from listenwell.models.soft_sentiment import write_softly
from listenwell.models.strategy_memory import SAMPLES, STRATEGY
from listenwell.systems.bot import Bot
from listenwell.text import TextConfig, train_tokenizer
from listenwell.training.optimizers import OptimizerSet
from listenwell.training.recipe import Optimizer

PHASE_2 = ["encoder.*", "memory.*", "mixers.*"]


def text_encoder(tokenizer, labels, seed):
    torch.manual_seed(seed)
    sizes = {"width": 12, "heads": 2, "layers": 1, "feed_forward": 16, "dropout": 0.0}
    model = build("text-encoder", {**sizes, "labels": labels}, tokenizer.vocabulary)
    model.initialise(WordPrior(torch.ones(len(tokenizer))))
    torch.nn.init.normal_(model.out.weight, std=1.0)
    return Checkpoint("text-encoder", model.eval(), tokenizer)


@pytest.fixture(scope="module")
def parts(tokenizer):
    return {"detector": text_encoder(tokenizer, "nlpcc", 3), "evaluator": text_encoder(tokenizer, "polarity", 4)}


@pytest.fixture
def make(tiny_model, parts):
    def make(**choices):
        model = tiny_model("strategy-memory", slots=6, queries_per_slot=2, **choices)
        model.attach(parts)
        return model

    return make


@pytest.fixture
def batch(encoded, tokenizer):
    return collate(encoded, range(8), tokenizer.pad)


def written(model, batch, epoch=0):
    """The model with its memory written from one batch."""
    with torch.no_grad():
        model.on_epoch_start(STRATEGY, epoch, lambda: [batch])
    return model


def memory_of(keys, **options):
    """A memory with these keys, and values and deviations that differ between slots."""
    slots, width = keys.shape
    memory = StrategyMemory(MemoryOptions(width, slots + 2, **options), emotions=1, memories=1)
    memory.keys[0, :slots] = keys
    memory.filled[0] = slots
    torch.manual_seed(1)
    memory.values.data = torch.randn_like(memory.values)
    memory.deviations.data = torch.randn_like(memory.deviations)
    return memory


# Reading (Eq 2)


def test_the_hard_read_takes_the_value_of_the_most_similar_key():
    keys = torch.randn(5, 4)
    memory, query = memory_of(keys), torch.randn(3, 4)
    reading = memory.read(query, torch.zeros(3, dtype=torch.long))
    for row in range(3):
        best = max(range(5), key=lambda slot: float(keys[slot] @ query[row]))
        assert torch.allclose(reading.mean[row], memory.values[0, best])
        assert reading.deviation[row].item() == pytest.approx(F.softplus(memory.deviations[0, best]).item())
    assert torch.allclose(reading.entropy, torch.zeros(3))


def test_the_soft_read_weighs_the_best_slots_by_the_softmax_of_their_products():
    keys, query = torch.randn(5, 4), torch.randn(1, 4)
    memory = memory_of(keys, read=3)
    reading = memory.read(query, torch.zeros(1, dtype=torch.long))
    products = sorted(((float(keys[slot] @ query[0]), slot) for slot in range(5)), reverse=True)[:3]
    total = sum(math.exp(product) for product, _ in products)
    mean = sum(math.exp(product) / total * memory.values[0, slot] for product, slot in products)
    spread = sum(math.exp(product) / total * F.softplus(memory.deviations[0, slot]) for product, slot in products)
    assert torch.allclose(reading.mean[0], mean, atol=1e-6)
    assert reading.deviation[0].item() == pytest.approx(spread.item(), rel=1e-5)
    assert int((reading.weights > 0).sum()) == 3


@pytest.mark.parametrize("count", [0, 5, 500])
def test_a_read_of_all_slots_leaves_the_empty_ones_out(count):
    memory = memory_of(torch.randn(5, 4), read=count)
    weights = memory.read(torch.randn(2, 4), torch.zeros(2, dtype=torch.long)).weights
    assert torch.allclose(weights[:, :5].sum(dim=1), torch.ones(2))
    assert not weights[:, 5:].any()


def test_long_keys_win_by_dot_product_and_not_by_cosine():
    keys = F.normalize(torch.tensor([[1.0, 0.1], [1.0, 1.0]]), dim=1) * torch.tensor([[1.0], [9.0]])
    query = torch.tensor([[1.0, 0.0]])
    home = torch.zeros(1, dtype=torch.long)
    assert int(memory_of(keys).read(query, home).weights.argmax()) == 1
    by_angle = memory_of(F.normalize(keys, dim=1), similarity="cosine")
    assert int(by_angle.read(query, home).weights.argmax()) == 0


def test_rows_of_several_memories_come_back_in_their_order():
    home = torch.tensor([2, 0, 2, 1, 0])
    actual = by_memory(home, lambda memory, rows: torch.stack([rows, torch.full_like(rows, memory)], dim=1))
    assert actual.tolist() == [[0, 2], [1, 0], [2, 2], [3, 1], [4, 0]]


# Writing


def test_centres_are_the_means_of_groups_that_lie_apart():
    groups = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = (groups[:, None] + 0.1 * torch.randn(3, 20, 2)).flatten(0, 1)
    clusters = centres(points, 3)
    wanted = points.unflatten(0, (3, 20)).mean(dim=1)
    assert torch.allclose(clusters[torch.cdist(wanted, clusters).argmin(dim=1)], wanted, atol=1e-4)


def test_equal_vectors_and_fewer_vectors_than_clusters_leave_no_empty_cluster():
    assert centres(torch.ones(7, 3), 4).tolist() == [[1.0, 1.0, 1.0]]
    assert len(centres(torch.randn(3, 2), 5)) == 3
    assert len(centres(torch.zeros(0, 2), 5)) == 0


def write_memory(emotions, **options):
    memory = StrategyMemory(MemoryOptions(4, 5, **options), emotions=4, memories=4)
    torch.manual_seed(2)
    queries = torch.randn(len(emotions), 4) + 3
    tokens = [np.array([9 + emotion, 20 + index % 3]) for index, emotion in enumerate(emotions)]
    memory.write(queries, torch.tensor(emotions), tokens, torch.arange(len(emotions)) + 100, seed=0)
    return memory, queries


def test_a_write_clusters_the_queries_of_each_emotion_and_rare_ones_get_small_memories():
    memory, queries = write_memory([0] * 40 + [1] * 8 + [2] * 3, queries_per_slot=4)
    assert memory.filled.tolist() == [5, 2, 1, 0]
    assert torch.allclose(memory.keys[2, 0], queries[48:].mean(dim=0), atol=1e-5)
    assert float(memory.reads.sum()) == pytest.approx(51)


def test_an_emotion_that_no_query_has_reads_the_fullest_memory():
    memory, _ = write_memory([1] * 9 + [2] * 3, queries_per_slot=4)
    assert memory.home.tolist() == [1, 1, 2, 1]
    assert torch.isfinite(memory.read(torch.randn(2, 4), memory.home[torch.tensor([3, 0])]).mean).all()


def test_values_begin_with_the_mean_and_spread_of_the_queries():
    memory, queries = write_memory([0] * 400, queries_per_slot=4)
    assert torch.allclose(memory.values[0].mean(), queries.mean(), atol=0.8)
    assert 0.4 < memory.values[0].std().item() < 2
    other, _ = write_memory([0] * 400, queries_per_slot=4, value_start="centres")
    assert torch.equal(other.values[0], other.keys[0])


def test_a_slot_keeps_the_numbers_of_its_nearest_queries_and_its_telling_words():
    memory, queries = write_memory([0] * 40, queries_per_slot=10)
    for slot in range(4):
        members = [row - 100 for row in memory.nearest[0, slot].tolist() if row >= 0]
        products = queries[members] @ memory.keys[0].T
        assert (products.argmax(dim=1) == slot).all()
        assert products[:, slot].tolist() == sorted(products[:, slot].tolist(), reverse=True)
        # Token 9 is in all queries, so it carries no information.
        assert 9 not in memory.words[0, slot].tolist()


def test_the_model_writes_only_before_epochs_of_its_phase_and_names_what_it_set(make, batch):
    model = make()
    assert model.on_epoch_start("conversation", 0, lambda: [batch]) == ()
    assert not model.memory.written
    with torch.no_grad():
        assert tuple(model.on_epoch_start(STRATEGY, 0, lambda: [batch])) == ("memory.*", "mixers.*")
        assert tuple(model.on_epoch_start(STRATEGY, 1, lambda: [batch])) == ("memory.*",)
    query = model.read_query(batch)
    counts = Counter(query.emotion.argmax(dim=-1).tolist())
    assert model.memory.filled.tolist() == [min(6, max(1, counts[e] // 2)) if counts[e] else 0 for e in range(8)]


# The mixer (Eqs 1 to 4)


def drawn_posterior(count=40_000):
    torch.manual_seed(5)
    memory = memory_of(torch.randn(5, 4), read=3)
    query = torch.randn(1, 4)
    return memory, query, memory.read(query, torch.zeros(1, dtype=torch.long)), count


@torch.no_grad()
def test_equation_3_is_one_gaussian_with_the_weighted_mean_and_the_weighted_deviation():
    _, _, reading, count = drawn_posterior()
    z = reading.gaussian.at(torch.randn(count, 4))
    assert torch.allclose(z.mean(dim=0), reading.mean[0], atol=0.03)
    assert torch.allclose(z.std(dim=0), reading.deviation[0].expand(4), atol=0.03)


@torch.no_grad()
def test_the_true_mixture_has_the_same_mean_and_a_larger_variance(make, batch):
    model = written(make(read=3, mixture=True), batch)
    query = model.read_query(batch)
    reading, prior = model.memory.read(query.vector, query.home), model.prior(query)
    drawn = torch.stack([model.memory.draw_mixture(reading, query.home, prior)[0] for _ in range(4000)])
    values = model.memory.values[query.home]
    deviations = F.softplus(model.memory.deviations[query.home])[..., None]
    pi = reading.weights[..., None]
    variance = (pi * (deviations.square() + values.square())).sum(dim=1) - reading.mean.square()
    assert torch.allclose(drawn.mean(dim=0), reading.mean, atol=0.1)
    assert torch.allclose(drawn.var(dim=0), variance, rtol=0.2, atol=0.02)
    assert (variance + 1e-5 >= reading.deviation.square()).all()


@torch.no_grad()
def test_the_kl_in_closed_form_is_what_sampling_finds():
    _, _, reading, count = drawn_posterior()
    prior = Gaussian(torch.randn(1, 4), torch.randn(1, 4) * 0.3)
    q = reading.gaussian
    z = q.at(torch.randn(count, 4))
    sampled = (log_density(q, z) - log_density(prior, z)).mean()
    assert float(q.kl(prior)) == pytest.approx(float(sampled), rel=0.03)


def log_density(gaussian, z):
    spread = gaussian.log_variance
    return (-0.5 * ((z - gaussian.mean).square() / spread.exp() + spread + math.log(2 * math.pi))).sum(dim=-1)


@torch.no_grad()
def test_the_bound_of_the_mixtures_kl_is_above_what_sampling_finds(make, batch):
    model = written(make(read=3, mixture=True), batch)
    query = model.read_query(batch)
    reading, prior = model.memory.read(query.vector, query.home), model.prior(query)
    _, bound = model.memory.draw_mixture(reading, query.home, prior)
    values = model.memory.values[query.home]
    spread = 2 * F.softplus(model.memory.deviations[query.home]).log()[..., None].expand_as(values)
    ratios = []
    for _ in range(600):
        z, _ = model.memory.draw_mixture(reading, query.home, prior)
        each = log_density(Gaussian(values, spread), z[:, None])
        ratios.append((reading.weights.log() + each).logsumexp(dim=1) - log_density(prior, z))
    sampled = torch.stack(ratios)
    error = sampled.std(dim=0) / math.sqrt(len(ratios))
    assert (bound + 4 * error >= sampled.mean(dim=0)).all()


@torch.no_grad()
def test_the_prior_is_the_mixer_of_the_emotion_heard(make, batch):
    model = written(make(), batch)
    query = model.read_query(batch)
    prior = model.prior(query)
    for row, memory in enumerate(query.home.tolist()):
        mixer = model.mixers[memory]
        assert torch.allclose(prior.mean[row], mixer.mean(query.vector[row]), atol=1e-5)
        deviation = F.softplus(mixer.deviation(query.vector[row]))
        assert torch.allclose((0.5 * prior.log_variance[row]).exp(), deviation, atol=1e-5)


@torch.no_grad()
def test_z_begins_as_e_with_half_its_spread(make, batch):
    model = written(make(), batch)
    query = model.read_query(batch)
    prior = model.prior(query)
    assert torch.allclose(prior.mean, query.vector, atol=1e-5)
    spread = query.vector.std(dim=0, correction=0).mean()
    assert torch.allclose((0.5 * prior.log_variance).exp(), (0.5 * spread).expand_as(prior.mean), rtol=1e-3)


# Phase 2 (Eq 5)


def test_the_bounds_terms_share_one_count_and_sentiment_is_a_mean_over_replies(make, batch):
    terms = written(make(read=3), batch).strategy(batch, Moment())
    assert terms["reply"].count == terms["kl"].count == int(batch.reply.mask.sum())
    assert terms["sentiment"].count == 8
    assert 0 < terms["sentiment"].shown < 1
    assert terms["sentiment"].total.item() == pytest.approx(-terms["sentiment"].plain.item())
    shown = {name for name, term in terms.items() if not term.learned}
    assert shown == {"pi-entropy", "slots-in-batch", "slots-used"}


def steps(model, batch, learns, rounds, alpha, rate=0.01, **options):
    optimizers = OptimizerSet(
        model, {"main": Optimizer(rate=rate, schedule="constant", warmup=0, decay=0, learns=learns)}
    )
    model.train()
    for index in range(rounds):
        optimizers.activate("main")
        terms = model.strategy(batch, Moment(index), **options)
        loss = terms["reply"].mean + terms["kl"].mean + alpha * terms["sentiment"].mean
        loss.backward()
        optimizers.step("main", index, 0.0)
    model.eval()
    return terms


def test_frozen_parts_do_not_move_and_the_others_do(make, batch, parts):
    model = written(make(read=3), batch)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    judges = {f"{n}.{key}": v.clone() for n in parts for key, v in parts[n].model.state_dict().items()}
    steps(model, batch, PHASE_2, 2, alpha=0.9)
    after = model.state_dict()
    moved = {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert moved == {"encoder", "memory", "mixers"}
    assert torch.equal(before["memory.keys"], after["memory.keys"])
    assert all(torch.equal(v, judges[f"{n}.{k}"]) for n in parts for k, v in parts[n].model.state_dict().items())


@pytest.mark.parametrize("draw", ["gumbel", "mean"])
@pytest.mark.parametrize("way", ["soft", "steps"])
def test_the_sentiment_gradient_reaches_z_through_parts_that_stand_still(make, batch, way, draw):
    model = written(make(read=3), batch).train()
    model.requires_grad_(False)
    model.memory.values.requires_grad_(True)
    model.strategy(batch, Moment(), sentiment_by=way, draw=draw)["sentiment"].total.backward()
    assert float(model.memory.values.grad.norm()) > 0
    assert model.conversation.words.table.grad is None


def talkative(model, batch):
    """The model after a short phase 1: its replies depend on the condition."""
    optimizers = OptimizerSet(model, {"main": Optimizer(rate=0.01, schedule="constant", warmup=0, clip=0)})
    model.train()
    for index in range(60):
        optimizers.activate("main")
        model.condition(batch, Moment(index))["reply"].mean.backward()
        optimizers.step("main", index, 0.0)
    return model.eval()


def sentiment_after(model, batch, alpha):
    """P(positive) of the mean words under the prior's mean, before and after a few steps of phase 2."""
    written(talkative(model, batch), batch)
    actual = []
    for rounds in (0, 40):
        if rounds:
            steps(model, batch, PHASE_2, rounds, alpha, rate=0.1, draw="mean")
        with torch.no_grad():
            actual.append(model.strategy(batch, Moment(), draw="mean")["sentiment"].shown)
    return actual


@pytest.mark.parametrize("choices", [{}, {"mixer": "mean"}, {"read": 3, "mixture": True}])
def test_sent_rises_further_with_the_sentiment_loss_than_without(tiny_model, parts, tokenizer, batch, choices):
    sharp = text_encoder(tokenizer, "polarity", 4)
    sharp.model.out.weight.data *= 6
    with torch.no_grad():
        sharp.model.out.bias -= sharp.model.logits(batch).mean(dim=0)  # it rates these replies as neutral
    actual = {}
    for alpha in (50.0, 0.0):
        model = tiny_model("strategy-memory", slots=6, queries_per_slot=2, **choices)
        model.attach({**parts, "evaluator": sharp})
        before, actual[alpha] = sentiment_after(model, batch, alpha)
    # The likelihood alone shifts it slightly here too, because these replies happen to please this evaluator.
    assert actual[50.0] > before + 0.03
    assert actual[50.0] > actual[0.0] + 0.02


def test_sentiment_may_be_taken_from_the_priors_draw(make, batch):
    model = written(make(read=3), batch).train()
    model.requires_grad_(False)
    for mixer in model.mixers:
        mixer.requires_grad_(True)
    model.strategy(batch, Moment(), sentiment_from="prior")["sentiment"].total.backward()
    assert any(mixer.mean.weight.grad is not None and mixer.mean.weight.grad.any() for mixer in model.mixers)


def test_soft_words_that_are_decided_are_judged_as_text(make, batch, parts, tokenizer):
    model, evaluator = make(), parts["evaluator"].model
    kept = batch.reply.mask & (batch.reply.tokens != tokenizer.end)
    weights = F.one_hot(batch.reply.tokens[kept], len(tokenizer)).float()
    with torch.no_grad():
        soft, text = evaluator.soft_log_probs(weights, kept), evaluator.label_log_probs(batch)
    assert torch.allclose(soft, text, atol=1e-5)
    assert model.part("evaluator") is evaluator


@torch.no_grad()
def test_steps_that_are_fed_decided_words_are_those_of_the_decoder(make, batch):
    """Samples at low temperature are words: fed back one by one, they give the same as greedy decoding."""
    model = written(make(), batch)
    query = model.read_query(batch)
    memory = model.condition_on(batch, query.vector)
    soft = write_softly(model, batch.reply, memory, "mean", 1e-6)
    hypotheses = decode(model.conversation, State(fixed=memory), Decoding(max_length=5), start=2, end=3, banned=())
    for row in range(8):
        said = hypotheses[row][0].tokens
        assert soft[row].argmax(dim=-1).tolist()[: len(said)] == said[: soft.shape[1]]


# Ablations


def test_without_the_mixer_what_is_read_goes_straight_to_the_transformer(make, batch):
    model = written(make(mixer="memory"), batch)
    query = model.read_query(batch)
    read = model.memory.read(query.vector, query.home).mean
    assert torch.equal(model.strategy_vector(query, "prior", torch.randn(8, 16)), read)
    assert float(model.strategy(batch, Moment())["kl"].total.detach()) == 0


def test_without_the_gaussian_there_is_no_noise_and_a_squared_distance(make, batch):
    model = written(make(mixer="mean"), batch)
    query = model.read_query(batch)
    prior, read = model.prior(query).mean, model.memory.read(query.vector, query.home).mean
    assert torch.equal(model.strategy_vector(query, "prior", torch.randn(8, 16)), prior)
    slow = 0.5 * (prior - read).square().sum()
    assert torch.allclose(model.strategy(batch, Moment())["kl"].total, slow)


def test_without_emotion_memory_there_is_one_memory_and_one_mixer(make, batch):
    model = written(make(emotion_memory=False), batch)
    assert len(model.mixers) == len(model.memory.filled) == 1
    assert not model.memory.home.any()
    assert model.reasons(model.understand(batch), 0)["emotion"] in model.emotions


def test_with_the_transformer_learning_the_reward_is_a_policy_gradient(make, batch):
    model = written(make(), batch)
    before = model.conversation.words.table.clone()
    terms = steps(model, batch, [*PHASE_2, "conversation.*"], 2, 0.9, sentiment_by="policy")
    assert 0 < terms["sentiment"].shown < 1
    assert not torch.equal(before, model.conversation.words.table)


# Replying


@torch.no_grad()
def test_cached_decoding_gives_what_the_whole_sequence_gives(make, batch):
    model = written(make(read=3), batch)
    state = model.understand(batch, generator=torch.Generator().manual_seed(1))
    hidden, _ = model.conversation.teach(batch, State(fixed=state.fixed.memory))
    whole = model.conversation.words.choices @ hidden.T
    whole = (whole + model.conversation.words.bias[:, None]).T
    tokens, actual = batch.reply.shifted(model.vocabulary.start), []
    for place in range(tokens.shape[1]):
        logits, state = model.step(tokens[:, place], state)
        actual.append(logits)
    assert torch.allclose(torch.stack(actual, dim=1)[batch.reply.mask], whole, atol=1e-4)


@torch.no_grad()
def test_of_hidden_queries_the_transformer_sees_e_alone(make, batch):
    model = make().eval()
    e = model.encoder(batch.context)
    hidden = torch.arange(len(batch)) % 2 == 0
    memory = model.condition_on(batch, e, hidden)
    other_words = replace(batch.context, tokens=batch.context.tokens.flip(0))
    other = model.condition_on(replace(batch, context=other_words), e, hidden)
    reply = [decoded(model, batch, one) for one in (memory, other)]
    assert torch.allclose(reply[0][hidden], reply[1][hidden], atol=1e-5)
    assert not torch.allclose(reply[0][~hidden], reply[1][~hidden], atol=1e-3)


def decoded(model, batch, memory):
    """What the decoder makes of the first position of each reply."""
    logits, _ = model.conversation.step(torch.full((len(batch),), model.vocabulary.start), State(fixed=memory))
    return logits


def test_queries_are_hidden_in_training_alone_and_the_same_ones_again(make, batch):
    model = make(dropout=0.0)
    learning = (True, True, False)
    losses = [model.train(one).condition(batch, Moment(step=3), hide=0.5)["reply"].total for one in learning]
    plain = model.train(True).condition(batch, Moment(step=3))["reply"].total
    hidden = Moment(step=3).draw(batch, 0.5)
    assert 0 < int(hidden.sum()) < len(batch)
    assert torch.equal(losses[0], losses[1])
    assert not torch.isclose(losses[0], plain)
    assert torch.isclose(losses[2], plain)


def test_two_word_tables_if_wanted(make):
    assert make().conversation.words.choice is None
    assert make(tied=False).conversation.words.choice is not None


def test_before_phase_2_the_query_itself_is_the_condition(make, batch):
    model = make()
    query = model.read_query(batch)
    assert torch.equal(model.strategy_vector(query, "prior", torch.randn(8, 16)), query.vector)
    assert model.reasons(model.understand(batch), 0).keys() == {"emotion"}


@torch.no_grad()
def test_the_latent_is_drawn_from_the_prior_or_read_or_without_noise(make, batch):
    model = written(make(read=3), batch)
    query, noise = model.read_query(batch), torch.randn(8, 16)
    z = {where: model.strategy_vector(query, where, noise) for where in ("prior", "posterior", "mean")}
    assert torch.allclose(z["prior"], model.prior(query).at(noise))
    assert torch.allclose(z["mean"], model.prior(query).mean)
    assert torch.allclose(z["posterior"], model.memory.read(query.vector, query.home).gaussian.at(noise))
    state = model.understand(batch, Controls(latent="mean"))
    assert torch.equal(state.fixed.memory.layers[0].keys, model.condition_on(batch, z["mean"]).layers[0].keys)


@torch.no_grad()
def test_the_likelihood_is_averaged_over_draws_in_probability(make, batch):
    model, generator = written(make(), batch), torch.Generator().manual_seed(3)
    nll = model.score(batch, generator)
    query, noise = model.read_query(batch), model._noise(batch, SAMPLES, generator)
    each = [(-model._nll(batch, model.prior(query).at(noise[:, draw])).double()).exp() for draw in range(SAMPLES)]
    assert torch.allclose(nll.double(), -(sum(each) / SAMPLES).log(), rtol=1e-4)


@torch.no_grad()
def test_an_explanation_names_the_emotion_and_the_nearest_slots_with_their_words(make, batch):
    model = written(make(), batch)
    state = model.understand(batch)
    for row in range(8):
        reasons = model.reasons(state, row)
        assert reasons["emotion"] == model.emotions.labels[int(state.beliefs["emotion"][row].argmax())]
        assert all(name.split()[0] in model.emotions for name in reasons["nearest slots"])
        assert sum(reasons["nearest slots"].values()) <= 1.001


def test_saved_and_loaded_it_says_the_same(make, batch, parts, tokenizer, tmp_path):
    model = written(make(read=3), batch)
    ckpt = Checkpoint("strategy-memory", model, tokenizer, EncodingConfig(max_turns=1), parts=parts)
    checkpoint.save(ckpt, tmp_path / "saved")
    read = checkpoint.load(tmp_path / "saved")
    assert read.model.part("detector") is read.parts["detector"].model
    with torch.no_grad():
        noise = torch.Generator().manual_seed(1)
        assert torch.equal(read.model.score(batch, noise), model.score(batch, noise))
    before, after = (Bot(one).reply(["I lost my job", "Oh no.", "And my dog too."]) for one in (ckpt, read))
    assert before == after
    assert before.emotion in read.model.emotions


def test_a_single_turn_system_reads_the_last_turn_alone(make, batch, parts, tokenizer):
    bot = Bot(Checkpoint("strategy-memory", make(), tokenizer, EncodingConfig(max_turns=1), parts=parts))
    assert bot.replies([["I am sad.", "Why?", "I failed."]])[0].text == bot.replies([["I failed."]])[0].text


# Bad input


@pytest.mark.parametrize(
    ("choices", "problem"),
    [
        ({"slots": 0}, "slots is 0, expected at least 1"),
        ({"queries_per_slot": 0}, "queries_per_slot is 0"),
        ({"read": -1}, r"read is -1, expected 0 \(all slots\) or more"),
        ({"mixture": True, "mixer": "mean"}, "mixer must be gaussian, found mean"),
        ({"emotions": "nlpc"}, "did you mean 'nlpcc'"),
    ],
)
def test_a_choice_that_makes_no_sense_is_named(tokenizer, choices, problem):
    with pytest.raises(ValueError, match=problem):
        build("strategy-memory", choices, tokenizer.vocabulary)


def test_a_missing_part_is_named_with_the_way_out(tiny_model, batch):
    model = tiny_model("strategy-memory", slots=6)
    with pytest.raises(ValueError, match=r"has no detector: name one in the recipe, parts: \{detector: …\}"):
        model.understand(batch)


def test_parts_of_the_wrong_kind_are_refused(tiny_model, parts):
    model = tiny_model("strategy-memory", slots=6)
    with pytest.raises(ValueError, match="its detector predicts polarity, but emotions is nlpcc"):
        model.attach({"detector": parts["evaluator"]})
    with pytest.raises(ValueError, match="its evaluator predicts nlpcc, expected polarity"):
        model.attach({"evaluator": parts["detector"]})
    with pytest.raises(ValueError, match="must be a text-encoder, found Trs"):
        model.attach({"detector": replace(parts["detector"], model=tiny_model("trs"))})


def test_parts_that_read_other_tokens_are_refused(make, parts):
    other = train_tokenizer(["quite other words than the others have"], TextConfig())
    with pytest.raises(CheckpointError, match="its part detector, a text-encoder, has other tokens"):
        Checkpoint("strategy-memory", make(), other, parts=parts)


def test_the_condition_is_about_as_long_as_the_words_beside_which_it_stands(tokenizer, batch):
    model = build(
        "strategy-memory", {"width": 64, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}, tokenizer.vocabulary
    )
    words = model.conversation.words(batch.context.tokens)[batch.context.mask].norm(dim=-1).mean()
    assert 0.3 < float(model.encoder(batch.context).norm(dim=-1).mean() / words) < 3
