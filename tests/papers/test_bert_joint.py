"""BERT (JT), its Bi-LSTM rows and EmoPrepend-1: each equation, row by row and step by step, on a tiny random BERT."""

import shutil
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

import listenwell
from listenwell import checkpoint
from listenwell.backbones import BackboneError, encoder
from listenwell.checkpoint import Checkpoint
from listenwell.configuration import ConfigError
from listenwell.contract import ABSENT, Moment, State, Vocabulary, WordPrior
from listenwell.data.batching import EncodingConfig, collate, encode
from listenwell.data.dialogue import ROLES, Example, Turn, examples
from listenwell.data.sources import jsonl
from listenwell.decoding import Decoding, decode
from listenwell.layers.transformer import sinusoids
from listenwell.models import build, current_model
from listenwell.packing import MOST_BYTES
from listenwell.text import TextConfig, backbone_tokenizer
from listenwell.training import load_recipe, run
from listenwell.training.optimizers import OptimizerSet, trained_parameters

JOINT = ("bert-joint", "bilstm-joint", "bilstm-attn-joint")
SHAPES = {
    "bert": {"name": "bert-joint"},
    "bert, narrow words": {"name": "bert-joint", "width": 12, "word_width": 6, "tied": False},
    "bilstm": {"name": "bilstm-joint"},
    "bilstm attention": {"name": "bilstm-attn-joint", "width": 12},
}


@pytest.fixture(scope="module")
def pieces(tiny_backbone):
    """The tiny backbone's tokenizer."""
    return backbone_tokenizer(str(tiny_backbone))


@pytest.fixture(scope="module")
def data(small_corpus, pieces):
    items = [item for dialogue in jsonl.read(small_corpus, "valid") for item in examples(dialogue)]
    return encode(items, pieces, EncodingConfig(max_context=30))


@pytest.fixture
def batch(data, pieces):
    """Six replies of different lengths."""
    return collate(data, range(6), pieces.pad)


@pytest.fixture
def make(pieces, tiny_backbone):
    """Make a model with all weights random, so that no part is hidden by zeros."""

    def make(name="bert-joint", **choices):
        torch.manual_seed(7)
        wanted = current_model({"name": name, "width": 16, "backbone": str(tiny_backbone), **choices})
        model = build(wanted.pop("name"), wanted, pieces.vocabulary)
        model.initialise(WordPrior(torch.randint(0, 50, (len(pieces),))))
        for parameter in model.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
        return model.eval()

    return make


@pytest.fixture(params=SHAPES, ids=str)
def model(request, make):
    return make(**SHAPES[request.param])


@pytest.fixture
def emo_prepend(make):
    """EmoPrepend-1 with two layers."""
    return make("emo-prepend", heads=2, feed_forward=24, encoder_layers=2)


# Slow and obvious


