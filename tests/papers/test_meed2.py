"""MEED2: embedding sums and pooling by hand, the effect of a label, and marginalizing over labels."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.classifiers.label_cache import label_contexts
from listenwell.configuration import ConfigError
from listenwell.contract import ABSENT, Controls, Moment
from listenwell.data.batching import EncodingConfig, collate, encode
from listenwell.data.dialogue import Label, examples
from listenwell.data.sources import jsonl
from listenwell.decoding import Decoding, decode
from listenwell.labels.taxonomy import INTENTS, LABEL_ID, LABELS
from listenwell.models import build
from listenwell.models.label_sum import likeliest

SEPARATED = EncodingConfig(separators=True)
SHAPES = {
    "meed2": {"name": "meed2"},
    "narrow words": {"name": "meed2", "word_width": 6, "predictor_layers": 1, "score_most": 3},
    "plain": {"name": "meed2-plain"},
}


class FirstLetter:
    """Labels a text by its first letter."""

    def label(self, texts):
        return [Label(LABELS[ord(text[0].lower()) % len(LABELS)], "machine", 0.5) for text in texts]


@pytest.fixture
def make(tiny_model):
    return lambda name="meed2", **choices: tiny_model(name, **{"predictor_layers": 2, **choices})


@pytest.fixture(params=SHAPES, ids=str)
def model(request, make):
    return make(**SHAPES[request.param])


@pytest.fixture(scope="module")
def items(small_corpus):
    read_back = [item for dialogue in jsonl.read(small_corpus, "valid") for item in examples(dialogue)]
    return label_contexts(read_back, FirstLetter())


@pytest.fixture(scope="module")
def encoded(items, tokenizer):
    return encode(items, tokenizer, SEPARATED)


@pytest.fixture
def batch(encoded, tokenizer):
    """Six replies of different lengths."""
    return collate(encoded, range(6), tokenizer.pad)


def wave(position, column, width):
    angle = position / 10_000 ** ((column - column % 2) / width)
    return math.cos(angle) if column % 2 else math.sin(angle)


# § 4.1, the input representation


@torch.no_grad()
def test_an_embedding_is_the_sum_of_word_position_label_and_speaker(model, batch):
    tokens, roles, labels = batch.context.tokens, batch.context.roles, batch.context.labels
    for part in (model.input, model.predictor.input if model.predictor else model.input):
        actual = part.of(batch.context)
        for row, time in ((0, 0), (2, 3), (5, 1)):
            narrow = part.words.table[tokens[row, time]] * math.sqrt(part.words.table.shape[1])
            slow = part.words.widen(narrow) + part.speakers.weight[roles[row, time]]
            slow = slow + torch.tensor([wave(time, column, 16) for column in range(16)])
            if part.labels is not None:
                slow = slow + part.labels.weight[labels[row, time]]
            assert torch.allclose(actual[row, time], slow, atol=1e-5)


@torch.no_grad()
def test_a_turn_s_label_stands_at_all_its_positions_marks_and_all(items, encoded, tokenizer):
    for item, side in zip(items, encoded.contexts, strict=True):
        expected = []
        for turn in item.context:
            expected += [LABEL_ID[turn.label.name]] * (len(tokenizer.encode(turn.text)) + 2)
        assert side.labels.tolist() == expected[-SEPARATED.max_context :]
        assert side.tokens[0] == tokenizer.start or len(expected) > SEPARATED.max_context
        assert side.tokens[-1] == tokenizer.end


def test_encoder_and_decoder_share_all_tables_and_the_predictor_has_its_own(make):
    names = [name for name, _ in make().named_parameters()]
    assert [name for name in names if name.endswith((".table", "speakers.weight", "labels.weight"))] == [
        *("input.words.table", "input.speakers.weight", "input.labels.weight"),
        *("predictor.input.words.table", "predictor.input.speakers.weight", "predictor.input.labels.weight"),
    ]
    assert not any("predictor" in name or "labels" in name for name, _ in make("meed2-plain").named_parameters())


def test_the_sizes_are_the_paper_s(tokenizer):
    config = build("meed2", {}, tokenizer.vocabulary).config
    assert (config.encoder_layers, config.decoder_layers, config.predictor_layers) == (4, 4, 4)
    assert (config.width, config.heads, config.feed_forward, config.dropout) == (300, 6, 1200, 0.1)
    assert build("meed2", {"width": 12, "heads": 2}, tokenizer.vocabulary).encoder.layers[0].feed.activation is F.gelu


# § 4.2, the predictor


@torch.no_grad()
def test_the_context_is_pooled_by_attention_to_one_vector(make, batch):
    """Eqs 1 and 2, one position at a time."""
    predictor = make().predictor
    hidden = predictor.encoder(predictor.input.of(batch.context), batch.context.mask)
    actual = predictor.pool(hidden, batch.context.mask)
    for row in range(6):
        real = hidden[row][batch.context.mask[row]]
        weights = [math.exp(float(predictor.attention @ r)) for r in real]
        slow = sum(weight / sum(weights) * r for weight, r in zip(weights, real, strict=True))
        assert torch.allclose(actual[row], slow, atol=1e-5)


@torch.no_grad()
def test_a_hidden_layer_and_a_softmax_over_the_41_follow(make, batch):
    model = make()
    predictor = model.predictor
    pooled = predictor.pool(
        predictor.encoder(predictor.input.of(batch.context), batch.context.mask), batch.context.mask
    )
    hidden = F.linear(pooled, predictor.hidden.weight, predictor.hidden.bias)
    hidden = 0.5 * hidden * (1 + torch.erf(hidden / math.sqrt(2)))
    slow = (hidden @ predictor.out.weight.T + predictor.out.bias).softmax(-1)
    believed = model.understand(batch).fixed.expected.exp()
    assert believed.shape == (6, 41)
    assert torch.allclose(believed, slow, atol=1e-6)


def test_the_predictor_learns_apart_from_the_generator(make, batch):
    for objective, learned in (("response-label", {"predictor"}), ("likelihood", {"input", "encoder", "decoder"})):
        model = make().train()
        terms = model.objective(objective, batch, Moment())
        sum(term.mean for term in terms.values() if term.learned).backward()
        moved = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
        assert moved == {name for name, _ in model.named_parameters() if name.split(".")[0] in learned}


def test_the_predictor_may_start_as_the_generator_and_goes_its_own_way(make, batch):
    model = make(predictor_start="generator")
    before = model.predict(batch)
    assert list(model.on_epoch_start("replies", 0, list)) == list(model.on_epoch_start("predictor", 1, list)) == []
    assert torch.equal(model.predict(batch), before)
    assert list(model.on_epoch_start("predictor", 0, list)) == ["predictor.input.*", "predictor.encoder.*"]
    context = batch.context
    read = model.predictor.encoder(model.predictor.input.of(context), context.mask)
    assert torch.equal(read, model.encoder(model.input.of(context), context.mask))
    with torch.no_grad():
        model.predictor.input.words.table += 1
    assert not torch.equal(model.predictor.input.words.table, model.input.words.table)
    left = make()
    assert list(left.on_epoch_start("predictor", 0, list)) == []
    plain = make("meed2-plain", predictor_start="generator")
    assert list(plain.on_epoch_start("predictor", 0, list)) == []


@torch.no_grad()
def test_the_predictor_s_loss_by_hand(make, batch):
    gold = batch.label.clone()
    gold[1] = ABSENT
    model = make()
    believed = model.understand(batch).fixed.expected
    terms = model.objective("response-label", replace(batch, label=gold), Moment(), label_smoothing=0.1)
    assert set(terms) == {"response-label", "response-label-accuracy"}
    rows = [0, 2, 3, 4, 5]
    slow = sum(-0.9 * believed[row, gold[row]].item() - 0.1 * believed[row].mean().item() for row in rows)
    assert terms["response-label"].total.item() == pytest.approx(slow, rel=1e-4)
    hits = sum(int(believed[row].argmax()) == int(gold[row]) for row in rows)
    assert (terms["response-label-accuracy"].total.item(), terms["response-label-accuracy"].count) == (hits, 5)


# The label of the reply


def step_logits(model, state, targets):
    """Logits before each target (rows, time, vocabulary), step by step."""
    actual, last = [], torch.full_like(targets[:, 0], model.vocabulary.start)
    for token in targets.T:
        logits, state = model.step(last, state)
        actual.append(logits)
        last = token
    return torch.stack(actual, dim=1)


def nll_given_label(model, batch, label):
    """−log p(reply | context, label) of each row, step by step."""
    state = model.understand(batch, Controls(label=label))
    logs = step_logits(model, state, batch.reply.tokens).log_softmax(-1)
    return -(logs.gather(2, batch.reply.tokens[..., None])[..., 0] * batch.reply.mask).sum(1)


@torch.no_grad()
def test_the_label_is_in_the_embedding_of_every_position_of_the_reply(make, batch):
    model = make()
    reply, memory = batch.reply, model.remember(batch)
    shifted = reply.shifted(model.vocabulary.start)
    bare = model.input(shifted, reply.roles, torch.zeros(*shifted.shape, 41))
    seen = []
    model.decoder.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    labels = torch.tensor([3, 3, 35, 35, 40, 0])
    model.teach(reply, memory, labels)
    for row in range(6):
        for time in range(shifted.shape[1]):
            slow = bare[row, time] + model.input.labels.weight[labels[row]]
            assert torch.allclose(seen[0][row, time], slow, atol=1e-5)


@torch.no_grad()
def test_another_label_gives_other_words_at_every_step(make, batch):
    model = make()
    one, other = (
        step_logits(model, model.understand(batch, Controls(label=label)), batch.reply.tokens)
        for label in ("consoling", "questioning")
    )
    assert ((one - other).abs().amax(-1) > 1e-3).all()


@torch.no_grad()
def test_unless_one_is_asked_for_the_likeliest_label_is_taken(make, batch):
    model = make()
    state = model.understand(batch)
    assert state.fixed.label.tolist() == state.fixed.expected.argmax(-1).tolist()
    assert torch.equal(state.beliefs["label"].exp(), F.one_hot(state.fixed.label, 41).float())
    requested = model.understand(batch, Controls(label="wishing"))
    assert requested.fixed.label.tolist() == [LABEL_ID["wishing"]] * 6
    assert requested.beliefs["label"].exp()[:, LABEL_ID["wishing"]].tolist() == [1.0] * 6
    assert torch.equal(requested.fixed.expected, state.fixed.expected)
    with pytest.raises(ValueError, match="unknown label 'wihsing'; did you mean 'wishing'"):
        model.understand(batch, Controls(label="wihsing"))


@torch.no_grad()
def test_the_reasons_say_what_it_does_and_what_it_found_likeliest(make, batch):
    model = make()
    chances = model.understand(batch).fixed.expected[2].exp().tolist()
    best = sorted(range(41), key=lambda index: -chances[index])[:3]
    reasons = model.reasons(model.understand(batch), 2)
    assert reasons["does"] == LABELS[best[0]]
    assert list(reasons["likeliest"]) == [LABELS[index] for index in best]
    explanation = model.reasons(model.understand(batch, Controls(label="wishing")), 2)
    assert explanation["does"] == "wishing"
    assert explanation["probability"] == pytest.approx(chances[LABEL_ID["wishing"]], abs=1e-4)
    assert explanation["likeliest"] == reasons["likeliest"]
    plain = make("meed2-plain")
    assert plain.reasons(plain.understand(batch), 2) == {}


@torch.no_grad()
def test_cached_steps_give_what_teacher_forcing_gives(make, batch):
    for name in ("meed2", "meed2-plain"):
        model = make(name)
        state = model.understand(batch)
        hidden, _ = model.teach(batch.reply, state.fixed.memory, state.fixed.label)
        whole = F.linear(hidden, model.words.choices, model.words.bias)
        slow = step_logits(model, state, batch.reply.tokens)[batch.reply.mask]
        assert torch.allclose(whole, slow, atol=1e-4)


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
def test_beams_without_4_grams_that_come_twice_are_scored_as_the_model_scores_them(make, batch):
    model = make()
    vocabulary = model.vocabulary
    banned = (vocabulary.pad, vocabulary.unk, vocabulary.start, vocabulary.ctx)
    options = Decoding(method="beam", beams=4, candidates=4, max_length=14, min_length=10, block_ngrams=4)
    state = model.understand(batch, Controls(label="questioning"))
    replies = decode(model, state, options, start=vocabulary.start, end=vocabulary.end, banned=banned)
    for row, actual in enumerate(replies):
        for reply in actual:
            fours = [tuple(reply.tokens[start : start + 4]) for start in range(len(reply.tokens) - 3)]
            assert len(set(fours)) == len(fours)
        tokens = torch.tensor([actual[0].tokens + [vocabulary.end] * actual[0].finished])
        logs = step_logits(model, state.select(torch.tensor([row])), tokens).log_softmax(-1)
        assert actual[0].logprob == pytest.approx(logs.gather(2, tokens[..., None]).sum().item(), rel=1e-4)


@torch.no_grad()
def test_a_temperature_makes_the_predictor_less_sure_of_the_same_labels(make, batch):
    model = make()
    before = model.predict(batch)
    model.predictor.temperature.fill_(2.0)
    assert torch.allclose(model.predict(batch), (before / 2).log_softmax(dim=-1), atol=1e-6)
    model.on_epoch_start("predictor", 0, lambda: ())
    assert torch.equal(model.predict(batch), before), "it learns uncalibrated"


@torch.no_grad()
def test_a_label_is_chosen_by_its_scale_and_its_offset(make, batch):
    model = make()
    model.label_scale.copy_(torch.rand(41, generator=torch.Generator().manual_seed(1)) * 2)
    model.label_offset.copy_(torch.rand(41, generator=torch.Generator().manual_seed(2)) * 0.05)
    state = model.understand(batch)
    for row, logs in enumerate(model.predict(batch)):
        pays = [
            float(model.label_scale[label] * (logs[label].exp() - model.label_offset[label])) for label in range(41)
        ]
        assert int(state.fixed.label[row]) == max(range(41), key=pays.__getitem__)
        assert int(state.beliefs["label"][row].argmax()) == int(state.fixed.label[row])
    assert torch.equal(state.fixed.expected, model.predict(batch))


# Likelihood


def test_labels_are_taken_until_they_hold_the_mass():
    chances = torch.tensor([[0.5, 0.3, 0.15, 0.05], [0.96, 0.02, 0.01, 0.01], [0.25, 0.25, 0.25, 0.25]])
    rows, ranks, labels, logs = likeliest(chances.log(), 0.9, 3)
    assert rows.tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert ranks.tolist() == [0, 1, 2, 0, 0, 1, 2]
    assert labels[:4].tolist() == [0, 1, 2, 0]
    assert torch.allclose(logs.exp(), torch.tensor([0.5, 0.3, 0.15, 0.96, 0.25, 0.25, 0.25]))


@torch.no_grad()
@pytest.mark.parametrize(("mass", "most"), [(1.0, 41), (0.95, 8), (0.5, 41), (0.01, 8)])
def test_the_score_sums_the_label_out(make, batch, mass, most):
    model = make(score_mass=mass, score_most=most)
    with torch.no_grad():
        model.predictor.out.weight *= 20  # labels with different probabilities
    costs = torch.stack([nll_given_label(model, batch, label) for label in LABELS], dim=1)  # (batch, 41)
    believed = model.predict(batch).exp()
    scores = model.score(batch)
    for row in range(6):
        total, held = 0.0, 0.0
        for count, label in enumerate(sorted(range(41), key=lambda index: -believed[row, index].item())):
            if count == most or (count and held >= mass):
                break
            total += believed[row, label].item() * math.exp(-costs[row, label].item())
            held += believed[row, label].item()
        assert scores[row].item() == pytest.approx(-math.log(total), rel=1e-4)


@torch.no_grad()
def test_a_reply_without_a_label_weighs_in_the_score_as_it_did_in_training(make, batch):
    model = make(unconditional_share=0.2)
    summed = make().score(batch)
    memory = model.remember(batch)
    shifted = batch.reply.shifted(model.vocabulary.start)
    none = model.input(shifted, batch.reply.roles, torch.zeros(*shifted.shape, 41))
    logs = model.words.logits(model.decoder(none, memory)[0]).log_softmax(-1)
    bare = (logs.gather(2, batch.reply.tokens[..., None])[..., 0] * batch.reply.mask).sum(1)
    scores = model.score(batch)
    for row in range(6):
        both = 0.8 * math.exp(-summed[row].item()) + 0.2 * math.exp(bare[row].item())
        assert scores[row].item() == pytest.approx(-math.log(both), rel=1e-4)


def test_a_share_of_the_replies_is_learned_without_a_label_but_none_is_validated_so(make, batch):
    model = make(unconditional_share=0.5, dropout=0.0)
    seen = []
    model.teach = lambda reply, memory, label, teach=model.teach: seen.append(label) or teach(reply, memory, label)
    gold = model.gold(batch)
    model.train()
    torch.manual_seed(0)
    for _ in range(20):
        model.likelihood(batch, Moment())
    labels = torch.stack(seen)
    unlabelled = labels == ABSENT
    assert torch.equal(torch.where(unlabelled, gold, labels), gold.expand_as(labels))
    assert 0.3 < unlabelled.float().mean().item() < 0.7
    model.eval()
    model.likelihood(batch, Moment())
    assert torch.equal(seen[-1], gold)


@torch.no_grad()
def test_fewer_labels_only_ever_cost(make, batch):
    exact = make(score_mass=1.0, score_most=41).score(batch)
    assert (make(score_most=4).score(batch) >= exact).all()


@torch.no_grad()
def test_a_rows_score_does_not_depend_on_its_batch(model, encoded, tokenizer):
    together = model.score(collate(encoded, range(8), tokenizer.pad))
    for row in range(8):
        alone = model.score(collate(encoded, [row], tokenizer.pad))
        assert alone.item() == pytest.approx(together[row].item(), rel=1e-5)


@torch.no_grad()
def test_the_oracle_s_score_is_that_of_the_true_label(make, batch):
    model = make()
    gold = batch.label.clone()
    gold[1] = ABSENT
    nll = model.oracle_score(replace(batch, label=gold))
    for row in range(6):
        label = "neutral" if row == 1 else LABELS[gold[row]]
        assert nll[row].item() == pytest.approx(nll_given_label(model, batch, label)[row].item(), rel=1e-5)
    terms = model.objective("likelihood", replace(batch, label=gold), Moment())
    assert set(terms) == {"reply"}
    assert terms["reply"].total.item() == pytest.approx(nll.sum().item(), rel=1e-5)
    assert terms["reply"].count == int(batch.reply.mask.sum())


@torch.no_grad()
def test_no_gold_label_and_no_emotion_is_seen_in_use(model, batch):
    reply = replace(batch.reply, labels=(batch.reply.labels + 1) % 41)
    told_other = replace(batch, reply=reply, label=(batch.label + 1) % 41, emotion=(batch.emotion + 1) % 32)
    assert torch.equal(model.score(batch), model.score(told_other))
    assert torch.equal(model.score(batch), model.score(replace(batch, label=None, emotion=None)))
    first = torch.full((6,), model.vocabulary.start)
    assert torch.equal(
        model.step(first, model.understand(batch))[0], model.step(first, model.understand(told_other))[0]
    )


@torch.no_grad()
def test_the_labels_heard_in_the_context_change_what_is_chosen_but_not_for_the_plain_transformer(make, batch):
    other = replace(batch, context=replace(batch.context, labels=(batch.context.labels + 1) % 41))
    model, plain = make(), make("meed2-plain")
    assert not torch.allclose(model.understand(batch).fixed.expected, model.understand(other).fixed.expected)
    assert not torch.allclose(nll_given_label(model, batch, "sad"), nll_given_label(model, other, "sad"))
    assert torch.equal(plain.score(batch), plain.score(other))


# § 4.3, joint training


@torch.no_grad()
def test_trained_together_the_decoder_reads_the_expected_label(make, batch):
    model = make()
    terms = model.objective("joint", batch, Moment())
    believed = model.understand(batch).fixed.expected.exp()
    expected = torch.stack(
        [sum(p * e for p, e in zip(row, model.input.labels.weight, strict=True)) for row in believed]
    )
    reply = batch.reply
    bare = model.input(reply.shifted(model.vocabulary.start), reply.roles, torch.zeros(*reply.tokens.shape, 41))
    hidden, _ = model.decoder(bare + expected[:, None], model.remember(batch))
    logs = model.words.logits(hidden).log_softmax(-1).gather(2, reply.tokens[..., None])[..., 0]
    assert terms["reply"].total.item() == pytest.approx(-(logs * reply.mask).sum().item(), rel=1e-5)
    alone = model.objective("response-label", batch, Moment())
    assert terms["response-label"].total.item() == pytest.approx(alone["response-label"].total.item(), rel=1e-6)


def test_trained_together_the_reply_teaches_the_predictor_too(make, batch):
    model = make()
    model.objective("joint", batch, Moment())["reply"].total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


# The plain transformer


@torch.no_grad()
def test_the_plain_transformer_is_meed2_of_labels_that_say_nothing(make, batch):
    model, plain = make(), make("meed2-plain")
    model.input.labels.weight.zero_()
    weights = model.state_dict()
    plain.load_state_dict({name: weights[name] for name in plain.state_dict()})
    assert torch.allclose(plain.score(batch), nll_given_label(model, batch, "neutral"), rtol=1e-5)
    assert plain.understand(batch).beliefs == {}
    assert (model.takes_label, plain.takes_label) == (True, False)


def test_the_plain_transformer_has_no_predictor_to_train(make, batch):
    for objective in ("response-label", "joint"):
        with pytest.raises(ValueError, match="was built without labels"):
            make("meed2-plain").objective(objective, batch, Moment())
    assert set(make("meed2-plain").objective("likelihood", batch, Moment())) == {"reply"}


# Saving


@torch.no_grad()
def test_what_is_loaded_scores_bit_for_bit_as_what_was_saved(model, batch, tokenizer, tmp_path):
    name = "meed2" if model.config.labels else "meed2-plain"
    checkpoint.save(Checkpoint(name, model, tokenizer, SEPARATED, Decoding()), tmp_path / "best")
    again = checkpoint.load(tmp_path / "best")
    assert again.model.config == model.config
    assert again.encoding == SEPARATED
    assert torch.equal(again.model.score(batch), model.score(batch))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"predictor_start": "generator", "predictor_layers": 3},
            "model meed2: predictor_layers is 3 and encoder_layers 4: alike if the predictor starts as the generator",
        ),
        (
            {"unconditional_share": 1.0},
            "model meed2: unconditional_share is 1.0, expected a share of at least 0 and under 1",
        ),
        ({"score_mass": 0.0}, "model meed2: score_mass is 0.0, expected a share above 0 and at most 1"),
        ({"score_most": -1}, "model meed2: score_most is -1, expected at least 1 label, or 0 for all"),
        ({"heads": 7}, "model meed2: width 300 does not divide into 7 heads"),
    ],
)
def test_choices_that_make_no_sense_are_named(choices, message, tokenizer):
    with pytest.raises(ConfigError, match=message):
        build("meed2", choices, tokenizer.vocabulary)


def test_all_eight_intents_can_be_asked_for(make, batch):
    with torch.no_grad():
        actual = {intent: make().understand(batch, Controls(label=intent)).fixed.label[0].item() for intent in INTENTS}
    assert sorted(actual.values()) == list(range(32, 40))


def test_a_checkpoint_with_the_names_of_earlier_versions_loads(make, tokenizer, tmp_path):
    from safetensors.torch import load_file, save_file

    model = make(unconditional_share=0.2)
    model.label_scale.mul_(2)
    checkpoint.save(Checkpoint("meed2", model, tokenizer, SEPARATED, Decoding()), tmp_path / "best")
    file, config = tmp_path / "best" / "model.safetensors", tmp_path / "best" / "config.json"
    old = {"label_scale": "worth", "label_offset": "doubt"}
    save_file({old.get(name, name): weight for name, weight in load_file(file).items()}, file)
    config.write_text(config.read_text().replace('"unconditional_share"', '"untold"'))
    again = checkpoint.load(tmp_path / "best").model
    assert again.config.unconditional_share == 0.2
    assert torch.equal(again.label_scale, model.label_scale)
