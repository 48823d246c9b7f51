"""The lean engine agrees with transformers, token by token, with and without padding."""

import pytest
import torch
from torch.nn import functional as F

from listenwell.backbones.llama_engine import LlamaEngine, bf16, check_supported, fp16

WORDS = 60
PROMPTS = torch.randint(0, WORDS, (3, 9), generator=torch.Generator().manual_seed(1))
LENGTHS = torch.tensor([9, 4, 2])[:, None]
MASKS = {
    "none": torch.ones(3, 9, dtype=torch.bool),
    "left": torch.arange(9) >= 9 - LENGTHS,
    "right": torch.arange(9) < LENGTHS,
}
CLOSE = {"rtol": 0, "atol": 1e-4}


def tiny(**choices):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(4)
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "max_position_embeddings": 40}
    heads = {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 8}
    options = {**sizes, **heads, "tie_word_embeddings": True, **choices}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=WORDS, initializer_range=0.3, **options))
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.data += 0.3 * torch.randn_like(parameter)
    return model.eval()


@pytest.fixture(scope="module")
def model():
    return tiny()


@pytest.fixture(scope="module")
def engine(model):
    return LlamaEngine.of(model)


def plain(model, rows):
    """transformers on each row by itself, from the start: the logits of the next token."""
    with torch.inference_mode():
        return torch.stack([model(torch.tensor([row])).logits[0, -1] for row in rows])


def real(mask):
    return [row[kept].tolist() for row, kept in zip(PROMPTS, mask, strict=True)]


@pytest.mark.parametrize("padding", MASKS)
@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"num_key_value_heads": 6, "head_dim": 4},
        {"num_key_value_heads": 1, "tie_word_embeddings": False},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}, "rms_norm_eps": 0.1},
    ],
)
def test_it_agrees_with_transformers_step_by_step(choices, padding):
    model = tiny(**choices)
    engine, rows = LlamaEngine.of(model), real(MASKS[padding])
    cache, logits = engine.prefill(PROMPTS, MASKS[padding], room=2)  # little room, so that it has to grow
    torch.testing.assert_close(logits, plain(model, rows), **CLOSE)
    for tokens in torch.randint(0, WORDS, (7, 3)):
        rows = [[*row, token] for row, token in zip(rows, tokens.tolist(), strict=True)]
        logits = engine.step(tokens, cache)
        torch.testing.assert_close(logits, plain(model, rows), **CLOSE)
        assert logits is cache.logits


@pytest.mark.parametrize("padding", MASKS)
def test_it_gives_out_what_it_makes_of_each_token_and_reads_on_from_there(model, engine, padding):
    cache, state = engine.understand(PROMPTS, MASKS[padding], room=5)
    with torch.inference_mode():
        expected = [model.model(torch.tensor([row])).last_hidden_state[0] for row in real(MASKS[padding])]
    torch.testing.assert_close(state[MASKS[padding]], torch.cat(expected), **CLOSE)
    more = torch.tensor([[3, 4], [5, 6], [7, 8]])
    engine.go_on(more, torch.ones_like(more, dtype=torch.bool), cache)
    logits = engine.step(torch.tensor([9, 10, 11]), cache)
    rows = [
        [*row, *said, index + 9]
        for index, (row, said) in enumerate(zip(real(MASKS[padding]), more.tolist(), strict=True))
    ]
    torch.testing.assert_close(logits, plain(model, rows), **CLOSE)


@pytest.mark.parametrize("padding", MASKS)
def test_rows_are_picked_and_repeated_with_all_they_remember(model, engine, padding):
    cache, _ = engine.prefill(PROMPTS, MASKS[padding])
    rows = real(MASKS[padding])
    picked = cache.repeat(2).select(torch.tensor([5, 0, 0, 2]))
    assert len(cache.positions) == 3
    for tokens in ([7, 8, 9, 10], [11, 12, 13, 14]):
        logits = engine.step(torch.tensor(tokens), picked)
    chosen = [[*rows[2], 7, 11], [*rows[0], 8, 12], [*rows[0], 9, 13], [*rows[1], 10, 14]]
    torch.testing.assert_close(logits, plain(model, chosen), **CLOSE)
    # The rows they were copied from go on unaffected.
    torch.testing.assert_close(
        engine.step(torch.tensor([1, 2, 3]), cache),
        plain(model, [[*row, token] for row, token in zip(rows, (1, 2, 3), strict=True)]),
        **CLOSE,
    )


CONTINUED = torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0], [11, 0, 0, 0]])
COUNTED = torch.tensor([[True, True, True, True], [True, True, False, False], [True, False, False, False]])


def surprise(model, row, continuation):
    """−log p, token by token."""
    total = 0.0
    for token in continuation:
        total -= plain(model, [row])[0].log_softmax(dim=0)[token].item()
        row = [*row, token]
    return total


@pytest.mark.parametrize("padding", MASKS)
def test_a_score_is_the_sum_over_the_tokens(model, engine, padding):
    cache, _ = engine.prefill(PROMPTS, MASKS[padding])
    scores = engine.score(cache, CONTINUED, COUNTED)
    expected = [
        surprise(model, row, continued[counted].tolist())
        for row, continued, counted in zip(real(MASKS[padding]), CONTINUED, COUNTED, strict=True)
    ]
    torch.testing.assert_close(scores, torch.tensor(expected), rtol=0, atol=1e-3)


