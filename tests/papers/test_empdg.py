"""EmpDG: its emotional words, its discriminators, and adversarial training between them, against slow loops."""

import json
from dataclasses import replace

import pytest
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.configuration import ConfigError
from listenwell.contract import Controls, Moment, Sequence, WordPrior
from listenwell.data.batching import EncodingConfig, collate, encode
from listenwell.data.dialogue import Example, Turn, examples
from listenwell.data.sources import jsonl
from listenwell.labels.taxonomy import EMOTIONS
from listenwell.models import build
from listenwell.models.empdg import JUDGES, LONGEST, EmbeddedText, soft_draw, to_the_left
from listenwell.systems.bot import Bot
from listenwell.training import load_recipe, run, trainer
from listenwell.training.display import read_journal
from listenwell.training.optimizers import trained_parameters
from listenwell.training.resume import read_run_state
from listenwell.training.trainer import Trainer

SIZES = {
    "width": 16,
    "heads": 2,
    "feed_forward": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "word_width": 6,
    "judge_heads": 2,
}
FIELDS = ("tokens", "mask", "roles")
FIRST = 5
"""Updates of the tiny run below before its adversarial rounds begin."""


@pytest.fixture(scope="module")
def emotional(tokenizer):
    """A third of all words, none of them special."""
    words = torch.arange(len(tokenizer))
    return (words > tokenizer.ctx) & (words % 3 == 0)


@pytest.fixture(scope="module")
def make(tokenizer, emotional):
    """Make a model with all weights random."""

    def build_model(**choices):
        torch.manual_seed(7)
        model = build("empdg", {**SIZES, **choices}, tokenizer.vocabulary)
        model.initialise(WordPrior(torch.randint(0, 50, (len(tokenizer),)), emotional=emotional))
        for parameter in model.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
        return model.eval()

    return build_model


@pytest.fixture
def model(make):
    return make()


@pytest.fixture
def batch(encoded, tokenizer):
    """Six replies to contexts of different lengths."""
    return collate(encoded, range(6), tokenizer.pad)


@pytest.fixture(scope="module")
def answered(small_corpus, tokenizer):
    """Five replies of different lengths, each with the turn that follows it."""
    sides = ("context", "reply", "following")
    items = [item for dialogue in jsonl.read(small_corpus, "train") for item in examples(dialogue, sides=sides)]
    return collate(encode(items[:5], tokenizer, EncodingConfig()), range(5), tokenizer.pad)


def alone(side, row):
    """One row of a side, without its padding."""
    length = int(side.mask[row].sum())
    return replace(side, labels=None, **{name: getattr(side, name)[row : row + 1, :length] for name in FIELDS})


# The emotional words


def slow_words(model, context, row):
    """The emotional words of one row after CTX, one position at a time: tokens and their speakers."""
    token_roles = [(model.vocabulary.ctx, 0)]
    for token, real, role in zip(*(getattr(context, name)[row].tolist() for name in FIELDS), strict=True):
        if real and model.generator.emotional[token]:
            token_roles.append((token, role))
    return token_roles


def test_the_emotional_words_are_a_sequence_of_their_own(model, batch):
    words = model.generator.emotional_words(batch.context)
    slow = [slow_words(model, batch.context, row) for row in range(6)]
    assert words.tokens.shape[1] == max(map(len, slow))
    assert len({len(actual) for actual in slow}) > 1
    for row, actual in enumerate(slow):
        assert list(zip(words.tokens[row].tolist(), words.roles[row].tolist(), strict=True))[: len(actual)] == actual
        assert words.mask[row].tolist() == [at < len(actual) for at in range(words.mask.shape[1])]
        assert (words.tokens[row, len(actual) :] == model.vocabulary.pad).all()


def test_a_context_without_emotional_words_has_ctx_alone(model, batch, tokenizer):
    plain = torch.where(model.generator.emotional[batch.context.tokens], tokenizer.unk, batch.context.tokens)
    some = batch.context.tokens.clone()
    some[:3] = plain[:3]
    words = model.generator.emotional_words(replace(batch.context, tokens=some))
    assert words.mask[:3].sum(dim=1).tolist() == [1, 1, 1]
    assert (words.mask[3:].sum(dim=1) > 1).all()
    words = model.generator.emotional_words(replace(batch.context, tokens=plain))
    assert words.tokens.tolist() == [[model.vocabulary.ctx]] * 6
    assert words.mask.all()
    assert model.score(replace(batch, context=replace(batch.context, tokens=plain))).isfinite().all()