def cell_weights(cell, suffix):
    return tuple(getattr(cell, f"{kind}_l0{suffix}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))


def gru_step(x, hidden, weights):
    """One step of a GRU on vectors."""
    for_input, for_hidden, input_bias, hidden_bias = weights
    given, own = for_input @ x + input_bias, for_hidden @ hidden + hidden_bias
    width = len(hidden)
    reset = torch.sigmoid(given[:width] + own[:width])
    update = torch.sigmoid(given[width : 2 * width] + own[width : 2 * width])
    new = torch.tanh(given[2 * width :] + reset * own[2 * width :])
    return (1 - update) * new + update * hidden


def lstm_step(x, state, weights):
    hidden, memory = state
    for_input, for_hidden, input_bias, hidden_bias = weights
    let_in, forget, new, out = (for_input @ x + input_bias + for_hidden @ hidden + hidden_bias).chunk(4)
    memory = torch.sigmoid(forget) * memory + torch.sigmoid(let_in) * torch.tanh(new)
    return torch.sigmoid(out) * torch.tanh(memory), memory


def both_ways(xs, cell):
    """A Bi-GRU or Bi-LSTM on one row: outputs (time, width) and the two last states concatenated."""
    width, ways = cell.hidden_size, []
    for suffix, order in (("", xs), ("_reverse", xs.flip(0))):
        weights, states = cell_weights(cell, suffix), []
        hidden, memory = torch.zeros(width), torch.zeros(width)
        for x in order:
            if isinstance(cell, torch.nn.GRU):
                hidden = gru_step(x, hidden, weights)
            else:
                hidden, memory = lstm_step(x, (hidden, memory), weights)
            states.append(hidden)
        ways.append(torch.stack(states))
    return torch.cat([ways[0], ways[1].flip(0)], dim=1), torch.cat([ways[0][-1], ways[1][-1]])


def embedded(model, tokens, roles):
    words = torch.stack([model.words(token[None])[0] for token in tokens])
    return words + model.speakers.weight[roles]


def row_of(side, row):
    real = side.mask[row]
    return side.tokens[row][real], side.roles[row][real]


def gathered(vectors, query, weight):
    """Eq 1: the weighted sum of the vectors, with scores computed one at a time."""
    scores = torch.stack([h @ weight @ query for h in vectors]) / len(query) ** 0.5
    return sum(share * h for share, h in zip(scores.softmax(0), vectors, strict=True))


def felt_by_hand(model, batch, row):
    """C_E of one row, alone."""
    tokens, roles = row_of(batch.context, row)
    if model.config.emotion_from == "backbone":
        layers = [*model.backbone.model.outputs(tokens[None])][1:]
        assert len(layers) == 2
        firsts = [hidden[0, 0] for hidden in layers]
        return gathered(firsts, firsts[-1], model.emotion.attention.weight)
    outputs, last = both_ways(embedded(model, tokens, roles), model.emotion.reader.cell)
    if model.config.emotion_from == "bilstm":
        return last
    return gathered(list(outputs), last, model.emotion.attention.weight)


def logprobs_by_hand(model, batch, row):
    """Eqs 3 to 5 for one row: log p of every word at each position of its reply."""
    memory, last = both_ways(embedded(model, *row_of(batch.context, row)), model.encoder.cell)
    felt = felt_by_hand(model, batch, row)
    if hasattr(model.match, "weight"):
        felt = model.match.weight @ felt
    hidden, fed = (felt + last) / 2, torch.zeros(model.config.width)
    decoder, targets = model.decoder, row_of(batch.reply, row)[0]
    weights = (decoder.cell.weight_ih, decoder.cell.weight_hh, decoder.cell.bias_ih, decoder.cell.bias_hh)
    actual = []
    for word in [torch.tensor(model.vocabulary.start), *targets[:-1]]:
        x = embedded(model, word[None], batch.reply.roles[row, :1])[0]
        hidden = gru_step(torch.cat([x, fed]), hidden, weights)
        shares = torch.stack([m @ decoder.attention.weight.T @ hidden for m in memory]).softmax(0)
        context = sum(share * m for share, m in zip(shares, memory, strict=True))
        fed = torch.tanh(decoder.mix.weight @ torch.cat([context, hidden]))
        logits = model.words.choices @ model.words.query(fed) + model.words.bias
        actual.append(logits.log_softmax(0))
    return torch.stack(actual)


def step_logprobs(model, state, targets):
    """log p of the targets (rows, time), step by step."""
    actual, last = [], torch.full_like(targets[:, 0], model.vocabulary.start)
    for token in targets.T:
        logits, state = model.step(last, state)
        actual.append(logits.log_softmax(-1).gather(1, token[:, None])[:, 0])
        last = token
    return torch.stack(actual, dim=1)


# The equations


@torch.no_grad()
def test_the_emotion_is_felt_as_equation_1_says_in_all_three_ways(model, batch):
    felt = model.feel(batch)
    believed = model.understand(batch).beliefs["emotion"]
    for row in range(6):
        slow = felt_by_hand(model, batch, row)
        assert torch.allclose(felt[row], slow, atol=1e-5)
        logits = model.emotion.choice.weight @ slow + model.emotion.choice.bias
        assert torch.allclose(believed[row].exp(), logits.softmax(-1), atol=1e-5)


@torch.no_grad()
def test_at_first_all_layers_count_alike(pieces, tiny_backbone, batch):
    model = build("bert-joint", {"width": 16, "backbone": str(tiny_backbone)}, pieces.vocabulary).eval()
    starts = model.backbone.starts(batch.context.tokens, batch.context.mask)
    assert starts.shape == (6, 2, 16)
    assert torch.allclose(model.feel(batch), starts.mean(dim=1), atol=1e-6)


@torch.no_grad()
def test_the_context_is_read_both_ways_as_equation_3_says(model, batch):
    memory, _ = model.read(batch, model.feel(batch))
    for row in range(6):
        slow, _ = both_ways(embedded(model, *row_of(batch.context, row)), model.encoder.cell)
        assert torch.allclose(memory[row, : len(slow)], slow, atol=1e-5)


@torch.no_grad()
def test_the_decoder_starts_from_the_mean_of_emotion_and_context(make, batch):
    for model in (make(), make(width=12)):
        felt = model.feel(batch)
        assert felt.shape == (6, 16)
        state = model.understand(batch)
        for row in range(6):
            _, last = both_ways(embedded(model, *row_of(batch.context, row)), model.encoder.cell)
            matched = felt[row] if model.config.width == 16 else model.match.weight @ felt[row]
            assert torch.allclose(state.moving.hidden[row], (matched + last) / 2, atol=1e-5)
            assert not state.moving.fed[row].any()


@torch.no_grad()
def test_the_likelihood_is_that_of_equations_3_to_5(model, batch):
    scores = model.score(batch)
    assert scores.shape == (6,)
    for row in range(6):
        logprobs, (gold, _) = logprobs_by_hand(model, batch, row), row_of(batch.reply, row)
        assert int(gold[-1]) == model.vocabulary.end
        slow = -sum(logprobs[time, token] for time, token in enumerate(gold.tolist()))
        assert scores[row].item() == pytest.approx(slow.item(), rel=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_the_emotion_s_and_the_reply_s(model, batch, smoothing):
    gold = batch.emotion.clone()
    gold[1] = ABSENT
    terms = model.objective(
        "likelihood", replace(batch, emotion=gold), Moment(), smoothing=smoothing, emotion_smoothing=smoothing
    )
    assert set(terms) == {"reply", "emotion", "emotion-accuracy"}
    believed = model.understand(batch).beliefs["emotion"]
    rows = [0, 2, 3, 4, 5]
    slow = sum((smoothing - 1) * believed[row, gold[row]] - smoothing * believed[row].mean() for row in rows)
    assert terms["emotion"].total.item() == pytest.approx(slow.item(), rel=1e-4)
    assert terms["emotion"].count == 5
    total = 0.0
    for row in range(6):
        logprobs, (words, _) = logprobs_by_hand(model, batch, row), row_of(batch.reply, row)
        own = logprobs[torch.arange(len(words)), words]
        total -= ((1 - smoothing) * own + smoothing * logprobs.mean(dim=1)).sum().item()
    assert terms["reply"].total.item() == pytest.approx(total, rel=1e-4)
    assert terms["reply"].plain.item() == pytest.approx(model.score(batch).sum().item(), rel=1e-5)
    assert terms["reply"].count == int(batch.reply.mask.sum())


# Steps


@torch.no_grad()
def test_what_was_said_last_is_fed_back(model, batch):
    start = torch.full((6,), model.vocabulary.start)
    _, state = model.step(start, model.understand(batch))
    words = torch.arange(10, 16)
    said, after = model.step(words, state)
    state.moving.fed = torch.zeros_like(state.moving.fed)
    unfed, _ = model.step(words, state)
    assert not torch.allclose(said, unfed, atol=1e-4)
    assert torch.allclose(model.words.logits(after.moving.fed), said, atol=1e-5)


@torch.no_grad()
def test_cached_steps_give_what_teacher_forcing_gives(model, batch):
    slow = step_logprobs(model, model.understand(batch), batch.reply.tokens)
    assert torch.allclose(model.score(batch), -(slow * batch.reply.mask).sum(1), rtol=1e-4)


def test_the_whole_reply_at_once_teaches_what_its_steps_would(model, batch):
    model.double()
    fast = model.likelihood(batch, Moment())["reply"].total
    slow = -(step_logprobs(model, model.understand(batch), batch.reply.tokens) * batch.reply.mask).sum()
    assert fast.item() == pytest.approx(slow.item())
    learned = dict(model.named_parameters())
    ours, theirs = (torch.autograd.grad(loss, list(learned.values()), allow_unused=True) for loss in (fast, slow))
    for name, mine, stepwise in zip(learned, ours, theirs, strict=True):
        if stepwise is None:
            assert mine is None, name
        else:
            assert torch.allclose(mine, stepwise), name


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
    assert isinstance(after, State)
    assert (state.length, after.length) == (1, 2)


def beams_are_scored_as_steps_are(model, batch):
    vocabulary = model.vocabulary
    banned = (vocabulary.pad, vocabulary.unk, vocabulary.start)
    options = Decoding(method="beam", beams=4, candidates=4, max_length=8)
    state = model.understand(batch)
    replies = decode(model, state, options, start=vocabulary.start, end=vocabulary.end, banned=banned)
    for row, actual in enumerate(replies):
        for hypothesis in actual:
            tokens = torch.tensor([hypothesis.tokens + [vocabulary.end] * hypothesis.finished])
            slow = step_logprobs(model, state.select(torch.tensor([row])), tokens)
            assert hypothesis.logprob == pytest.approx(slow.sum().item(), rel=1e-4)
    assert len({tuple(h.tokens[:1]) for actual in replies for h in actual}) > 1


@torch.no_grad()
def test_the_recurrent_state_moves_with_its_beam(model, batch):
    model.words.bias.zero_()  # else the most likely word starts every reply
    beams_are_scored_as_steps_are(model, batch)


@torch.no_grad()
def test_a_rows_score_does_not_depend_on_its_batch(model, data, pieces):
    together = model.score(collate(data, range(8), pieces.pad))
    for row in range(8):
        alone = model.score(collate(data, [row], pieces.pad))
        assert alone.item() == pytest.approx(together[row].item(), rel=1e-4)


@torch.no_grad()
def test_who_speaks_is_heard(model, pieces):
    one, two = "I don't know.", "What a day!"
    orders = [(Turn("speaker", one), Turn("listener", two)), (Turn("listener", one), Turn("speaker", two))]
    items = [Example(str(index), turns, Turn("listener", "Oh.")) for index, turns in enumerate(orders)]
    scores = model.score(collate(encode(items, pieces, EncodingConfig()), range(2), pieces.pad))
    assert abs(scores[0] - scores[1]) > 1e-4


# What is trained, and on what


def is_deaf_to_gold(model, batch):
    other = replace(batch, emotion=(batch.emotion + 1) % 32, label=torch.zeros(6, dtype=torch.long))
    for training in (True, False):
        for changed in (other, replace(batch, emotion=None, label=None, following=None)):
            actual = []
            for given in (batch, changed):
                torch.manual_seed(1)
                scores = model.train(training).score(given)
                actual.append((scores, model.understand(given).beliefs["emotion"]))
            assert all(torch.equal(mine, theirs) for mine, theirs in zip(*actual, strict=True))


@torch.no_grad()
def test_no_gold_emotion_is_seen(model, emo_prepend, batch):
    is_deaf_to_gold(model, batch)
    is_deaf_to_gold(emo_prepend, batch)


def test_all_that_a_model_has_learns_from_the_loss(model, batch):
    terms = model.train().likelihood(batch, Moment())
    sum(term.mean for term in terms.values() if term.learned).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        # Shifting all keys by a vector does not change a softmax, so their bias has no gradient.
        assert parameter.grad.abs().sum() > 0 or name.endswith("key.bias"), name


def test_the_reply_teaches_how_to_feel_and_a_situation_nothing_else(model, batch):
    def learned(term):
        model.zero_grad(set_to_none=True)
        term.total.backward()
        return {name.split(".")[0] for name, parameter in model.named_parameters() if parameter.grad is not None}

    own = {"backbone", "emotion"} if model.backbone is not None else {"words", "speakers", "emotion"}
    assert own <= learned(model.likelihood(batch, Moment())["reply"])
    alone = model.objective("situation", replace(batch, reply=None), Moment())
    assert set(alone) == {"situation", "situation-accuracy"}
    assert torch.allclose(alone["situation"].total, model.likelihood(batch, Moment())["emotion"].total)
    assert learned(alone["situation"]) == own


def test_dropout_acts_in_training_alone(make, batch):
    for choices in ({"dropout": 0.5, "emotion_dropout": 0.0}, {"dropout": 0.0, "emotion_dropout": 0.5}):
        model = make("bilstm-joint", **choices)
        calm = [model.likelihood(batch, Moment())[name].total.item() for name in ("reply", "emotion")]
        terms = model.train().likelihood(batch, Moment())
        assert terms["emotion"].total.item() != calm[1]
        assert (terms["reply"].total.item() != calm[0]) == (choices["dropout"] > 0)


@torch.no_grad()
def test_a_context_longer_than_the_backbone_reads_is_cut_for_it(make, pieces):
    model = make()
    turns = [Turn("speaker", "I don't know what to do. " * 12)]
    full = collate(encode([Example("0", tuple(turns), Turn("listener", "Oh."))], pieces, EncodingConfig()), [0], 0)
    assert full.context.tokens.shape[1] > model.backbone.longest == 38
    short = replace(full.context, tokens=full.context.tokens[:, :38], mask=full.context.mask[:, :38])
    assert torch.allclose(model.feel(full), model.feel(replace(full, context=short)), atol=1e-6)
    assert torch.isfinite(model.score(full)).all()


@torch.no_grad()
@pytest.mark.parametrize("name", ["bert-joint", "emo-prepend"])
def test_between_separators_the_first_position_is_the_start_token_even_of_a_context_that_was_cut(name, make, pieces):
    model = make(name, **({"heads": 2} if name == "emo-prepend" else {}))
    turns = (Turn("speaker", "I don't know."), Turn("listener", "What a day!"), Turn("speaker", "It was."))
    item = Example("0", turns, Turn("listener", "Oh."))
    whole, short = (
        collate(encode([item], pieces, EncodingConfig(max_context=most, separators=True)), [0], 0) for most in (36, 9)
    )
    tokens = whole.context.tokens[0].tolist()
    assert tokens == [i for turn in turns for i in (pieces.start, *pieces.encode(turn.text), pieces.end)]
    assert short.context.tokens[0].tolist() == tokens[-9:]
    assert tokens[-9] != pieces.start
    for batch, read in ((whole, tokens), (short, [pieces.start, *tokens[-8:]])):
        layers = [*model.backbone.model.outputs(torch.tensor([read]))][1:]
        firsts = [hidden[0, 0] for hidden in layers]
        slow = gathered(firsts, firsts[-1], model.emotion.attention.weight)
        felt = model.emotion(batch.context, model.backbone, model.embed)
        assert torch.allclose(felt[0], slow, atol=1e-5)
    assert short.context.tokens[0].tolist() == tokens[-9:], "the generation side reads what is there"


# The backbone


@torch.no_grad()
def test_a_fresh_model_starts_from_the_backbone_s_weights(pieces, tiny_backbone, batch):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModel.from_pretrained(tiny_backbone).eval()
    model = build("bert-joint", {"width": 16, "backbone": str(tiny_backbone)}, pieces.vocabulary).eval()
    tokens, mask = batch.context.tokens, batch.context.mask
    expected = theirs(tokens, attention_mask=mask.long()).last_hidden_state[:, 0]
    assert not torch.allclose(model.backbone.starts(tokens, mask)[:, -1], expected, atol=1e-3)
    counts = torch.randint(0, 50, (len(pieces),))
    vectors, known = torch.randn(len(pieces), 16), torch.rand(len(pieces)) < 0.5
    model.initialise(WordPrior(counts, vectors, known))
    assert torch.allclose(model.backbone.starts(tokens, mask)[:, -1], expected, atol=1e-5)
    assert torch.allclose(model.words.bias.exp(), (counts + 0.5) / (counts + 0.5).sum(), atol=1e-6)
    # The other half of the dimensions is initialized for predicting words, not for reading them.
    read = (vectors[known] / vectors[known].norm(dim=1).mean())[:, :8]
    assert torch.allclose(model.words.table[known, :8], read, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", [*JOINT, "emo-prepend"])
def test_what_is_loaded_with_all_its_layers_scores_bit_for_bit_and_needs_no_backbone(
    name, make, batch, pieces, tiny_backbone, tmp_path, monkeypatch
):
    copied = shutil.copytree(tiny_backbone, tmp_path / "backbone")
    model = make(name, backbone=str(copied), **({"heads": 2} if name == "emo-prepend" else {}))
    checkpoint.save(Checkpoint(name, model, pieces, EncodingConfig(), Decoding()), tmp_path / "best")
    shutil.rmtree(copied)

    def nowhere(name):
        raise BackboneError(name)

    monkeypatch.setattr(encoder, "find_backbone", nowhere)
    again = checkpoint.load(tmp_path / "best")
    assert again.model.config == model.config
    assert bool(model.config.architecture) == (model.backbone is not None)
    assert torch.equal(again.model.score(batch), model.score(batch))
    recognised = again.model.understand(batch).beliefs["emotion"]
    assert torch.equal(recognised, model.understand(batch).beliefs["emotion"])


@torch.no_grad()
@pytest.mark.parametrize("name", ["bert-joint", "emo-prepend"])
def test_what_lies_below_the_upper_layers_is_taken_from_the_backbone(
    name, make, batch, pieces, tiny_backbone, tmp_path, monkeypatch
):
    model = make(name, upper=1, **({"heads": 2} if name == "emo-prepend" else {}))
    lower = model.borrowed()
    assert "backbone.model.embeddings.word_embeddings.weight" in lower
    assert {key.split(".")[4] for key in lower if ".layer." in key} == {"0"}
    model.borrow()  # removes the added noise, which the backbone does not have
    checkpoint.save(Checkpoint(name, model, pieces, EncodingConfig(), Decoding()), tmp_path / "best")
    kept = set(checkpoint.read_tensors(tmp_path / "best" / "model.safetensors"))
    assert kept == set(model.state_dict()) - lower
    again = checkpoint.load(tmp_path / "best")
    assert torch.equal(again.model.score(batch), model.score(batch))

    def nowhere(name):
        raise BackboneError(f"{name} is gone")

    monkeypatch.setattr(encoder, "find_backbone", nowhere)
    with pytest.raises(BackboneError, match="is gone"):
        checkpoint.load(tmp_path / "best")


def test_a_bilstm_has_no_layers_to_borrow_and_more_than_there_are_cannot_learn(make, tiny_backbone, pieces):
    assert not make("bilstm-joint", upper=1).borrowed()
    for name in ("bert-joint", "emo-prepend"):
        with pytest.raises(ConfigError, match=f"model {name}: upper is 3, expected 1 to 2"):
            build(name, {"backbone": str(tiny_backbone), "upper": 3}, pieces.vocabulary)


def test_text_of_more_tokens_than_the_backbone_knows_is_refused(tiny_backbone, pieces):
    more = replace(pieces.vocabulary, size=5000)
    for name in ("bert-joint", "emo-prepend"):
        with pytest.raises(ConfigError, match=rf"model {name}: the text has 5,000 tokens, but the backbone knows 300"):
            build(name, {"backbone": str(tiny_backbone)}, more)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"emotion_from": "bert"}, "model bert-joint: emotion_from is 'bert', expected one of backbone, bilstm"),
        ({"width": 15}, "model bert-joint: a width of 15 does not divide into two directions"),
    ],
)
def test_choices_that_do_not_go_together_are_named(choices, message, tiny_backbone, pieces):
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        build("bert-joint", {"backbone": str(tiny_backbone), **choices}, pieces.vocabulary)