def test_one_prefix_serves_many_continuations_and_stays_as_it_was(model, engine):
    cache, logits = engine.prefill(PROMPTS[:1], MASKS["none"][:1])
    scores = engine.score(cache, CONTINUED, COUNTED)
    expected = [
        surprise(model, PROMPTS[0].tolist(), row[counted].tolist())
        for row, counted in zip(CONTINUED, COUNTED, strict=True)
    ]
    torch.testing.assert_close(scores, torch.tensor(expected), rtol=0, atol=1e-3)
    assert cache.length == 9
    assert cache.logits is logits
    assert torch.equal(engine.score(cache, CONTINUED, COUNTED), scores)
    first = F.cross_entropy(logits.expand(3, -1), CONTINUED[:, 0], reduction="none")
    torch.testing.assert_close(engine.score(cache, CONTINUED[:, :1], COUNTED[:, :1]), first)


def test_rows_of_a_prefix_go_on_as_asked_and_what_is_only_read_does_not_count(model, engine):
    cache, _ = engine.understand(PROMPTS, MASKS["right"], room=0)  # it has not sampled the next token
    rows, only_read = torch.tensor([2, 0, 2]), 2
    scores = engine.score(cache, CONTINUED, COUNTED, rows, torch.arange(CONTINUED.shape[1]) >= only_read)
    before = real(MASKS["right"])
    expected = []
    for row, continued, counted in zip(rows.tolist(), CONTINUED, COUNTED, strict=True):
        continuation = continued[counted].tolist()
        expected.append(surprise(model, [*before[row], *continuation[:only_read]], continuation[only_read:]))
    torch.testing.assert_close(scores, torch.tensor(expected), rtol=0, atol=1e-3)


def test_rows_of_several_readings_go_on_side_by_side(model, engine):
    longer, _ = engine.understand(PROMPTS, MASKS["right"], room=0)
    shorter, _ = engine.understand(PROMPTS[1:, :4], MASKS["right"][1:, :4], room=0)
    chosen = [(shorter, 0), (longer, 2), (longer, 0), (shorter, 0)]
    header = torch.tensor([[5, 6]]).expand(4, -1)
    cache = engine.joined(chosen, more=3)
    engine.go_on(header, torch.ones_like(header, dtype=torch.bool), cache)
    logits = engine.step(torch.tensor([7, 8, 9, 7]), cache)
    before = real(MASKS["right"])
    expected = [[*before[1], 5, 6, 7], [*before[2], 5, 6, 8], [*before[0], 5, 6, 9], [*before[1], 5, 6, 7]]
    torch.testing.assert_close(logits, plain(model, expected), **CLOSE)
    assert longer.length == 9
    assert shorter.length == 4
    assert not engine.joined([(shorter, 0), (longer, 1)], more=1).padded  # removed positions are not padding


@pytest.mark.parametrize(("product", "near"), [(fp16, 0.05), (bf16, 0.5)])
def test_half_the_bits_are_nearly_the_same(model, product, near):
    engine = LlamaEngine.of(model, product)
    cache, logits = engine.prefill(PROMPTS, MASKS["left"])
    rows = real(MASKS["left"])
    torch.testing.assert_close(logits, plain(model, rows), rtol=0, atol=near)
    stepped = engine.step(torch.tensor([3, 4, 5]), cache)
    assert stepped.dtype == torch.float32
    assert not torch.equal(stepped, stepped.to(torch.bfloat16).float())  # the output logits are not rounded
    torch.testing.assert_close(
        stepped, plain(model, [[*row, token] for row, token in zip(rows, (3, 4, 5), strict=True)]), rtol=0, atol=near
    )


def test_where_torch_has_no_half_product_it_is_exact(model, engine, monkeypatch):
    def missing(weight, bias):
        raise RuntimeError("not for this processor")

    monkeypatch.setattr(torch.ops.quantized, "linear_prepack_fp16", missing)
    _, logits = LlamaEngine.of(model, fp16).prefill(PROMPTS, MASKS["none"])
    assert torch.equal(logits, engine.prefill(PROMPTS, MASKS["none"])[1])


def test_adapters_count_once_they_are_merged(model):
    peft = pytest.importorskip("peft")
    adapted = peft.get_peft_model(tiny(), peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter)
    adapted.eval()
    with torch.inference_mode():
        expected = adapted(PROMPTS).logits[:, -1]
    with pytest.raises(ValueError, match="adapters must be merged first"):
        check_supported({"model_type": "llama"}, adapted.state_dict())
    _, logits = LlamaEngine.of(adapted.merge_and_unload()).prefill(PROMPTS, MASKS["none"])
    torch.testing.assert_close(logits, expected, **CLOSE)
    assert not torch.allclose(expected, plain(model, PROMPTS.tolist()), **CLOSE)


def test_more_than_it_can_read_is_refused(engine):
    cache, _ = engine.prefill(PROMPTS[:1].repeat(1, 4), torch.ones(1, 36, dtype=torch.bool))
    for _ in range(4):
        engine.step(torch.tensor([1]), cache)
    with pytest.raises(ValueError, match="longer than the 40 tokens"):
        engine.step(torch.tensor([1]), cache)


@pytest.mark.parametrize(
    ("config", "weights", "message"),
    [
        ({"model_type": "gpt2"}, (), "models of the llama family, not gpt2"),
        ({"hidden_act": "gelu"}, (), "computes silu, not gelu"),
        ({"rope_parameters": {"rope_type": "llama3"}}, (), "the default way, not by llama3"),
        ({"rope_scaling": {"type": "linear", "rope_type": "linear"}}, (), "the default way, not by linear"),
        ({}, ("model.layers.0.self_attn.q_proj.bias",), r"no place for model\.layers\.0\.self_attn\.q_proj\.bias"),
        ({}, ("model.layers.0.self_attn.q_norm.weight",), r"no place for model\.layers\.0\.self_attn\.q_norm"),
    ],
)
def test_models_that_are_computed_otherwise_are_refused(config, weights, message):
    with pytest.raises(ValueError, match=message):
        check_supported({"model_type": "llama", **config}, dict.fromkeys(weights, torch.zeros(1)))
