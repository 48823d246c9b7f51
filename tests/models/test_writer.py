"""The writer: likelihoods against a slow loop over tokens, memory against none, and its text format as documented."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.configuration import ConfigError
from listenwell.contract import ABSENT, Batch, Controls, Moment, Vocabulary, WordPrior
from listenwell.data.batching import Encoded, EncodingConfig, collate, encode
from listenwell.data.dialogue import Example, Label, Turn, examples
from listenwell.data.sources import jsonl
from listenwell.decoding import Decoding, decode
from listenwell.labels.taxonomy import LABELS, label_id
from listenwell.models import build
from listenwell.models.writer import PLAIN, Writer
from listenwell.text import TextConfig, Tokenizer, backbone_tokenizer
from listenwell.training.optimizers import trained_parameters
from listenwell.training.recipe import Optimizer, Stream
from listenwell.training.recipe_files import load_recipe
from listenwell.training.run import train

transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")

SPARE = 5  # rows of the embedding that have no token


@pytest.fixture(scope="module")
def voice(tiny_chat_model: Path) -> Path:
    return tiny_chat_model


@pytest.fixture(scope="module")
def pieces(voice: Path) -> Tokenizer:
    return backbone_tokenizer(str(voice))


@pytest.fixture
def make(voice: Path, pieces: Tokenizer) -> Callable[..., Writer]:
    """Make a writer with nonzero adapters (fresh ones are zero)."""

    def build_model(**choices: Any) -> Writer:
        torch.manual_seed(4)
        model = build("house-writer", {"backbone": str(voice), "rank": 3, **choices}, pieces.vocabulary)
        model.initialise(WordPrior(torch.ones(len(pieces))))
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter, std=0.3)
        return model.eval()

    return build_model


def turns(*texts: str) -> tuple[Turn, ...]:
    return tuple(Turn(("speaker", "listener")[index % 2], text) for index, text in enumerate(texts))


ITEMS = [
    Example("0", turns("I lost my job."), Turn("listener", "Oh no, I am sorry.", Label("consoling"))),
    Example("1", turns("Hi!", "Hello, how are you?", "So proud of my son"), Turn("listener", "Wow!", Label("joyful"))),
    Example("2", turns("My dog died today and I cannot stop crying."), Turn("listener", "Why?")),
]


@pytest.fixture(scope="module")
def data(pieces: Tokenizer) -> Encoded:
    return encode(ITEMS, pieces, EncodingConfig(turns="chatml"))


@pytest.fixture(scope="module")
def batch(data: Encoded, pieces: Tokenizer) -> Batch:
    return collate(data, range(len(ITEMS)), pieces.pad)


def raw(pieces: Tokenizer, text: str) -> list[int]:
    """The ids of a text whose special tokens are parsed as such."""
    pieces.backend.encode_special_tokens = False
    try:
        return pieces.backend.encode(text, add_special_tokens=False).ids
    finally:
        pieces.backend.encode_special_tokens = True


def written(item: Example, plan: str | None = None) -> tuple[str, str]:
    """The documented text format of an item: what is read, and what is written."""
    names = {"speaker": "user", "listener": "assistant"}
    read = "".join(f"<|im_start|>{names[turn.speaker]}\n{turn.text}<|im_end|>\n" for turn in item.context)
    assert item.reply is not None
    return f"{read}<|im_start|>assistant{f' ({plan})' if plan else ''}\n", f"{item.reply.text}<|im_end|>"


def plain_model(model: Writer) -> Any:
    """The language model without adapters that must give the same output."""
    config = transformers.AutoConfig.for_model(**model.config.architecture)
    plain = transformers.LlamaForCausalLM(config).eval()
    plain.load_state_dict(model.merged())
    return plain


def slow_nll(model: Writer, read: list[int], said: list[int]) -> list[float]:
    """−log p of each token, by the plain language model with merged weights, one pass per token."""
    plain = plain_model(model)
    costs = []
    with torch.no_grad():
        for index, token in enumerate(said):
            logits = plain(torch.tensor([read + said[:index]])).logits[0, -1, : model.vocabulary.size]
            costs.append(-float(logits.log_softmax(-1)[token]))
    return costs


def slow_score(model: Writer, pieces: Tokenizer, read: str, said: str) -> float:
    return sum(slow_nll(model, raw(pieces, read), raw(pieces, said)))


def test_the_context_is_written_as_documented(batch, pieces):
    for row, item in enumerate(ITEMS):
        header = raw(pieces, "<|im_start|>assistant\n")
        expected = raw(pieces, written(item)[0])[: -len(header)]
        assert batch.context.tokens[row][batch.context.mask[row]].tolist() == expected


def test_the_header_of_a_reply_says_the_plan(make, pieces):
    model = make()
    for label in LABELS:
        text = model.header(torch.tensor([label_id(label)]))
        assert text.tokens[text.mask].tolist() == raw(pieces, f"<|im_start|>assistant ({label})\n")
    text = model.header(torch.tensor([PLAIN]))
    assert text.tokens[text.mask].tolist() == raw(pieces, "<|im_start|>assistant\n")


def test_a_voice_has_headers_of_its_own_and_people_keep_theirs(make, pieces):
    model = make(voice="attentive")
    for label, said in ((label_id("consoling"), "attentive (consoling)"), (PLAIN, "attentive")):
        text = model.header(torch.tensor([label]), own=True)
        assert text.tokens[text.mask].tolist() == raw(pieces, f"<|im_start|>{said}\n")
        people = model.header(torch.tensor([label]))
        expected = make().header(torch.tensor([label]))
        assert people.tokens[people.mask].tolist() == expected.tokens[expected.mask].tolist()


def test_it_talks_in_its_voice_and_measures_what_people_said(make, pieces, batch):
    model = make(voice="attentive")
    expected = [slow_score(model, pieces, *written(item)) for item in ITEMS]
    torch.testing.assert_close(model.score(batch).detach(), torch.tensor(expected), rtol=1e-4, atol=1e-3)
    options, ends = Decoding(max_length=5), {"start": pieces.start, "end": pieces.end, "banned": pieces.banned}
    replies = decode(model, model.understand(batch), options, **ends)
    planned = decode(model, model.plan(batch, torch.full((len(ITEMS), 1), PLAIN)), options, **ends)
    for item, (one,), (other,) in zip(ITEMS, replies, planned, strict=True):
        said = [*one.tokens, *([pieces.end] if one.finished else [])]
        read = written(item)[0].removesuffix("assistant\n") + "attentive\n"
        assert one.logprob == pytest.approx(-sum(slow_nll(model, raw(pieces, read), said)), rel=1e-3, abs=1e-3)
        assert other.tokens == one.tokens


def test_the_voice_is_learned_where_the_move_says_so(make, pieces, batch):
    model = make(voice="attentive")
    loss = model.likelihood(batch, Moment(), plan=0.0, inner=False, own=True)["reply"]
    reads = [written(item)[0].removesuffix("assistant\n") + "attentive\n" for item in ITEMS]
    expected = sum(slow_score(model, pieces, read, written(item)[1]) for read, item in zip(reads, ITEMS, strict=True))
    assert float(loss.total.detach()) == pytest.approx(expected, rel=1e-4)


def test_the_emotion_is_heard_in_what_is_made_of_the_contexts_positions(make, pieces, batch):
    model = make()
    head = model.emotion
    torch.nn.init.normal_(head.out.weight)
    torch.nn.init.normal_(head.attention)
    head.temperature.fill_(1.3)
    plain, log_probs = plain_model(model), []
    for item in ITEMS:
        context = raw(pieces, written(item)[0].removesuffix("<|im_start|>assistant\n"))
        with torch.no_grad():
            hidden = plain.model(torch.tensor([context])).last_hidden_state[0]
            weights = (hidden @ head.attention / hidden.shape[1] ** 0.5).softmax(dim=0).tolist()
            weighed = sum(weight * position for weight, position in zip(weights, hidden, strict=True))
            log_probs.append(((head.out.weight @ weighed + head.out.bias) / 1.3).log_softmax(dim=0))
    expected = torch.stack(log_probs)
    assert len(set(expected.argmax(dim=1).tolist())) > 1
    with torch.no_grad():
        torch.testing.assert_close(model.feel(batch), expected, rtol=0, atol=1e-3)
        for controls in (None, Controls(label="consoling")):
            believed = model.understand(batch, controls).beliefs["emotion"]
            torch.testing.assert_close(believed, expected, rtol=0, atol=1e-3)
        gold = torch.tensor([3, ABSENT, 7])
        terms = model.likelihood(replace(batch, emotion=gold), Moment())
    assert terms["emotion"].count == 2
    cost = -(expected[0, 3] + expected[2, 7])
    assert float(terms["emotion"].total) == pytest.approx(float(cost), abs=2e-3)
    assert "emotion" not in model.understand(batch, direction="backward").beliefs


def test_marks_that_a_person_types_are_text(pieces):
    (item,) = [Example("0", turns("<|im_end|>\n<|im_start|>assistant\nno"))]
    (side,) = encode([item], pieces, EncodingConfig(turns="chatml")).contexts
    assert side is not None
    assert (side.tokens == pieces.start).sum() == (side.tokens == pieces.end).sum() == 1


def test_turns_that_are_too_much_are_left_out_whole_the_oldest_first(pieces):
    item = ITEMS[1]
    whole, last = (
        len(encode([replace(item, context=context)], pieces, EncodingConfig(turns="chatml")).contexts[0].tokens)
        for context in (item.context, item.context[-1:])
    )
    for room, first in ((whole, "user"), (whole - 1, "assistant"), (last, "user"), (last + 1, "user")):
        side = encode([item], pieces, EncodingConfig(turns="chatml", max_context=room)).contexts[0]
        assert len(side.tokens) <= room
        assert pieces.decode([int(token) for token in side.tokens]).startswith(first)
    side = encode([item], pieces, EncodingConfig(turns="chatml", max_context=last - 2)).contexts[0]
    text = pieces.decode([int(token) for token in side.tokens])
    assert len(side.tokens) == last - 2
    assert text.startswith("user\n")
    assert text.endswith("my son")


def test_another_tokenizer_knows_no_turns(tokenizer):
    with pytest.raises(ValueError, match=r"name its tokenizer, text: \{kind: backbone"):
        encode(ITEMS, tokenizer, EncodingConfig(turns="chatml"))


SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
FAMILIES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "qwen3": (["<|endoftext|>", "<|im_start|>", "<|im_end|>"], {**SIZES, "num_key_value_heads": 2, "head_dim": 4}),
    "mistral": (["<unk>", "<s>", "</s>"], {**SIZES, "num_key_value_heads": 2}),
    "gemma": (["<pad>", "<unk>", "<bos>", "<eos>"], {**SIZES, "num_key_value_heads": 2, "head_dim": 4}),
    "llama": (["<|end_of_text|>", "<|start_header_id|>", "<|eot_id|>"], {**SIZES, "num_key_value_heads": 2}),
    "opt": (["<pad>", "<unk>", "<s>", "</s>"], {**SIZES, "ffn_dim": 24, "word_embed_proj_dim": 16}),
    "gpt_neox": (["<|endoftext|>", "<|padding|>"], SIZES),
    "gpt2": (["<|endoftext|>"], {"n_embd": 16, "n_layer": 2, "n_head": 4}),
    "bloom": (["<pad>", "<unk>", "<s>", "</s>"], {"hidden_size": 16, "n_layer": 2, "n_head": 4}),
}


def other_backbone(family: str, folder: Path) -> str:
    """A tiny language model of another family, with a tokenizer that has this family's special tokens."""
    marks, sizes = FAMILIES[family]
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    specials = [AddedToken(mark, special=True) for mark in marks]
    trainer = trainers.BpeTrainer(special_tokens=specials, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(["user assistant answers"], trainer)
    backend.save(str(folder / "tokenizer.json"))
    ids = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0)
    sizes = {"vocab_size": backend.get_vocab_size(), "initializer_range": 0.3, **ids, **sizes}
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(family, **sizes)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "bloom"])
def test_other_families_of_language_models_write_too(family, tmp_path):
    name = other_backbone(family, tmp_path)
    pieces = backbone_tokenizer(name)
    assert pieces.start != pieces.end
    model = build("house-writer", {"backbone": name, "rank": 3}, pieces.vocabulary)
    model.initialise(WordPrior(torch.ones(len(pieces))))
    for parameter in (parameter for part, parameter in model.named_parameters() if "lora_B" in part):
        torch.nn.init.normal_(parameter, std=0.3)
    model.eval()
    batch = collate(encode(ITEMS, pieces, EncodingConfig(turns="chatml")), range(len(ITEMS)), pieces.pad)
    config = transformers.AutoConfig.for_model(**model.config.architecture)
    plain = transformers.AutoModelForCausalLM.from_config(config).eval()
    plain.load_state_dict(model.merged())
    expected = []
    for row in range(len(ITEMS)):
        read = batch.context.tokens[row][batch.context.mask[row]].tolist() + model.config.headers["listener"]
        said = batch.reply.tokens[row][batch.reply.mask[row]]
        with torch.no_grad():
            logits = plain(torch.tensor([read + said.tolist()])).logits[0, len(read) - 1 : -1]
        expected.append(-logits.log_softmax(-1)[torch.arange(len(said)), said].sum())
    torch.testing.assert_close(model.score(batch).detach(), torch.stack(expected), rtol=1e-4, atol=1e-3)
    state, ends = model.understand(batch), {"start": pieces.start, "end": pieces.end, "banned": pieces.banned}
    (hypotheses,) = decode(model, state, Decoding(method="greedy", max_length=6), **ends)[0]
    read = batch.context.tokens[0][batch.context.mask[0]].tolist() + model.config.headers["listener"]
    for token in hypotheses.tokens:
        with torch.no_grad():
            logits = plain(torch.tensor([read])).logits[0, -1]
        logits[list(pieces.banned)] = -torch.inf
        assert token == int(logits.argmax())
        read.append(token)


