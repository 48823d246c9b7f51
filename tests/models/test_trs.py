"""The plain and the multi-task transformer, against slow loops over their own step()."""

from dataclasses import replace

import pytest
import torch

from listenwell.contract import ABSENT, Controls, Moment, State, WordPrior
from listenwell.data.batching import EncodingConfig, collate, encode
from listenwell.data.dialogue import ROLES, Example, Label, Turn
from listenwell.decoding import Decoding, decode
from listenwell.labels.taxonomy import EMOTIONS

SHAPES = {
    "trs": {"name": "trs"},
    "multi-trs": {"name": "multi-trs"},
    "narrow words": {"name": "multi-trs", "word_width": 6, "decoder_layers": 1},
    "wide words, untied": {"name": "trs", "word_width": 20, "tied": False, "encoder_layers": 1},
}


@pytest.fixture(params=SHAPES, ids=str)
def model(request, tiny_model):
    return tiny_model(**SHAPES[request.param])


@pytest.fixture
def batch(encoded, tokenizer):
    """Six replies of different lengths."""
    return collate(encoded, range(6), tokenizer.pad)


def step_logprobs(model, batch, row):
    """log p of every word at each position of one row's reply (time, vocabulary), step by step, without a batch."""
    context = batch.context
    length = int(context.mask[row].sum())
    lone = replace(
        batch,
        context=replace(
            context,
            tokens=context.tokens[row : row + 1, :length],
            mask=context.mask[row : row + 1, :length],
            roles=context.roles[row : row + 1, :length],
        ),
    )
    state = model.understand(lone)
    log_probs, last = [], model.vocabulary.start
    for token in batch.reply.tokens[row][batch.reply.mask[row]].tolist():
        logits, state = model.step(torch.tensor([last]), state)
        log_probs.append(logits[0].log_softmax(dim=0))
        last = token
    return torch.stack(log_probs)


def golds(batch, row):
    return batch.reply.tokens[row][batch.reply.mask[row]]


@torch.no_grad()
def test_the_score_of_a_row_is_its_steps_summed(model, batch):
    scores = model.score(batch)
    assert scores.shape == (6,)
    for row in range(6):
        logprobs = step_logprobs(model, batch, row)
        gold = golds(batch, row)
        assert int(gold[-1]) == model.vocabulary.end
        slow = -sum(logprobs[time, token] for time, token in enumerate(gold.tolist()))
        assert scores[row].item() == pytest.approx(slow.item(), rel=1e-5)


@torch.no_grad()
def test_a_rows_score_does_not_depend_on_its_batch(model, encoded, tokenizer):
    together = model.score(collate(encoded, range(8), tokenizer.pad))
    backwards = model.score(collate(encoded, reversed(range(8)), tokenizer.pad))
    assert torch.allclose(together, backwards.flip(0), rtol=1e-5)
    for row in range(8):
        alone = model.score(collate(encoded, [row], tokenizer.pad))
        assert alone.item() == pytest.approx(together[row].item(), rel=1e-5)


@torch.no_grad()
def test_steps_are_a_distribution(model, batch):
    logits, state = model.step(torch.full((6,), model.vocabulary.start), model.understand(batch))
    assert logits.shape == (6, model.vocabulary.size)
    assert state.length == 1
    assert torch.allclose(logits.softmax(-1).sum(-1), torch.ones(6))


@torch.no_grad()
def test_who_speaks_and_in_what_order_is_heard(tiny_model, tokenizer):
    model = tiny_model("trs")
    one, two = "I don't know.", "What a day!"
    orders = [
        (Turn("speaker", one), Turn("listener", two)),
        (Turn("listener", one), Turn("speaker", two)),
        (Turn("speaker", two), Turn("listener", one)),
    ]
    items = [Example(str(index), turns, Turn("listener", "Oh.")) for index, turns in enumerate(orders)]
    scores = model.score(collate(encode(items, tokenizer, EncodingConfig()), range(3), tokenizer.pad))
    assert len({round(score, 4) for score in scores.tolist()}) == 3


@torch.no_grad()
def test_the_emotion_believed_is_a_distribution_of_32(tiny_model, batch):
    beliefs = tiny_model("multi-trs").understand(batch).beliefs["emotion"]
    assert beliefs.shape == (6, len(EMOTIONS))
    assert torch.allclose(beliefs.exp().sum(-1), torch.ones(6))
    assert tiny_model("trs").understand(batch).beliefs == {}


@torch.no_grad()
def test_the_emotion_is_read_off_the_encoding_of_ctx(tiny_model, batch):
    model = tiny_model("multi-trs")
    hidden, _ = model.encode(batch)
    assert (batch.context.tokens[:, 0] == model.vocabulary.ctx).all()
    by_hand = (hidden[:, 0] @ model.emotion.weight.T + model.emotion.bias).softmax(-1)
    assert torch.allclose(model.understand(batch).beliefs["emotion"].exp(), by_hand, atol=1e-6)