@pytest.mark.parametrize("name", ["bert-joint", "emo-prepend"])
def test_a_run_with_most_of_the_backbone_held_still(name, tiny_recipe, tiny_stage, tiny_backbone, tmp_path):
    sizes = {"heads": 2, "feed_forward": 24} if name == "emo-prepend" else {}
    optimizer = {"rate": 5e-3, "warmup": 2, "factors": {"backbone.*": 0.1}}
    optimizer["learns"] = ["words.*", "emotion.*", "encoder.*", "decoder.*", "backbone.model.encoder.layer.[1].*"]
    recipe = tiny_recipe(
        model={"name": name, "width": 16, "backbone": str(tiny_backbone), **sizes},
        text=TextConfig("backbone", backbone=str(tiny_backbone)),
        encoding=EncodingConfig(max_context=30),
        stages=[tiny_stage(examples=32, optimizers={"main": optimizer})],
        decoding=Decoding(max_length=6),
    )
    best = run.train(recipe, tmp_path / "run", quiet=True)
    bot = listenwell.load(best)
    theirs = pytest.importorskip("transformers").AutoModel.from_pretrained(tiny_backbone)
    ours, before = dict(bot.model.backbone.model.named_parameters()), dict(theirs.named_parameters())
    moved = {key for key, weight in ours.items() if not torch.equal(weight, before[key])}
    assert moved
    assert all(key.startswith("encoder.layer.1.") for key in moved)
    reply = bot.reply(["I am so happy today!"])
    assert "[" not in reply.text
    assert sum(reply.emotions.values()) == pytest.approx(1, abs=1e-4)