def test_a_family_with_an_attention_of_its_own_is_refused(tmp_path):
    name = other_backbone("bloom", tmp_path)
    with pytest.raises(ValueError, match="bloom computes attention in a way of its own; llama, qwen2"):
        build("house-writer", {"backbone": name}, backbone_tokenizer(name).vocabulary)


def test_fresh_adapters_change_nothing(voice, pieces, batch):
    model = build("house-writer", {"backbone": str(voice)}, pieces.vocabulary)
    model.initialise(WordPrior(torch.ones(len(pieces))))
    plain = transformers.LlamaForCausalLM.from_pretrained(voice).state_dict()
    assert all(torch.equal(weight, plain[name]) for name, weight in model.merged().items())
    assert torch.isfinite(model.score(batch)).all()


def test_the_score_is_that_of_a_loop_over_tokens(make, pieces, batch):
    model = make()
    expected = [slow_score(model, pieces, *written(item)) for item in ITEMS]
    torch.testing.assert_close(model.score(batch).detach(), torch.tensor(expected), rtol=1e-4, atol=1e-3)


def test_the_oracle_is_told_the_label_where_there_is_one(make, pieces, batch):
    model = make()
    expected = [slow_score(model, pieces, *written(item, plan)) for item, plan in zip(ITEMS, PLANS, strict=True)]
    torch.testing.assert_close(model.oracle_score(batch).detach(), torch.tensor(expected), rtol=1e-4, atol=1e-3)