@torch.no_grad()
def test_the_emotion_is_believed_from_the_context_alone(tiny_model, batch, encoded, tokenizer):
    model = tiny_model("multi-trs")
    beliefs = model.understand(batch).beliefs["emotion"]
    scores = model.score(batch)
    changed = replace(batch, emotion=(batch.emotion + 1) % 32, label=torch.zeros(6, dtype=torch.long))
    assert torch.equal(model.understand(changed).beliefs["emotion"], beliefs)
    assert torch.equal(model.score(changed), scores)
    for change in ({"reply": None}, {"following": None}, {"emotion": None}, {"label": None}):
        assert torch.equal(model.understand(replace(batch, **change)).beliefs["emotion"], beliefs)
    other = collate(encoded, [6, 7, 8, 9, 10, 11], tokenizer.pad)
    assert torch.equal(model.understand(replace(batch, reply=other.reply)).beliefs["emotion"], beliefs)
    assert not torch.allclose(model.understand(other).beliefs["emotion"], beliefs, atol=1e-3)


@torch.no_grad()
def test_a_control_that_a_transformer_does_not_know_is_ignored(tiny_model, batch):
    model = tiny_model("multi-trs")
    plain, state = model.understand(batch), model.understand(batch, Controls(emotion="joyful", positivity=1.0))
    assert torch.equal(plain.beliefs["emotion"], state.beliefs["emotion"])


@torch.no_grad()
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_likelihood_by_hand(model, batch, smoothing):
    terms = model.objective("likelihood", batch, Moment(), smoothing=smoothing)
    plain, smoothed, count = 0.0, 0.0, 0
    for row in range(6):
        logprobs, gold = step_logprobs(model, batch, row).double(), golds(batch, row)
        nll = -logprobs[torch.arange(len(gold)), gold]
        plain += nll.sum().item()
        smoothed += ((1 - smoothing) * nll - smoothing * logprobs.mean(dim=1)).sum().item()
        count += len(gold)
    assert terms["reply"].count == count
    assert terms["reply"].total.item() == pytest.approx(smoothed, rel=1e-5)
    assert terms["reply"].plain.item() == pytest.approx(plain, rel=1e-5)
    assert terms["reply"].shown == pytest.approx(plain / count, rel=1e-5)


@torch.no_grad()
def test_the_emotions_terms_by_hand(tiny_model, batch):
    model = tiny_model("multi-trs")
    gold = batch.emotion.clone()
    gold[1] = gold[4] = ABSENT
    beliefs = model.understand(batch).beliefs["emotion"]
    gold[0] = beliefs[0].argmax()  # so that one is correct
    gold[2] = (beliefs[2].argmax() + 1) % 32
    terms = model.likelihood(replace(batch, emotion=gold), Moment())
    rows = [0, 2, 3, 5]
    assert terms["emotion"].count == terms["emotion-accuracy"].count == 4
    assert terms["emotion"].total.item() == pytest.approx(
        -sum(beliefs[row, gold[row]].item() for row in rows), rel=1e-5
    )
    right = sum(int(beliefs[row].argmax()) == int(gold[row]) for row in rows)
    assert terms["emotion-accuracy"].total.item() == right >= 1
    assert not terms["emotion-accuracy"].learned
    assert set(tiny_model("trs").likelihood(batch, Moment())) == {"reply"}