# The recipes

ROWS = ("bert-joint-cpu", "bilstm-joint-cpu", "bilstm-attn-joint-cpu", "emo-prepend-cpu")


@pytest.fixture(scope="module")
def recipes():
    return {name: load_recipe(name) for name in ROWS}


def test_the_rows_of_the_table_learn_from_as_much_and_speak_alike(recipes):
    def budget(recipe):
        stages = [
            (stage.name, stage.examples, sorted((name, stream.examples) for name, stream in stage.streams.items()))
            for stage in recipe.stages
        ]
        return stages, recipe.encoding, recipe.text, recipe.decoding

    first, *others = map(budget, recipes.values())
    assert all(other == first for other in others)
    assert recipes["bert-joint-cpu"].decoding.block_ngrams == 4, "three pieces are a word such as i'm"


@pytest.mark.parametrize("name", ["bert-joint-cpu", "emo-prepend-cpu"])
def test_what_learns_of_a_row_is_small_enough_to_ship(recipes, name):
    choices = dict(recipes[name].model)
    model = build(choices.pop("name"), choices, Vocabulary(30_522))
    lower = model.borrowed()
    kept = checkpoint.to_eight_bit({key: weight for key, weight in model.state_dict().items() if key not in lower})
    assert sum(weight.nbytes for weight in kept.values()) < MOST_BYTES
    talk, listen = (trained_parameters(model, stage.optimizers["main"]) for stage in recipes[name].stages)
    everything = {key for key, _ in model.named_parameters()}
    assert set(listen) == everything - lower
    assert set(talk) == {key for key in everything if not key.startswith("backbone.")}
    rates = {
        group["factor"]
        for group in OptimizerSet(model, recipes[name].stages[1].optimizers).optimizers["main"].param_groups
    }
    assert rates == {1.0, 0.1, 0.09, 0.08, 0.07, 0.06, 0.05}, "gentler the nearer to the words"