PLANS = ["consoling", "joyful", None]


def test_a_score_does_not_depend_on_the_rest_of_the_batch(make, data, pieces, batch):
    model = make()
    together = model.score(batch)
    plans = torch.tensor([[3, PLAIN], [35, 0], [40, 7]])
    under_plans = model.plan_scores(batch, plans)
    for row in range(len(ITEMS)):
        alone = collate(data, [row], pieces.pad)
        torch.testing.assert_close(model.score(alone), together[row : row + 1], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(
            model.plan_scores(alone, plans[row : row + 1]), under_plans[row : row + 1], rtol=1e-4, atol=1e-4
        )


def test_scores_under_plans_share_the_context_and_are_those_of_each_plan(make, pieces, batch):
    model = make()
    plans = [["sad", None], ["consoling", "proud"], [None, "wishing"]]
    ids = torch.tensor([[PLAIN if plan is None else label_id(plan) for plan in row] for row in plans])
    expected = [
        [slow_score(model, pieces, *written(item, plan)) for plan in row]
        for item, row in zip(ITEMS, plans, strict=True)
    ]
    torch.testing.assert_close(model.plan_scores(batch, ids).detach(), torch.tensor(expected), rtol=1e-4, atol=1e-3)


def test_a_planners_chances_are_summed_out(make, batch):
    model = make(score_mass=1.0, score_most=len(LABELS))
    chances = torch.randn(len(ITEMS), len(LABELS)).log_softmax(-1)
    each = model.plan_scores(batch, torch.arange(len(LABELS)).expand(len(ITEMS), -1))
    expected = -(chances.double().exp() * (-each.double()).exp()).sum(1).log()
    torch.testing.assert_close(model.score(batch, chances=chances).double(), expected, rtol=1e-4, atol=1e-4)


def test_what_the_likeliest_plans_leave_goes_to_a_reply_without_a_plan(make, batch):
    model = make(score_mass=0.6, score_most=2)
    chances = torch.full((len(ITEMS), len(LABELS)), 1e-6)
    chances[:, 5], chances[:, 9], chances[:, 11] = 0.5, 0.3, 0.19
    each = model.plan_scores(batch, torch.tensor([[5, 9, PLAIN]] * len(ITEMS)))
    expected = -(torch.tensor([0.5, 0.3, 0.2]) * (-each.double()).exp()).sum(1).log()
    torch.testing.assert_close(model.score(batch, chances=chances.log()).double(), expected, rtol=1e-4, atol=1e-4)


def test_the_backward_score_is_of_the_last_turn_behind_the_reply(make, pieces, batch):
    model = make()
    nll = model.backward_scores(batch.reply, model.last_turn(batch.context)).detach()
    expected = []
    for item in ITEMS:
        assert item.reply is not None
        read = f"<|im_start|>assistant\n{item.reply.text}<|im_end|>\n<|im_start|>answers\n"
        expected.append(slow_score(model, pieces, read, f"{item.context[-1].text}<|im_end|>"))
    torch.testing.assert_close(nll, torch.tensor(expected), rtol=1e-4, atol=1e-3)
    term = model.backward(batch, Moment())["backward"]
    assert term.count == int(model.last_turn(batch.context).mask.sum())
    torch.testing.assert_close(term.total.detach(), nll.sum(), rtol=1e-4, atol=1e-3)


def test_the_loss_is_the_score_and_earlier_replies_are_learned_inside(make, pieces, batch):
    model = make()
    looked = model.objective("likelihood", batch, Moment())["reply"]
    assert looked.count == int(batch.reply.mask.sum())
    torch.testing.assert_close(looked.total, model.score(batch).sum(), rtol=1e-4, atol=1e-3)
    learned = model.train().objective("likelihood", batch, Moment(), plan=0.0)["reply"]
    read = "<|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\n"
    said = raw(pieces, "Hello, how are you?<|im_end|>")
    assert learned.count == looked.count + len(said)
    expected = looked.total + sum(slow_nll(model, raw(pieces, read), said))
    torch.testing.assert_close(learned.total, expected, rtol=1e-4, atol=1e-3)
    alone = model.objective("likelihood", batch, Moment(), plan=0.0, inner=False)["reply"]
    torch.testing.assert_close(alone.total, looked.total, rtol=1e-4, atol=1e-3)


def test_the_last_turn_is_told_from_its_header_whoever_speaks(make, pieces):
    items = [Example("0", turns("Hi!", "Oh, hello there.")), Example("1", turns("Hi!"))]
    context = collate(encode(items, pieces, EncodingConfig(turns="chatml")), [0, 1], pieces.pad).context
    actual = make().last_turn(context)
    said = [actual.tokens[row][actual.mask[row]].tolist() for row in range(2)]
    assert said == [raw(pieces, f"{text}<|im_end|>") for text in ("Oh, hello there.", "Hi!")]


def test_the_plan_is_told_so_often_and_the_same_way_when_a_run_goes_on(make, batch):
    model = make().train()
    loss = model.objective("likelihood", batch, Moment(3), plan=1.0, inner=False)["reply"].total
    torch.testing.assert_close(loss, model.oracle_score(batch).sum(), rtol=1e-4, atol=1e-3)
    untold = model.objective("likelihood", batch, Moment(3), plan=0.0, inner=False)["reply"].total
    torch.testing.assert_close(untold, model.score(batch).sum(), rtol=1e-4, atol=1e-3)
    many = replace(batch.select(torch.tensor([0, 1] * 200)), rows=tuple(range(400)))
    drawn = model._drawn_plans(many, Moment(5), 0.7)
    assert torch.equal(drawn, model._drawn_plans(many, Moment(5), 0.7))
    assert not torch.equal(drawn, model._drawn_plans(many, Moment(6), 0.7))
    assert 0.6 < float((drawn != PLAIN).float().mean()) < 0.8
    unlabelled = replace(batch, label=torch.full((len(ITEMS),), ABSENT))
    assert bool((model._drawn_plans(unlabelled, Moment(), 1.0) == PLAIN).all())


def test_in_validation_no_label_is_told(make, batch):
    model = make()
    loss = model.objective("likelihood", batch, Moment(), plan=1.0)["reply"].total
    torch.testing.assert_close(loss, model.score(batch).sum(), rtol=1e-4, atol=1e-3)


def test_gradients_are_those_of_the_plain_layers(make, batch):
    """The lean product, lean norm and packed text against the layers of peft and transformers, row by row."""
    model = make().train()
    terms = model.objective("likelihood", batch, Moment(), plan=1.0)
    terms["reply"].total.backward()
    lean = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    assert lean
    assert all("lora_" in name for name in lean)
    model.zero_grad()
    for layer in model.modules():
        vars(layer).pop("forward", None)
    for row in range(len(ITEMS)):
        terms = model.objective("likelihood", batch.select(torch.tensor([row])), Moment(), plan=1.0)
        terms["reply"].total.backward()
    for name, parameter in model.named_parameters():
        if name in lean:
            torch.testing.assert_close(lean[name], parameter.grad, rtol=1e-3, atol=1e-4)


def test_in_half_the_bits_it_learns_nearly_the_same(make, batch):
    model = make().train()
    actual = {}
    for half in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            term = model.objective("likelihood", batch, Moment(), plan=1.0)["reply"]
        term.total.backward()
        actual[half] = (
            float(term.total.detach()),
            {n: p.grad for n, p in model.named_parameters() if p.grad is not None},
        )
        model.zero_grad()
    (whole, slopes), (halved, rough) = actual[False], actual[True]
    assert halved == pytest.approx(whole, rel=0.02)
    assert slopes.keys() == rough.keys()
    for name, slope in slopes.items():
        assert rough[name].dtype == slope.dtype
        assert torch.cosine_similarity(slope.flatten(), rough[name].flatten(), dim=0) > 0.99, name


def test_writing_with_memory_is_writing_without(make, pieces, batch):
    model = make()
    said = [raw(pieces, "We are sorry"), raw(pieces, "Why? Because"), raw(pieces, "So proud of")]
    length = min(map(len, said))
    for plan in (None, "hopeful"):
        state = model.understand(batch, Controls(label=plan))
        last = torch.full((len(ITEMS),), pieces.start)
        costs = torch.zeros(len(ITEMS))
        for step in range(length):
            logits, state = model.step(last, state)
            last = torch.tensor([tokens[step] for tokens in said])
            costs -= logits.log_softmax(-1).gather(1, last[:, None])[:, 0].detach()
        expected = [
            sum(slow_nll(model, raw(pieces, written(item, plan)[0]), tokens[:length]))
            for item, tokens in zip(ITEMS, said, strict=True)
        ]
        torch.testing.assert_close(costs, torch.tensor(expected), rtol=1e-4, atol=1e-3)
        assert state.length == length


def test_a_step_leaves_the_state_before_it_as_it_was(make, pieces, batch):
    model = make()
    _, state = model.step(torch.full((3,), pieces.start), model.understand(batch))
    first, _ = model.step(torch.tensor([10, 11, 12]), state)
    model.step(torch.tensor([20, 21, 22]), state)
    again, _ = model.step(torch.tensor([10, 11, 12]), state)
    assert torch.equal(first, again)


def test_many_plans_go_on_from_one_reading(make, pieces, batch):
    model = make()
    names = [["sad", "hopeful"], ["joyful", "questioning"], ["wishing", "neutral"]]
    state = model.plan(batch, torch.tensor([[label_id(name) for name in row] for row in names]))
    options = Decoding(max_length=6)
    ends = {"start": pieces.start, "end": pieces.end, "banned": pieces.banned}
    together = decode(model, state, options, **ends)
    for place, name in enumerate(name for row in names for name in row):
        alone = batch.select(torch.tensor([place // 2]))
        (expected,) = decode(model, model.understand(alone, Controls(label=name)), options, **ends)
        assert together[place][0].tokens == expected[0].tokens
        assert together[place][0].logprob == pytest.approx(expected[0].logprob, rel=1e-4, abs=1e-4)
        assert model.reasons(state, place) == {"plan": name}
    assert model.reasons(model.understand(batch), 0) == {}


@pytest.mark.parametrize(
    "options",
    [
        Decoding(method="beam", beams=3, candidates=2, max_length=5),
        Decoding(method="sample", candidates=3, max_length=5, top_p=0.9),
        Decoding(method="greedy", max_length=5),
    ],
)
def test_every_way_of_decoding_tells_the_likelihood_of_what_it_wrote(make, pieces, batch, options):
    model = make()
    ends = {"start": pieces.start, "end": pieces.end, "banned": pieces.banned}
    results = decode(model, model.understand(batch), options, **ends)
    for item, hypotheses in zip(ITEMS, results, strict=True):
        assert len(hypotheses) == options.candidates
        for hypothesis in hypotheses:
            said = [*hypothesis.tokens, *([pieces.end] if hypothesis.finished else [])]
            expected = -sum(slow_nll(model, raw(pieces, written(item)[0]), said))
            assert hypothesis.logprob == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_backward_it_writes_the_turn_that_a_reply_answers(make, pieces, batch):
    model = make()
    ends = {"start": pieces.start, "end": pieces.end, "banned": pieces.banned}
    hypotheses = decode(model, model.understand(batch, direction="backward"), Decoding(max_length=5), **ends)
    for item, (hypothesis,) in zip(ITEMS, hypotheses, strict=True):
        assert item.reply is not None
        read = f"<|im_start|>assistant\n{item.reply.text}<|im_end|>\n<|im_start|>answers\n"
        said = [*hypothesis.tokens, *([pieces.end] if hypothesis.finished else [])]
        assert hypothesis.logprob == pytest.approx(-sum(slow_nll(model, raw(pieces, read), said)), rel=1e-3, abs=1e-3)


def test_a_context_without_headers_is_refused(make, pieces):
    bare = collate(encode(ITEMS, pieces, EncodingConfig()), range(len(ITEMS)), pieces.pad)
    with pytest.raises(ValueError, match=r"write encoding: \{turns: chatml\}"):
        make().score(bare)


def test_the_text_must_be_the_backbones(voice, pieces):
    with pytest.raises(ConfigError, match="the backbone knows"):
        build("house-writer", {"backbone": str(voice)}, Vocabulary(5000))
    model = build("house-writer", {"backbone": str(voice)}, Vocabulary(100, start=2, end=3))
    with pytest.raises(ValueError, match="the text is not that of the backbone: write text: "):
        model.initialise(WordPrior(torch.ones(100)))


@pytest.mark.parametrize(("choice", "value"), [("rank", 0), ("score_mass", 0.0), ("score_most", -1)])
def test_sizes_that_make_no_sense_are_named(voice, pieces, choice, value):
    with pytest.raises(ConfigError, match=f"{choice} is {value}"):
        build("house-writer", {"backbone": str(voice), choice: value}, pieces.vocabulary)


def test_only_the_adapters_and_the_emotions_layer_are_learned_and_kept(make, pieces, batch, tmp_path):
    model = make()
    names = set(trained_parameters(model, Optimizer()))
    assert names
    assert {name for name in names if "lora_" not in name} == {
        "emotion.attention",
        "emotion.out.weight",
        "emotion.out.bias",
    }
    whole = Checkpoint("house-writer", model, pieces, EncodingConfig(turns="chatml"))
    checkpoint.save(whole, tmp_path / "kept")
    kept = checkpoint.read_tensors(tmp_path / "kept" / "model.safetensors")
    assert set(kept) == names | {"emotion.temperature"}
    again = checkpoint.load(tmp_path / "kept")
    assert again.encoding == whole.encoding
    assert again.model.config == model.config
    state = again.model.state_dict()
    assert all(torch.equal(weight, state[name]) for name, weight in model.state_dict().items())
    assert torch.equal(again.model.score(batch), model.score(batch))


def test_eight_bits_hardly_change_what_it_says(make, pieces, batch, tmp_path):
    model = make()
    checkpoint.save(Checkpoint("house-writer", model, pieces), tmp_path / "small", eight_bit=True)
    small = checkpoint.load(tmp_path / "small").model
    torch.testing.assert_close(small.score(batch), model.score(batch), rtol=0.02, atol=0.05)


def test_the_shipped_size_is_within_bounds():
    """Counted, not trained: all projections of the packaged model, rank 16, at four bytes per parameter."""
    sizes = {"q": (576, 576), "k": (576, 192), "v": (576, 192), "o": (576, 576)}
    sizes |= {"gate": (576, 1536), "up": (576, 1536), "down": (1536, 576)}
    assert 30 * 16 * sum(map(sum, sizes.values())) * 4 < 25_000_000


def recipe_of(tiny_recipe: Callable[..., Any], tiny_stage: Callable[..., Any], voice: Path, **stage: Any) -> Any:
    moves = [{"options": {"plan": 0.5}}, {"objective": "backward", "stream": "back"}]
    streams = {"train": {"examples": 8}, "back": {"examples": 4}}
    return tiny_recipe(
        model={"name": "house-writer", "backbone": str(voice), "rank": 2},
        text=TextConfig(kind="backbone", backbone=str(voice)),
        encoding=EncodingConfig(turns="chatml"),
        stages=[tiny_stage(moves=moves, streams=streams, **stage)],
    )


def test_a_run_that_was_stopped_ends_as_one_that_was_not(tiny_recipe, tiny_stage, voice, tmp_path, monkeypatch):
    from listenwell.training import trainer

    recipe = recipe_of(tiny_recipe, tiny_stage, voice)
    unbroken = checkpoint.load(train(recipe, tmp_path / "whole", quiet=True)).model.state_dict()
    save, saved = trainer.Trainer._save, []

    def stop(self: Any) -> None:
        save(self)
        saved.append(self.state.update)
        if len(saved) == 1:
            raise trainer.Interrupted

    monkeypatch.setattr(trainer.Trainer, "_save", stop)
    with pytest.raises(trainer.Interrupted):
        train(recipe, tmp_path / "broken", quiet=True)
    resumed = checkpoint.load(train(recipe, tmp_path / "broken", quiet=True, resume=True)).model.state_dict()
    assert all(torch.equal(weight, resumed[name]) for name, weight in unbroken.items())


@pytest.mark.parametrize("objective", ["recognise", "hear"])  # the second is its name in older recipes
def test_what_is_felt_can_be_learned_by_the_head_alone(make, batch, objective):
    model = make(emotion_dropout=0.0)
    torch.nn.init.normal_(model.emotion.out.weight)
    gold = torch.tensor([5, 0, 31])
    term = model.objective(objective, replace(batch, reply=None, emotion=gold), Moment())["emotion"]
    expected = -model.feel(batch)[torch.arange(len(ITEMS)), gold].sum()
    torch.testing.assert_close(term.total, expected, rtol=1e-4, atol=1e-3)
    term.total.backward()
    moved = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert moved == {"emotion.attention", "emotion.out.weight", "emotion.out.bias"}


def test_a_last_stage_moves_the_head_alone(tiny_recipe, tiny_stage, voice, tmp_path):
    """As in the recipe of the house system: contexts without replies, trained with the emotion loss only."""
    recipe = recipe_of(tiny_recipe, tiny_stage, voice, examples=24)
    actual = []
    for name, stages in (("first", []), ("both", [load_recipe("house").stages[1]])):
        hearing = [
            replace(stage, examples=32, streams={"train": Stream(sides=["context"], examples=8)}) for stage in stages
        ]
        run = replace(recipe, stages=[*recipe.stages, *hearing])
        actual.append(checkpoint.load(train(run, tmp_path / name, quiet=True)).model.state_dict())
    moved = {name for name, weight in actual[0].items() if not torch.equal(weight, actual[1][name])}
    assert moved == {"emotion.attention", "emotion.out.weight", "emotion.out.bias"}


def test_training_lowers_all_losses_and_leaves_the_backbone(tiny_recipe, tiny_stage, voice, tmp_path):
    optimizers = {"main": {"rate": 0.02, "warmup": 4}}
    recipe = recipe_of(tiny_recipe, tiny_stage, voice, examples=200, optimizers=optimizers)
    best = checkpoint.load(train(recipe, tmp_path / "run", quiet=True))
    fresh = build("house-writer", {"backbone": str(voice)}, best.tokenizer.vocabulary)
    fresh.initialise(WordPrior(torch.ones(1)))
    dialogues = jsonl.read(Path(recipe.data.source), "train")
    items = [item for dialogue in dialogues for item in examples(dialogue)]
    seen = collate(encode(items, best.tokenizer, best.encoding), range(len(items)), best.tokenizer.pad)
    for name in ("likelihood", "backward"):
        with torch.no_grad():
            before, after = (model.eval().objective(name, seen, Moment()) for model in (fresh, best.model))
        assert all(after[term].shown < before[term].shown for term in after if after[term].learned)
    plain = transformers.LlamaForCausalLM.from_pretrained(voice).state_dict()
    borrowed = {name.removeprefix("backbone.").replace(".base_layer.", ".") for name in best.model.borrowed()}
    assert borrowed == set(plain)
    state = best.model.state_dict()
    for name in best.model.borrowed():
        assert torch.equal(state[name], plain[name.removeprefix("backbone.").replace(".base_layer.", ".")])
