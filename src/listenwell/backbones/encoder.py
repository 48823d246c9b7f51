"""A pretrained encoder: built from its architecture alone, with weights loaded from its files once.

For BERT models such as MiniLM, there is our own implementation (`bert`): neither building nor loading it needs
transformers, which takes seconds to import. All other architectures come from the transformers library. A model that
contains one keeps the architecture in its config and the weights among its own, so that its checkpoint can be loaded
where the pretrained files are not available.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from listenwell.backbones.bert import Bert, BertConfig, is_plain_bert
from listenwell.backbones.locate import BackboneError, find_backbone
from listenwell.backbones.stored import StoredWeights, mapped_weights

NOT_ARCHITECTURE = ("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version")
"""Keys of a config.json that are not the architecture: its origin, and the precision it was saved in."""


def need_transformers() -> Any:
    try:
        return import_module("transformers")
    except ImportError as problem:
        raise ImportError("a pretrained encoder needs transformers: pip install 'listenwell[backbones]'") from problem


def read_architecture(name: str) -> dict[str, Any]:
    """The architecture of a backbone, from its config.json; `name` as for `find_backbone`."""
    path = find_backbone(name) / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise BackboneError(f"{path}: cannot be read as the config of a pretrained model: {problem}") from problem
    if not isinstance(config, dict) or "model_type" not in config:
        raise BackboneError(f"{path}: no model_type in it, which says how the pretrained model is built")
    return {key: value for key, value in config.items() if key not in NOT_ARCHITECTURE}


class PretrainedEncoder(nn.Module):
    """Tokens to one vector per position. Random until weights are loaded by `load_pretrained` or from a checkpoint."""

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        try:
            self.model = _build(architecture)
            config = self.model.config
            self.width: int = config.hidden_size
            self.vocabulary: int = config.vocab_size
            # RoBERTa's positions start at 2; two fewer than the table has is safe for every family.
            self.longest: int = config.max_position_embeddings - 2
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"no encoder can be made of this architecture: {problem}") from problem

    def below(self, upper: int) -> frozenset[str]:
        """The names of all weights below the upper layers: those of the embeddings and the lower layers."""
        layers = getattr(getattr(self.model, "encoder", None), "layer", None)
        if layers is None:
            raise ValueError("the layers of this architecture cannot be identified; leave upper out")
        if not 1 <= upper <= len(layers):
            raise ValueError(f"upper is {upper}, expected 1 to {len(layers)}, the layers of the backbone")
        above = tuple(f"model.encoder.layer.{index}." for index in range(len(layers) - upper, len(layers)))
        return frozenset(name for name in self.state_dict() if not name.startswith(above))

    def load_pretrained(self, name: str, only: Collection[str] | None = None) -> None:
        """Load the weights of the backbone with this architecture; only those named by `only`, if given."""
        folder = find_backbone(name)
        if only is not None and self._share(folder, only):
            return
        names = {name for name in self.model.state_dict() if only is None or f"model.{name}" in only}
        stored = stored_bert(folder) if isinstance(self.model, Bert) else None
        weights = read_by_transformers(folder) if stored is None else stored
        if missing := sorted(names - weights.keys()):
            raise BackboneError(f"{folder}: its weights lack {', '.join(missing[:3])}")
        try:
            self.model.load_state_dict({name: weights[name] for name in names}, strict=only is None)
        except RuntimeError as problem:
            raise BackboneError(f"{folder}: its weights do not fit the architecture: {problem}") from problem

    def _share(self, folder: Path, names: Collection[str]) -> bool:
        """Memory-map weights from the backbone's file without a copy; returns whether the file allows this."""
        parameters = {key.removeprefix("model."): weight for key, weight in self.named_parameters() if key in names}
        stored = mapped_weights(folder, parameters)
        if stored is None or any(stored[key].shape != weight.shape for key, weight in parameters.items()):
            return False  # then they are loaded as a copy, or an error says what is wrong
        self.model.load_state_dict(stored, strict=False, assign=True)
        return True

    def forward(
        self, tokens: Tensor, mask: Tensor, added: Tensor | None = None, segments: Tensor | None = None
    ) -> Tensor:
        """(batch, time) to (batch, time, width); every position attends to every real position.

        `added` (batch, time, width) is added to the word embeddings. `segments` (batch, time) is 0 for positions of the
        first of two texts and 1 for those of the second; a family without segment embeddings (RoBERTa) ignores it.
        """
        return deque(self._outputs(tokens, mask, added, segments), maxlen=1).pop()  # without keeping the others

    def starts(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Every layer's output at the first position: (batch, layers, width), the last layer last."""
        _, *layers = (hidden[:, 0] for hidden in self._outputs(tokens, mask, every_layer=True))
        return torch.stack(layers, dim=1)  # without the embeddings, which come first

    def _outputs(
        self,
        tokens: Tensor,
        mask: Tensor,
        added: Tensor | None = None,
        segments: Tensor | None = None,
        every_layer: bool = False,
    ) -> Iterable[Tensor]:
        """The last layer's output; with `every_layer`, preceded by those of the embeddings and all earlier layers."""
        # Without padding no mask is needed, and the kernel is faster without one.
        needed = None if bool(mask.all()) else mask
        if isinstance(self.model, Bert):
            segments = segments if self.model.config.type_vocab_size > 1 else None
            return self.model.outputs(tokens, needed, added, segments)
        inputs: dict[str, Any] = {"input_ids": tokens}
        if added is not None:
            inputs = {"inputs_embeds": self.model.get_input_embeddings()(tokens) + added}
        if segments is not None and getattr(self.model.config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = segments
        needed = None if needed is None else needed.long()
        outputs = self.model(**inputs, attention_mask=needed, output_hidden_states=every_layer)
        return outputs.hidden_states if every_layer else [outputs.last_hidden_state]


def _build(architecture: Mapping[str, Any]) -> Any:
    if is_plain_bert(architecture):
        return Bert(BertConfig.of(architecture))
    transformers = need_transformers()
    # With torch's fused attention, if the family supports it.
    model = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(**architecture))
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # trained for another task, and not used here
    return model


def stored_bert(folder: Path) -> dict[str, Tensor] | None:
    """The weights of a published BERT under `Bert`'s names, in float32; None if they are not in a single file."""
    stored = StoredWeights.find(folder)
    if stored is None:
        return None
    return {_name_in_bert(name): weight.float() for name, weight in stored.items()}


def _name_in_bert(name: str) -> str:
    """Some files contain a BERT with a head, which adds a prefix; in the oldest ones, norms have gamma and beta."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def read_by_transformers(folder: Path) -> dict[str, Tensor]:
    """The weights in a folder of any format and family that transformers supports."""
    auto = need_transformers().AutoModel
    try:
        with without_bars():
            loaded, about = auto.from_pretrained(
                folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
            )
    except (OSError, RuntimeError, ValueError) as problem:
        raise BackboneError(f"{folder}: its weights cannot be read: {problem}") from problem
    return {name: weight for name, weight in loaded.state_dict().items() if name not in about["missing_keys"]}


@contextmanager
def without_bars() -> Iterator[None]:
    """Disable transformers' progress bars: standard error is for the training display, where they would be noise."""
    logging = import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