def test_a_map_between_widths_learns_in_both_stages(recipes):
    recipe = recipes["bert-joint-cpu"]
    choices = {**recipe.model, "width": 64}
    model = build(choices.pop("name"), choices, Vocabulary(30_522))
    for stage in recipe.stages:
        assert "match.weight" in trained_parameters(model, stage.optimizers["main"])


# EmoPrepend-1


@torch.no_grad()
def test_the_likeliest_emotion_stands_in_front_of_the_context(emo_prepend, batch):
    state = emo_prepend.understand(batch)
    believed = state.beliefs["emotion"]
    for row in range(6):
        felt = felt_by_hand(emo_prepend, batch, row)
        logits = emo_prepend.emotion.choice.weight @ felt + emo_prepend.emotion.choice.bias
        assert torch.allclose(believed[row], logits.log_softmax(-1), atol=1e-4)
        tokens, roles = row_of(batch.context, row)
        name = emo_prepend.names.weight[logits.argmax()] + emo_prepend.speakers.weight[ROLES.index("speaker")]
        x = torch.cat([name[None], embedded(emo_prepend, tokens, roles)]) + sinusoids(1 + len(tokens), 16)
        hidden = emo_prepend.encoder(x[None], torch.ones(1, len(x), dtype=torch.bool))
        slow = emo_prepend.decoder.remember(hidden, torch.ones(1, len(x), dtype=torch.bool))
        lone = State(fixed=slow)
        words = row_of(batch.reply, row)[0][None]
        actual = step_logprobs(emo_prepend, state.select(torch.tensor([row])), words)
        assert torch.allclose(actual, step_logprobs(emo_prepend, lone, words), atol=1e-4)