def test_contexts_between_separators_get_a_ctx_too(model, tokenizer):
    item = Example("a", (Turn("speaker", "I don't know."),), Turn("listener", "Oh."))
    read = collate(encode([item], tokenizer, EncodingConfig(separators=True)), [0], tokenizer.pad)
    assert model.vocabulary.ctx not in read.context.tokens
    assert model.generator.emotional_words(read.context).tokens[0, 0] == model.vocabulary.ctx


def test_places_are_packed_to_the_left_in_order():
    picked = torch.tensor([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 0, 1]], dtype=torch.bool)
    order, mask = to_the_left(picked)
    assert mask.tolist() == [[True, True, False], [False, False, False], [True, True, True]]
    assert [row[real].tolist() for row, real in zip(order, mask, strict=True)] == [[1, 3], [], [0, 1, 3]]


# The predicted emotion and the attention


def both_encodings(model, batch, row):
    """The context and its emotional words (time, width) of one row, each encoded alone."""
    generator = model.generator
    context = alone(batch.context, row)
    words = torch.tensor([slow_words(model, batch.context, row)])
    read = generator.encoder(generator.embed(context.tokens, context.roles), context.mask)
    felt = generator.emotional_encoder(
        generator.embed(words[..., 0], words[..., 1]), torch.ones(words.shape[:2], dtype=torch.bool)
    )
    return read[0], felt[0]


@torch.no_grad()
@pytest.mark.parametrize("source", ["ctx", "mean"])
def test_the_emotion_is_classified_from_both_encodings(make, batch, source):
    model = make(emotion_from=source)
    believed = model.understand(batch).beliefs["emotion"]
    assert believed.shape == (6, len(EMOTIONS))
    head = model.generator.emotion
    for row in range(6):
        both = [part[0] if source == "ctx" else part.mean(dim=0) for part in both_encodings(model, batch, row)]
        slow = head.weight[:, :16] @ both[0] + head.weight[:, 16:] @ both[1] + head.bias
        assert torch.allclose(believed[row], slow.log_softmax(-1), atol=1e-5)


def attended(attention, query, memories):
    """One position's attention (width,) over several memories, one head and position at a time, under one softmax."""
    width, heads = len(query), attention.heads
    size = width // heads
    projected = attention.query(query)
    positions = [attention.key_value(position) for memory in memories for position in memory]
    outputs = []
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        scores = torch.stack([projected[part] @ pair[:width][part] / size**0.5 for pair in positions])
        weights = scores.exp() / scores.exp().sum()
        outputs.append(sum(weight * pair[width:][part] for weight, pair in zip(weights, positions, strict=True)))
    return attention.out(torch.cat(outputs))


@torch.no_grad()
def test_the_decoder_weighs_both_memories_under_one_softmax(make, batch):
    model = make(decoder_layers=1)
    generator, state = model.generator, model.understand(batch)
    layer, start = generator.decoder.layers[0], torch.full((6,), model.vocabulary.start)
    logits, _ = model.step(start, state)
    x = generator.embed(start[:, None], torch.ones(6, 1, dtype=torch.long))
    for row in range(6):
        # At the first position, self-attention returns its own value.
        own = layer.self_attention.key_value(layer.self_norm(x[row, 0]))[16:]
        hidden = x[row, 0] + layer.self_attention.out(own)
        memories = both_encodings(model, batch, row)
        hidden = hidden + attended(layer.cross_attention, layer.cross_norm(hidden), memories)
        hidden = hidden + layer.feed(layer.feed_norm(hidden))
        slow = generator.words.logits(generator.decoder.norm(hidden))
        assert torch.allclose(logits[row], slow, atol=1e-4)


@torch.no_grad()
def test_both_memories_matter(make, batch):
    before = make().score(batch)
    for encoder in ("encoder", "emotional_encoder"):
        model = make()
        getattr(model.generator, encoder).norm.weight.data *= 2.0
        assert not torch.allclose(model.score(batch), before, rtol=1e-4)


