"""Our BERT gives the same outputs as transformers' BERT, in inference and in training."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from listenwell.backbones.bert import Bert, BertConfig, is_plain_bert
from listenwell.backbones.encoder import PretrainedEncoder, read_architecture, stored_bert
from listenwell.backbones.locate import SHORT, carried

TOKENS = torch.tensor([[2, 17, 21, 40, 3], [2, 33, 3, 0, 0]])
MASK = TOKENS != 0
TEXTS = [
    "I lost my job today.",
    "Oh no, what happened? I am so sorry to hear that; you had been there for twelve years, hadn't you?",
    "They closed the whole office without a word of warning and I do not know how I'll tell my children about it.",
    "😔",
]
needs_minilm = pytest.mark.skipif(carried(SHORT["minilm"]) is None, reason="no installed package carries MiniLM")


@pytest.fixture
def theirs(tiny_backbone):
    return pytest.importorskip("transformers").AutoModel.from_pretrained(tiny_backbone, attn_implementation="sdpa")


@pytest.fixture
def ours(tiny_backbone):
    encoder = PretrainedEncoder(read_architecture(str(tiny_backbone)))
    encoder.load_pretrained(str(tiny_backbone))
    return encoder.model


def test_its_parameters_have_the_published_names_and_order(ours, theirs):
    assert isinstance(ours, Bert)
    theirs.pooler = None
    shapes = [(name, tuple(weight.shape)) for name, weight in theirs.state_dict().items()]
    # In the same order too: the optimizer's state, and that of a resumed run, depends on it.
    assert [(name, tuple(weight.shape)) for name, weight in ours.state_dict().items()] == shapes


def test_every_layer_says_what_theirs_says(ours, theirs):
    with torch.inference_mode():
        expected = theirs.eval()(input_ids=TOKENS, attention_mask=MASK.long(), output_hidden_states=True).hidden_states
        for one, other in zip(ours.eval().outputs(TOKENS, MASK), expected, strict=True):
            torch.testing.assert_close(one[MASK], other[MASK], atol=1e-5, rtol=1e-5)


def test_the_second_of_two_texts_and_what_is_added_are_read_as_theirs(ours, theirs):
    segments, added = torch.tensor([[0, 0, 0, 1, 1]] * 2), torch.randn(2, 5, 16)
    words = theirs.get_input_embeddings()(TOKENS) + added
    with torch.inference_mode():
        pairs = theirs.eval()(input_ids=TOKENS, token_type_ids=segments).last_hidden_state
        more = theirs(inputs_embeds=words).last_hidden_state
        torch.testing.assert_close(ours.eval()(TOKENS, segments=segments), pairs, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours(TOKENS, added=added), more, atol=1e-5, rtol=1e-5)


def test_it_learns_as_theirs_does(ours, theirs):
    """The same noise drops the same units, so all gradients are equal."""

    def gradients(model, forward):
        model.train().zero_grad()
        torch.manual_seed(7)
        forward(model)[MASK].square().sum().backward()
        return {name: weight.grad for name, weight in model.named_parameters() if "pooler" not in name}

    expected = gradients(theirs, lambda m: m(input_ids=TOKENS, attention_mask=MASK.long()).last_hidden_state)
    found = gradients(ours, lambda m: m(TOKENS, MASK))
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-4, rtol=1e-4)


def test_before_it_learns_it_is_as_random_as_theirs():
    torch.manual_seed(0)
    bert = Bert(BertConfig(vocab_size=500, hidden_size=64, num_hidden_layers=1, num_attention_heads=4))
    for name, weight in bert.named_parameters():
        if weight.ndim > 1:
            assert float(weight.detach().std()) == pytest.approx(0.02, rel=0.25)
        else:
            assert bool((weight == ("LayerNorm.weight" in name)).all())
    assert not bert.embeddings.word_embeddings.weight[0].any()


@pytest.mark.parametrize(
    "more", [{"model_type": "roberta"}, {"hidden_act": "gelu_new"}, {"is_decoder": True}, {"model_type": None}]
)
def test_what_is_not_plain_bert_is_left_to_transformers(more):
    assert is_plain_bert({"model_type": "bert"})
    assert not is_plain_bert({"model_type": "bert", **more})


def test_a_file_of_a_bert_with_a_head_in_half_precision_is_read_too(tiny_backbone, tmp_path, ours):
    weights = load_file(tiny_backbone / "model.safetensors")
    published = {f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma"): w for name, w in weights.items()}
    save_file(
        {**{name: w.half() for name, w in published.items()}, "cls.bias": torch.ones(3)}, tmp_path / "model.safetensors"
    )
    stored = stored_bert(tmp_path)
    for name, weight in ours.state_dict().items():
        torch.testing.assert_close(stored[name], weight, atol=1e-3, rtol=1e-3)


@needs_minilm
def test_minilm_reads_real_texts_as_transformers_does():
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    folder = carried(SHORT["minilm"])
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    read = tokenizer.encode_batch(TEXTS)
    tokens = torch.tensor([one.ids for one in read])
    mask = torch.tensor([one.attention_mask for one in read]).bool()
    encoder = PretrainedEncoder(read_architecture("minilm")).eval()
    encoder.load_pretrained("minilm")
    theirs = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
    with torch.inference_mode():
        expected = theirs(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        torch.testing.assert_close(encoder(tokens, mask)[mask], expected[mask], atol=1e-5, rtol=0)


@needs_minilm
def test_a_classifier_is_read_without_transformers():
    code = (
        "import sys; from listenwell.classifiers.labeller import Labeller; Labeller.load('emotion-intent');"
        "print('transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