@torch.no_grad()
def test_only_the_name_of_the_emotion_heard_matters(emo_prepend, batch):
    before = emo_prepend.score(batch)
    state = set(emo_prepend.understand(batch).beliefs["emotion"].argmax(-1).tolist())
    others = [emotion for emotion in range(32) if emotion not in state]
    emo_prepend.names.weight[others] += torch.arange(16) / 4
    assert torch.equal(emo_prepend.score(batch), before)
    emo_prepend.names.weight[list(state)] += torch.arange(16) / 4
    assert not torch.allclose(emo_prepend.score(batch), before, atol=1e-3)


@torch.no_grad()
def test_cached_steps_of_emo_prepend_give_what_teacher_forcing_gives(emo_prepend, batch):
    slow = step_logprobs(emo_prepend, emo_prepend.understand(batch), batch.reply.tokens)
    assert torch.allclose(emo_prepend.score(batch), -(slow * batch.reply.mask).sum(1), rtol=1e-4)
    beams_are_scored_as_steps_are(emo_prepend, batch)


def test_the_classifier_of_emo_prepend_learns_from_its_own_loss_alone(emo_prepend, batch):
    terms = emo_prepend.likelihood(batch, Moment())
    terms["reply"].total.backward(retain_graph=True)
    learned = {name.split(".")[0] for name, parameter in emo_prepend.named_parameters() if parameter.grad is not None}
    assert learned == {"words", "speakers", "names", "encoder", "decoder"}
    terms["emotion"].total.backward()
    for name, parameter in emo_prepend.named_parameters():
        assert parameter.grad is not None, name
    alone = emo_prepend.situation(replace(batch, reply=None), Moment())["situation"]
    assert torch.allclose(alone.total, terms["emotion"].total)


@torch.no_grad()
def test_emo_prepend_may_hear_by_a_bilstm_too(make, batch):
    model = make("emo-prepend", heads=2, feed_forward=24, emotion_from="bilstm-attention")
    outputs, last = model.emotion.reader(model.embed(batch.context.tokens, batch.context.roles), batch.context.mask)
    felt = torch.stack(
        [
            gathered(list(outputs[row][batch.context.mask[row]]), last[row], model.emotion.attention.weight)
            for row in range(6)
        ]
    )
    slow = F.linear(felt, model.emotion.choice.weight, model.emotion.choice.bias).log_softmax(-1)
    assert torch.allclose(model.classify_emotion(batch), slow, atol=1e-5)


# The tokens


def test_contractions_in_word_pieces_are_written_together(pieces, tiny_backbone):
    def written(text):
        return pieces.decode(pieces.encode(text))

    for text in (
        "I don't think so, it's late.",
        "We've seen they're well, I'll go, I'm off, I'd say",
        "Say 'the' day",
    ):
        assert written(text) == text