@torch.no_grad()
def test_the_score_of_a_row_is_its_steps_summed_alone(model, batch):
    scores = model.score(batch)
    for row in range(6):
        reply = alone(batch.reply, row).tokens[0].tolist()
        state = model.understand(replace(batch, context=alone(batch.context, row)))
        slow, last = 0.0, model.vocabulary.start
        for token in reply:
            logits, state = model.step(torch.tensor([last]), state)
            slow -= logits[0].log_softmax(dim=0)[token].item()
            last = token
        assert reply[-1] == model.vocabulary.end
        assert scores[row].item() == pytest.approx(slow, rel=1e-5)


@torch.no_grad()
def test_gold_and_what_follows_have_no_influence_in_use(model, batch):
    believed, scores = model.understand(batch).beliefs["emotion"], model.score(batch)
    changed = replace(batch, emotion=(batch.emotion + 1) % 32, label=torch.zeros(6, dtype=torch.long))
    for change in (changed, replace(batch, following=None), replace(batch, emotion=None, label=None, following=None)):
        assert torch.equal(model.understand(change).beliefs["emotion"], believed)
        assert torch.equal(model.score(change), scores)
    state = model.understand(batch, Controls(emotion="joyful"))
    assert torch.equal(state.beliefs["emotion"], believed)


@torch.no_grad()
def test_the_judges_have_no_say_in_use(model, batch):
    scores = model.score(batch)
    for parameter in model.judges.parameters():
        parameter.fill_(float("nan"))
    assert torch.equal(model.score(batch), scores)


@torch.no_grad()
def test_the_likelihood_is_the_score_and_the_emotion_believed(model, batch):
    terms = model.likelihood(batch, Moment())
    believed = model.understand(batch).beliefs["emotion"]
    assert set(terms) == {"reply", "emotion", "emotion-accuracy"}
    assert terms["reply"].total.item() == pytest.approx(model.score(batch).sum().item(), rel=1e-5)
    assert terms["reply"].count == int(batch.reply.mask.sum())
    slow = -sum(believed[row, batch.emotion[row]].item() for row in range(6))
    assert terms["emotion"].total.item() == pytest.approx(slow, rel=1e-5)


def test_the_likelihood_teaches_the_whole_generator_and_no_judge(model, batch):
    terms = model.train().likelihood(batch, Moment())
    sum(term.mean for term in terms.values() if term.learned).backward()
    for name, parameter in model.named_parameters():
        if name.startswith("generator."):
            assert parameter.grad.abs().sum() > 0, name
        else:
            assert name.startswith("judges."), name
            assert parameter.grad is None, name


# Sampled replies


@torch.no_grad()
def test_a_drawn_reply_depends_on_seed_and_item(model, answered):
    state = model.understand(answered)
    one, again, other = (model.generator.draw(answered, state, seed) for seed in (3, 3, 4))
    assert torch.equal(one.tokens, again.tokens)
    assert one.tokens.shape != other.tokens.shape or not torch.equal(one.tokens, other.tokens)
    rows = torch.tensor([4, 2])
    some = model.generator.draw(replace(answered.select(rows), reply=answered.reply), state.select(rows), 3)
    for row, drawn in zip(rows.tolist(), some.tokens, strict=True):
        assert drawn[drawn != model.vocabulary.pad].tolist() == one.tokens[row][one.mask[row]].tolist()


@torch.no_grad()
def test_a_drawn_reply_has_words_alone_and_its_length_is_not_the_batchs(model, answered):
    drawn = model.generator.draw(answered, model.understand(answered), 0)
    ids = model.vocabulary
    assert not torch.isin(drawn.tokens[drawn.mask], torch.tensor([ids.pad, ids.start, ids.end, ids.ctx])).any()
    assert drawn.mask.any(dim=1).all()
    assert answered.reply.tokens.shape[1] < drawn.tokens.shape[1] <= LONGEST  # untrained, it hardly ever ends
    lengths = drawn.mask.sum(dim=1, keepdim=True)
    assert torch.equal(drawn.mask, torch.arange(drawn.mask.shape[1]) < lengths)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_the_noise_drawn_after_the_word_is_the_gumbel_noise_it_was_drawn_by(temperature):
    torch.manual_seed(0)
    draws = 40_000
    log_p = torch.tensor([1.0, -0.5, 0.3, -3.0]).log_softmax(0).expand(draws, 4)
    gumbel = -(-torch.rand(draws, 4).log()).log()
    known = ((log_p + gumbel) / temperature).softmax(dim=-1)
    words = torch.multinomial(log_p[0].exp(), draws, replacement=True)
    after = soft_draw(log_p, words, temperature)
    assert torch.equal(after.argmax(dim=1), words)
    for word in range(4):
        one, other = known[known.argmax(dim=1) == word], after[words == word]
        assert len(other) / draws == pytest.approx(log_p[0, word].exp().item(), abs=0.01)
        tolerance = 4 / len(other) ** 0.5
        assert torch.allclose(one.mean(dim=0), other.mean(dim=0), atol=tolerance)
        assert torch.allclose(one.std(dim=0), other.std(dim=0), atol=tolerance)