def test_all_that_a_model_has_learns_from_the_likelihood(model, batch):
    terms = model.train().likelihood(batch, Moment())
    sum(term.mean for term in terms.values() if term.learned).backward()
    for name, parameter in model.named_parameters():
        # Shifting all keys by a vector does not change a softmax, so half of a key-value bias has no gradient.
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@torch.no_grad()
def test_the_classifier_sees_the_context_and_the_gradient_of_the_emotion_reaches_it(tiny_model, batch):
    model = tiny_model("multi-trs")
    with torch.enable_grad():
        model.likelihood(batch, Moment())["emotion"].total.backward()
    learned = {name.split(".")[0] for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert learned == {"words", "speakers", "encoder", "emotion"}


@torch.no_grad()
def test_greedy_replies_with_the_cache_are_those_recomputed_without(model, batch):
    vocabulary = model.vocabulary
    banned = (vocabulary.pad, vocabulary.unk, vocabulary.start, vocabulary.ctx)
    options = Decoding(max_length=10)
    state = model.understand(batch)
    replies = decode(model, state, options, start=vocabulary.start, end=vocabulary.end, banned=banned)
    for row, [reply] in enumerate(replies):
        fixed = state.select(torch.tensor([row])).fixed
        tokens = [vocabulary.start]
        while len(tokens) <= 10 and tokens[-1] != vocabulary.end:
            listening = torch.full((1, len(tokens)), ROLES.index("listener"))
            hidden, _ = model.decoder(model.embed(torch.tensor([tokens]), listening), fixed)
            logits = model.words.logits(hidden[0, -1])
            logits[list(banned)] = -torch.inf
            if len(tokens) == 1:
                logits[vocabulary.end] = -torch.inf
            tokens.append(int(logits.argmax()))
        assert reply.tokens == [token for token in tokens[1:] if token != vocabulary.end]


@torch.no_grad()
def test_rows_chosen_or_repeated_midway_go_on_as_they_would_have(tiny_model, batch):
    model = tiny_model("multi-trs")
    vocabulary = model.vocabulary
    state = model.understand(batch)
    _, state = model.step(torch.full((6,), vocabulary.start), state)
    words = torch.arange(10, 16)
    whole, after = model.step(words, state)
    rows = torch.tensor([4, 1, 1])
    chosen, chosen_after = model.step(words[rows], state.select(rows))
    assert torch.allclose(chosen, whole[rows], atol=1e-5)
    assert torch.equal(chosen_after.beliefs["emotion"], after.beliefs["emotion"][rows])
    repeated, _ = model.step(words.repeat_interleave(2), state.repeat(2))
    assert torch.allclose(repeated, whole.repeat_interleave(2, dim=0), atol=1e-5)
    assert isinstance(after, State)
    assert (state.length, after.length) == (1, 2)


@torch.no_grad()
def test_a_model_starts_at_the_words_frequencies_and_from_their_vectors(tiny_model):
    model = tiny_model("trs", word_width=6)
    size = model.vocabulary.size
    counts, vectors = torch.randint(0, 100, (size,)), torch.randn(size, 6)
    known = torch.rand(size) < 0.5
    model.initialise(WordPrior(counts, vectors, known))
    assert torch.allclose(model.words.bias.exp(), (counts + 0.5) / (counts + 0.5).sum(), atol=1e-6)
    assert torch.allclose(model.words.table[known], vectors[known] / vectors[known].norm(dim=1).mean(), atol=1e-5)


@torch.no_grad()
def test_no_gold_label_of_a_context_turn_is_seen(tiny_model, tokenizer):
    turns = (Turn("speaker", "I don't know.", Label("sad")), Turn("listener", "Oh."), Turn("speaker", "Yes."))
    bare = (Turn("speaker", "I don't know."), *turns[1:])
    items = [Example("a", turns, Turn("listener", "So?")), Example("b", bare, Turn("listener", "So?"))]
    data = encode(items, tokenizer, EncodingConfig())
    one, other = tiny_model("multi-trs").score(collate(data, [0, 1], tokenizer.pad)).tolist()
    assert one == other


def test_the_emotion_s_loss_is_smoothed_and_shown_plain(tiny_model, encoded, tokenizer):
    model, batch = tiny_model(), collate(encoded, range(4), tokenizer.pad)
    believed = model.understand(batch).beliefs["emotion"]
    term = model.likelihood(batch, Moment(), emotion_smoothing=0.1)["emotion"]
    slow = sum(-0.9 * believed[row, batch.emotion[row]].item() - 0.1 * believed[row].mean().item() for row in range(4))
    assert term.total.item() == pytest.approx(slow, rel=1e-4)
    plain = -sum(believed[row, batch.emotion[row]].item() for row in range(4))
    assert term.plain.item() == pytest.approx(plain, rel=1e-4)


def test_emotion_dropout_acts_in_training_alone(tiny_model, encoded, tokenizer):
    model, batch = tiny_model(emotion_dropout=0.5), collate(encoded, range(4), tokenizer.pad)
    calm = model.understand(batch).beliefs["emotion"]
    assert torch.equal(calm, model.understand(batch).beliefs["emotion"])
    model.train()
    assert not torch.equal(model.understand(batch).beliefs["emotion"], model.understand(batch).beliefs["emotion"])


def test_the_emotion_may_be_classified_from_the_mean_of_real_positions(tiny_model, encoded, tokenizer):
    model, batch = tiny_model(emotion_from="mean"), collate(encoded, range(4), tokenizer.pad)
    hidden, mask = model.encode(batch)
    for row in range(4):
        slow = model.emotion(hidden[row][mask[row]].mean(0)).log_softmax(-1)
        assert torch.allclose(model.understand(batch).beliefs["emotion"][row], slow, atol=1e-5)


def test_a_situation_teaches_the_emotion_and_nothing_else(tiny_model, encoded, tokenizer):
    batch = collate(encoded, range(6), tokenizer.pad)
    model = tiny_model(name="multi-trs")
    alone = model.objective("situation", replace(batch, reply=None), Moment())
    both = model.objective("likelihood", batch, Moment())
    assert set(alone) == {"situation", "situation-accuracy"}
    assert torch.allclose(alone["situation"].total, both["emotion"].total)
    assert alone["situation"].count == both["emotion"].count
    alone["situation"].total.backward()
    learned = {name.split(".")[0] for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert learned == {"words", "speakers", "encoder", "emotion"}
    with pytest.raises(ValueError, match="classifies no emotion"):
        tiny_model(name="trs").objective("situation", batch, Moment())
