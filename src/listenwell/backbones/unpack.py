"""Unpacks a language model from a GGUF file into a folder in transformers' format, once, in the user's cache."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from listenwell.backbones.gguf_reading import GgufError, GgufFile, Values
from listenwell.paths import cache_folder, writable_cache

FORM = 1
"""Version of the output; increased when it changes, so that folders of an older version are made again."""

SIZES = "sizes.json"
"""How many bytes each file of a folder has, to detect a damaged one."""

SPECIAL = 3
"""GGUF's token type for tokens that are not text."""

MODULES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""The parts of a layer: names in GGUF and in transformers."""

OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


def unpacked(packed: Path, name: str) -> Path:
    """The folder unpacked from a GGUF file, from the cache or made now. Safe to call from several processes at once."""
    with packed.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    inside = Path("backbones") / f"{name.rsplit('/', 1)[-1]}-{digest[:16]}-{FORM}"
    if is_whole(cache_folder() / inside):  # possibly in a read-only cache
        return cache_folder() / inside
    folder = writable_cache() / inside
    if is_whole(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        if not is_whole(folder):  # or another process was faster
            print(f"unpacking {name} into {folder.parent} (a few seconds, once) …", file=sys.stderr, flush=True)
            _write(packed, folder)
    return folder


def is_whole(folder: Path) -> bool:
    """Whether all files are there and none is truncated."""
    try:
        sizes = json.loads((folder / SIZES).read_text(encoding="utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _write(packed: Path, folder: Path) -> None:
    """Write under a temporary name, sync and rename, so that the folder is complete or absent. Needs the lock."""
    fresh = folder.with_name(f".{folder.name}.writing")
    for stale in (fresh, folder):
        shutil.rmtree(stale, ignore_errors=True)
    fresh.mkdir()
    try:
        unpack(packed, fresh)
        for file in fresh.iterdir():
            with file.open("rb") as written:
                os.fsync(written.fileno())
        fresh.rename(folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def unpack(packed: Path, folder: Path) -> None:
    """Write config.json, model.safetensors, the tokenizer's files, and the sizes of them all."""
    file = GgufFile(packed)
    if (kind := file.metadata.get("general.architecture")) != "llama":
        raise GgufError(f"{packed}: the architecture is {kind!r}; only llama is unpacked")
    config = _config(file)
    _write_json(folder / "config.json", config)
    _tokenizer(file).save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(file))
    weights = dict(_weight(file, name, values, config) for name, values in file.tensors())
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    _write_json(folder / SIZES, {path.name: path.stat().st_size for path in sorted(folder.iterdir())})


def _config(file: GgufFile) -> dict[str, Any]:
    sizes = {key.removeprefix("llama."): value for key, value in file.metadata.items() if key.startswith("llama.")}
    if scaled := [key for key in sizes if key.startswith("rope.scaling")]:
        raise GgufError(f"{file.path}: {', '.join(scaled)}: stretched positions are not unpacked")
    try:
        heads, width = sizes["attention.head_count"], sizes["embedding_length"]
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "dtype": "float16",
            "hidden_act": "silu",
            "hidden_size": width,
            "intermediate_size": sizes["feed_forward_length"],
            "num_hidden_layers": sizes["block_count"],
            "num_attention_heads": heads,
            "num_key_value_heads": sizes.get("attention.head_count_kv", heads),
            "head_dim": sizes.get("attention.key_length", width // heads),
            "max_position_embeddings": sizes["context_length"],
            # Stored in single precision: 0.00001 comes back as 9.999999747e-06.
            "rms_norm_eps": float(f"{sizes['attention.layer_norm_rms_epsilon']:.6g}"),
            "rope_parameters": {"rope_type": "default", "rope_theta": sizes.get("rope.freq_base", 10_000.0)},
            "tie_word_embeddings": "output.weight" not in file.names,
            "vocab_size": len(file.metadata["tokenizer.ggml.tokens"]),
            **{key: index for key, index in _marks(file).items() if key != "unk_token_id"},
        }
    except KeyError as problem:
        raise GgufError(f"{file.path}: does not say {problem}") from problem


def _marks(file: GgufFile) -> dict[str, int]:
    """The ids of the start, end, padding and unknown tokens, as far as the file names them."""
    names = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    ids = {ours: file.metadata.get(f"tokenizer.ggml.{theirs}_token_id") for ours, theirs in names.items()}
    return {f"{mark}_token_id": index for mark, index in ids.items() if index is not None}


def _weight(file: GgufFile, name: str, values: Values, config: dict[str, Any]) -> tuple[str, Tensor]:
    """A tensor under its name in transformers, in half precision.

    Half precision changes a weight by at most 1/2048 of itself; its 4-bit quantization has changed it a hundred times
    as much. Single precision would take twice the disk space for nothing.
    """
    if name in OUTSIDE:
        ours = OUTSIDE[name]
    elif (matched := re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name)) and matched[2] in MODULES:
        ours = f"model.layers.{matched[1]}.{MODULES[matched[2]]}.weight"
    else:
        raise GgufError(f"{file.path}: has {name}, which the models unpacked here have not")
    if ours.endswith(("q_proj.weight", "k_proj.weight")):
        # GGUF rotates pairs of neighbouring dimensions, transformers one of the first half with one of the second.
        pairs = values.reshape(-1, config["head_dim"] // 2, 2, values.shape[-1])
        values = np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(values.shape)
    return ours, torch.from_numpy(values.astype(np.float16))


def _tokenizer(file: GgufFile) -> Tokenizer:
    """A byte-level BPE tokenizer that splits numbers into digits."""
    kind = (file.metadata.get("tokenizer.ggml.model"), file.metadata.get("tokenizer.ggml.pre"))
    if kind != ("gpt2", "smollm"):
        raise GgufError(f"{file.path}: the tokenizer is {kind[0]}, {kind[1]}; unpacked is only gpt2, smollm")
    tokens, kinds = file.metadata["tokenizer.ggml.tokens"], file.metadata["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in file.metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, its in zip(tokens, kinds, strict=True) if its == SPECIAL]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


def _tokenizer_config(file: GgufFile) -> dict[str, Any]:
    tokens = file.metadata["tokenizer.ggml.tokens"]
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    config |= {key.removesuffix("_id"): tokens[index] for key, index in _marks(file).items()}
    if "tokenizer.chat_template" in file.metadata:
        config["chat_template"] = file.metadata["tokenizer.chat_template"]
    return config


def _write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