def test_the_soft_draw_has_the_slope_of_a_softmax_with_fixed_noise():
    torch.manual_seed(0)
    log_p = torch.randn(5, 7).log_softmax(dim=1).requires_grad_()
    weights = torch.randn(5, 7)
    soft = soft_draw(log_p, torch.tensor([0, 3, 6, 2, 2]), 0.7)
    (soft * weights).sum().backward()
    soft = soft.detach()
    for row in range(5):
        for word in range(7):
            slow = sum(
                weights[row, other] * soft[row, other] * (int(other == word) - soft[row, word]) / 0.7
                for other in range(7)
            )
            assert log_p.grad[row, word].item() == pytest.approx(slow.item(), abs=1e-5)


def test_words_that_cannot_be_drawn_do_no_harm():
    log_p = torch.tensor([[0.0, -60.0, -200.0, -1e9]], requires_grad=True)
    soft = soft_draw(log_p.log_softmax(dim=1), torch.tensor([0]))
    assert soft[0].tolist() == pytest.approx([1.0, 0.0, 0.0, 0.0], abs=1e-6)
    soft[0, 0].backward()
    assert log_p.grad.isfinite().all()


def test_judges_hear_the_word_drawn_and_the_gradient_as_if_it_were_soft(model, answered):
    torch.manual_seed(1)
    drawn = model.generator.draw(answered, model.understand(answered), 1)
    soft = torch.randn(int(drawn.mask.sum()), model.vocabulary.size).softmax(dim=1).requires_grad_()
    plain, softly = model.judges.embed(drawn), model.judges.embed_softly(drawn, soft)
    assert torch.allclose(plain.vectors, softly.vectors, atol=1e-6)
    weights = torch.randn_like(softly.vectors)
    (softly.vectors * weights).sum().backward()
    assert torch.allclose(soft.grad, weights[drawn.mask] @ model.judges.table.T * 6**0.5, atol=1e-5)


# The discriminators


@torch.no_grad()
def test_the_emotional_judge_hears_emotional_words_alone(model, answered):
    vectors = model.judges.embed(answered.reply)
    few = model.judges.only(vectors, model.generator.emotional)
    ctx = model.vocabulary.ctx
    table = model.judges.table * 6**0.5
    for row in range(5):
        said = [token for token in answered.reply.tokens[row].tolist() if model.generator.emotional[token]]
        assert few.tokens[row][few.mask[row]].tolist() == [ctx, *said]
        assert torch.allclose(few.vectors[row][few.mask[row]], table[[ctx, *said]])
    none = model.judges.only(vectors, torch.zeros_like(model.generator.emotional))
    assert none.tokens.tolist() == [[ctx]] * 5


@torch.no_grad()
def test_a_verdict_is_the_mean_of_both_turns_read_together(model, answered):
    judge = model.judges.semantic
    reply, following = model.judges.embed(answered.reply), model.judges.embed(answered.following)
    verdicts = judge(reply, following)
    assert verdicts.shape == (5,)
    for row in range(5):
        # Encoded alone, without padding.
        parts = []
        for side, recognised in enumerate((reply, following)):
            vectors = recognised.vectors[row][recognised.mask[row]]
            places = [
                [
                    (torch.cos if dim % 2 else torch.sin)(torch.tensor(at / 10_000 ** (dim // 2 * 2 / 6)))
                    for dim in range(6)
                ]
                for at in range(len(vectors))
            ]
            parts.append(vectors + torch.tensor(places) + judge.sides.weight[side])
        whole = torch.cat(parts)[None]
        hidden = judge.encoder(whole, torch.ones(whole.shape[:2], dtype=torch.bool))[0]
        slow = judge.verdict.weight[0] @ hidden.mean(dim=0) + judge.verdict.bias[0]
        assert verdicts[row].item() == pytest.approx(slow.item(), abs=1e-5)


def verdicts_by_hand(model, batch, reply):
    """Each discriminator's logits for replies without their end tokens, one row at a time."""
    actual = {judge: [] for judge in JUDGES}
    for row in range(len(batch)):
        tokens = [token for token in reply.tokens[row][reply.mask[row]].tolist() if token != model.vocabulary.end]
        following = alone(batch.following, row).tokens[0].tolist()
        for judge in JUDGES:
            sides = [tokens, following]
            if judge == "emotional":
                sides = [
                    [model.vocabulary.ctx, *(token for token in side if model.generator.emotional[token])]
                    for side in sides
                ]
            recognised = [
                EmbeddedText(
                    torch.tensor([side]), torch.ones(1, len(side)) > 0, model.judges.table[side][None] * 6**0.5
                )
                for side in sides
            ]
            actual[judge].append(getattr(model.judges, judge)(*recognised)[0])
    return {judge: torch.stack(logits) for judge, logits in actual.items()}


@torch.no_grad()
def test_the_judges_learn_to_tell_real_from_drawn(model, answered):
    terms = model.objective("discriminate", answered, Moment(step=11))
    drawn = model.generator.draw(answered, model.understand(answered), 11)
    real, generated = (verdicts_by_hand(model, answered, reply) for reply in (answered.reply, drawn))
    assert set(terms) == {f"{judge}-judge{ending}" for judge in JUDGES for ending in ("", "-accuracy")}
    for judge in JUDGES:
        chances = [*real[judge].sigmoid().tolist(), *(1 - generated[judge].sigmoid()).tolist()]
        slow = -sum(torch.tensor(chance).log().item() for chance in chances)
        term, accuracy = terms[f"{judge}-judge"], terms[f"{judge}-judge-accuracy"]
        assert term.total.item() == pytest.approx(slow, rel=1e-4)
        assert accuracy.total.item() == sum(chance > 0.5 for chance in chances)
        assert term.count == accuracy.count == 10
        assert term.learned
        assert not accuracy.learned


@torch.no_grad()
def test_the_generator_learns_to_pass_for_real(model, answered):
    terms = model.objective("adversarial", answered, Moment(step=11))
    drawn = model.generator.draw(answered, model.understand(answered), 11)
    generated = verdicts_by_hand(model, answered, drawn)
    plain = model.likelihood(answered, Moment())
    assert set(terms) == {*plain, *JUDGES}
    for name, term in plain.items():
        assert term.total.item() == pytest.approx(terms[name].total.item(), rel=1e-5)
    for judge in JUDGES:
        slow = -sum(torch.tensor(chance).log().item() for chance in generated[judge].sigmoid().tolist())
        assert terms[judge].total.item() == pytest.approx(slow, rel=1e-4)
        assert terms[judge].count == 5


@pytest.mark.parametrize("judge", JUDGES)
def test_a_judges_verdict_reaches_the_generator(model, answered, judge):
    model.objective("adversarial", answered, Moment())[judge].total.backward()
    reached = {
        name.split(".")[1]
        for name, parameter in model.named_parameters()
        if name.startswith("generator.") and parameter.grad is not None and parameter.grad.abs().sum() > 0
    }
    assert reached == {"words", "speakers", "encoder", "emotional_encoder", "decoder"}


@pytest.mark.parametrize("judge", JUDGES)
def test_a_verdict_does_not_move_what_the_judges_never_hear(model, answered, judge):
    model.objective("adversarial", answered, Moment())[judge].total.backward()
    ids, slope = model.vocabulary, model.generator.words.bias.grad
    assert not slope[[ids.pad, ids.start, ids.end, ids.ctx]].any()
    assert slope.abs().sum() > 0


def test_both_moves_hear_the_generator_as_in_use(model, answered, monkeypatch):
    """The same words in both, although the generator is trained in one of them, with dropout."""
    recognised = []
    draw = model.generator.draw
    monkeypatch.setattr(model.generator, "draw", lambda *given: recognised.append(draw(*given)) or recognised[-1])
    for objective, learner in (("discriminate", model.judges), ("adversarial", model.generator)):
        model.eval()
        learner.train()
        model.objective(objective, answered, Moment(step=3))
        assert learner.training
    assert torch.equal(recognised[0].tokens, recognised[1].tokens)


def test_steps_along_the_gradient_make_replies_pass_for_real(make, answered):
    """A generator trained only with its discriminator learns to say what that one prefers."""
    model = make(encoder_layers=1, decoder_layers=1, dropout=0.0)
    model.judges.semantic = _Likes(torch.randn(6, generator=torch.Generator().manual_seed(0)))

    @torch.no_grad()
    def unreal():
        return sum(model.adversarial(answered, Moment(-1 - seed))["semantic"].mean.item() for seed in range(5)) / 5

    before, optimizer = unreal(), torch.optim.Adam(model.generator.parameters(), 0.01)
    for step in range(12):
        model.adversarial(answered, Moment(step))["semantic"].mean.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert unreal() < 0.7 * before


class _Likes(torch.nn.Module):
    """Rates a reply as more real the further its words lie in one direction."""

    def __init__(self, direction):
        super().__init__()
        self.register_buffer("direction", direction)

    def forward(self, reply, following):
        return (reply.vectors @ self.direction * reply.mask).sum(dim=1) / reply.mask.sum(dim=1)


def test_half_the_precision_does_too(model, answered):
    with torch.autocast("cpu", torch.bfloat16):
        for objective in ("likelihood", "discriminate", "adversarial"):
            terms = model.train().objective(objective, answered, Moment())
            assert all(term.total.isfinite() for term in terms.values())
            sum(term.mean for term in terms.values() if term.learned).backward()


@pytest.mark.parametrize("objective", ["discriminate", "adversarial"])
def test_the_judges_need_to_hear_what_follows(model, answered, objective):
    some = answered.following.mask.clone()
    some[2] = False
    for following in (None, replace(answered.following, mask=some)):
        lacking = replace(answered, following=following)
        model.likelihood(lacking, Moment())
        with pytest.raises(ConfigError, match=r"an example has none: the stream needs sides: \[context, reply, follow"):
            model.objective(objective, lacking, Moment())


def test_a_reply_of_its_end_alone_can_be_judged(model, answered):
    ends = torch.full((5, 1), model.vocabulary.end)
    silent = replace(answered, reply=Sequence(ends, ends > 0, torch.ones_like(ends)))
    assert model.discriminate(silent, Moment())["semantic-judge"].total.isfinite()


# Training


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    """A few words of the shipped corpus."""
    path = tmp_path_factory.mktemp("lexicon") / "lexicon.json"
    names = {"good": "joy", "friend": "trust", "broken": "anger", "dark": "fear", "awful": "disgust", "i": "joy"}
    path.write_text(json.dumps({word: [name] for word, name in names.items()}))
    return path


@pytest.fixture(scope="module")
def recipe(tiny_recipe, tiny_stage, lexicon):
    """A few likelihood updates, then a few adversarial rounds."""
    listen = tiny_stage(name="listen", examples=32)
    listen["optimizers"] = {"main": {"rate": 5e-3, "learns": ["generator.*"]}}
    adversary = tiny_stage(
        name="adversary",
        examples=40,
        streams={"heard": {"examples": 8, "sides": ["context", "reply", "following"]}},
        moves=[
            {"objective": "discriminate", "stream": "heard", "optimizer": "judges"},
            {
                "objective": "adversarial",
                "stream": "heard",
                "optimizer": "generator",
                "weights": {"semantic": 0.1, "emotional": 0.1},
            },
        ],
        optimizers={"judges": {"learns": ["judges.*"]}, "generator": {"learns": ["generator.*"]}},
        measure="likelihood",
    )
    small = {"name": "empdg", **SIZES, "encoder_layers": 1, "decoder_layers": 1}
    return tiny_recipe(model=small, lexicon=str(lexicon), stages=[listen, adversary])


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    monkeypatch.setattr(trainer, "LOG_EVERY", 2)


def test_each_move_moves_its_own_side(recipe, tmp_path, monkeypatch):
    update, moved = Trainer._update, []

    def watched(self, stage, move, *rest):
        before = {name: parameter.detach().clone() for name, parameter in self.model.named_parameters()}
        size = update(self, stage, move, *rest)
        after = dict(self.model.named_parameters())
        sides = {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}
        moved.append((stage.name, move.objective, sides))
        modes = {name: part.training for name, part in self.model.named_children()}
        assert modes == {"generator": "generator" in sides, "judges": "judges" in sides}
        return size

    monkeypatch.setattr(Trainer, "_update", watched)
    run.train(recipe, tmp_path / "run", quiet=True)
    assert moved[:FIRST] == [("listen", "likelihood", {"generator"})] * FIRST
    one_round = [("adversary", "discriminate", {"judges"}), ("adversary", "adversarial", {"generator"})]
    assert moved[FIRST:] == one_round * ((len(moved) - FIRST) // 2)
    assert len(moved) - FIRST >= 10
    records = [record for record in read_journal(tmp_path / "run" / "log.jsonl") if record["kind"] == "train"]
    both = {"reply", "semantic", "emotional", "semantic-judge", "emotional-judge-accuracy", "rate-judges"}
    assert both <= set(records[-1])


class Stopped(BaseException):
    """Simulates a power cut: nothing catches it."""


@pytest.fixture(scope="module")
def unbroken(recipe, tmp_path_factory):
    """The folder of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    run.train(recipe, folder, quiet=True)
    return folder


@pytest.mark.parametrize("number", [FIRST + 2, FIRST + 5])
def test_a_run_stopped_amid_the_adversarial_rounds_ends_as_one_unbroken(
    recipe, unbroken, tmp_path, monkeypatch, number
):
    update = Trainer._update

    def stopping(self, *arguments):
        if self.state.update == number:
            raise Stopped
        return update(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "_update", stopping)
        with pytest.raises(Stopped):
            run.train(recipe, tmp_path / "broken", quiet=True, save_every=0.0)
    place = read_run_state(tmp_path / "broken" / "last")
    assert (place.stage, place.rounds) == (1, (number - FIRST) // 2)
    run.train(recipe, tmp_path / "broken", quiet=True, resume=True)
    for name in ("best/model.safetensors", "last/model.safetensors", "last/training.safetensors"):
        assert (tmp_path / "broken" / name).read_bytes() == (unbroken / name).read_bytes(), name


def test_a_trained_system_talks_without_the_lexicon(unbroken, lexicon):
    away = lexicon.rename(lexicon.with_name("away.json"))
    try:
        whole = checkpoint.load(unbroken / "best")
        reply = Bot(whole).reply(["I broke it, my good friend."])
    finally:
        away.rename(lexicon)
    known = {whole.tokenizer.token(index) for index in whole.model.generator.emotional.nonzero()[:, 0].tolist()}
    assert {"good", "friend", "i"} <= known <= {"good", "friend", "broken", "dark", "awful", "i"}
    assert reply.text
    assert len(reply.emotions) == 32


def test_without_a_lexicon_training_does_not_begin(recipe, tmp_path):
    with pytest.raises(ConfigError, match=r"the recipe needs a lexicon .*lexicon: lexicons/nrc_emolex_en\.json"):
        run.train(replace(recipe, lexicon=None), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


@torch.no_grad()
@pytest.mark.parametrize("eight_bit", [False, True])
def test_what_is_saved_is_loaded_bit_for_bit(model, batch, tokenizer, tmp_path, eight_bit):
    checkpoint.save(Checkpoint("empdg", model, tokenizer), tmp_path / "one", eight_bit=eight_bit)
    once = checkpoint.load(tmp_path / "one")
    assert torch.equal(once.model.generator.emotional, model.generator.emotional)
    assert once.model.config == model.config
    checkpoint.save(once, tmp_path / "two")
    again = checkpoint.load(tmp_path / "two").model
    assert torch.equal(again.score(batch), once.model.score(batch))
    if not eight_bit:
        assert torch.equal(once.model.score(batch), model.score(batch))


def test_the_shipped_recipe_fits_the_model(make):
    recipe = load_recipe("empdg")
    assert [stage.name for stage in recipe.stages] == ["talk", "listen", "adversary"]
    others = load_recipe("multi-trs").stages
    assert sum(stage.examples for stage in recipe.stages) == sum(stage.examples for stage in others)
    model = make()
    sides = {}
    for stage in recipe.stages:
        for name, optimizer in stage.optimizers.items():
            sides[stage.name, name] = {key.split(".")[0] for key in trained_parameters(model, optimizer)}
        assert all(move.objective in model.objectives for move in stage.moves)
    assert sides == {
        ("talk", "main"): {"generator"},
        ("listen", "main"): {"generator"},
        ("adversary", "judges"): {"judges"},
        ("adversary", "generator"): {"generator"},
    }
    build("empdg", {key: value for key, value in recipe.model.items() if key != "name"}, model.vocabulary)
