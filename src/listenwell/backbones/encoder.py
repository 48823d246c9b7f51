"""A pretrained encoder of the transformers library: made from its architecture alone, filled from its files once.

A model that holds one keeps the architecture in its config and the weights among its own, so that its checkpoint is
read again where the pretrained files are not available.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from listenwell.backbones.locate import BackboneError, find_backbone
from listenwell.backbones.stored import mapped_weights

NOT_ARCHITECTURE = ("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version")
"""What a config.json says beside the architecture: where it came from, and in which precision it was saved."""


def need_transformers() -> Any:
    try:
        return import_module("transformers")
    except ImportError as problem:
        raise ImportError("a pretrained encoder needs transformers: pip install 'listenwell[backbones]'") from problem


def read_architecture(name: str) -> dict[str, Any]:
    """The sizes and choices of a backbone, as its config.json gives them; `name` as for `find_backbone`."""
    path = find_backbone(name) / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise BackboneError(f"{path}: cannot be read as the config of a pretrained model: {problem}") from problem
    if not isinstance(config, dict) or "model_type" not in config:
        raise BackboneError(f"{path}: no model_type in it, which says how the pretrained model is built")
    return {key: value for key, value in config.items() if key not in NOT_ARCHITECTURE}


class PretrainedEncoder(nn.Module):
    """Tokens to one vector per position. Random until `load_pretrained` or a checkpoint fills it."""

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        transformers = need_transformers()
        try:
            config = transformers.AutoConfig.for_model(**architecture)
            # With torch's fused attention, where the family has it.
            self.model: Any = transformers.AutoModel.from_config(config)
            self.width: int = config.hidden_size
            self.vocabulary: int = config.vocab_size
            # RoBERTa counts its positions from 2; two fewer than the table has are safe for every family.
            self.longest: int = config.max_position_embeddings - 2
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"no encoder can be made of this architecture: {problem}") from problem
        if getattr(self.model, "pooler", None) is not None:
            self.model.pooler = None  # learned for another task, and read by nobody here

    def below(self, upper: int) -> frozenset[str]:
        """The names of all weights that lie below the upper layers: the embeddings' and the lower layers'."""
        layers = getattr(getattr(self.model, "encoder", None), "layer", None)
        if layers is None:
            raise ValueError("the layers of this architecture cannot be identified; leave upper out")
        if not 1 <= upper <= len(layers):
            raise ValueError(f"upper is {upper}, expected 1 to {len(layers)}, the layers of the backbone")
        above = tuple(f"model.encoder.layer.{index}." for index in range(len(layers) - upper, len(layers)))
        return frozenset(name for name in self.state_dict() if not name.startswith(above))

    def load_pretrained(self, name: str, only: Collection[str] | None = None) -> None:
        """Takes the weights of the backbone whose architecture this is; those named by `only`, if that is given."""
        folder, auto = find_backbone(name), need_transformers().AutoModel
        if only is not None and self._share(folder, only):
            return
        try:
            with without_bars():
                loaded, about = auto.from_pretrained(
                    folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
                )
        except (OSError, RuntimeError, ValueError) as problem:
            raise BackboneError(f"{folder}: its weights cannot be read: {problem}") from problem
        if missing := sorted(key for key in about["missing_keys"] if not _unread(key)):
            raise BackboneError(f"{folder}: its weights lack {', '.join(missing[:3])}")
        weights = {key: weight for key, weight in loaded.state_dict().items() if not _unread(key)}
        if only is not None:
            weights = {key: weight for key, weight in weights.items() if f"model.{key}" in only}
        try:
            self.model.load_state_dict(weights, strict=only is None)
        except RuntimeError as problem:
            raise BackboneError(f"{folder}: its weights do not fit the architecture: {problem}") from problem

    def _share(self, folder: Path, names: Collection[str]) -> bool:
        """Maps weights from the backbone's file without a copy; whether the file has them in that form."""
        parameters = {key.removeprefix("model."): weight for key, weight in self.named_parameters() if key in names}
        stored = mapped_weights(folder, parameters)
        if stored is None or any(stored[key].shape != weight.shape for key, weight in parameters.items()):
            return False  # transformers reads it, or says what is wrong
        self.model.load_state_dict(stored, strict=False, assign=True)
        return True

    def forward(
        self, tokens: Tensor, mask: Tensor, added: Tensor | None = None, segments: Tensor | None = None
    ) -> Tensor:
        """(batch, time) to (batch, time, width); every position sees every real position.

        `added` (batch, time, width) is what else is known of each position: it is added to the word's embedding.
        `segments` (batch, time) is 0 for positions of the first of two texts and 1 for those of the second; a family
        that does not distinguish texts (RoBERTa) ignores it.
        """
        if segments is not None and getattr(self.model.config, "type_vocab_size", 0) > 1:
            return self._run(tokens, mask, token_type_ids=segments).last_hidden_state
        if added is None:
            return self._run(tokens, mask).last_hidden_state
        words = self.model.get_input_embeddings()(tokens)
        return self._run(None, mask, inputs_embeds=words + added).last_hidden_state

    def starts(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """What every layer makes of the first position: (batch, layers, width), the last layer last."""
        _, *layers = self._run(tokens, mask, output_hidden_states=True).hidden_states  # the first are the embeddings
        return torch.stack([hidden[:, 0] for hidden in layers], dim=1)

    def _run(self, tokens: Tensor | None, mask: Tensor, **options: Any) -> Any:
        # Without padding the kernel needs no mask, and is faster without one.
        needed = None if bool(mask.all()) else mask.long()
        return self.model(input_ids=tokens, attention_mask=needed, **options)


def _unread(key: str) -> bool:
    return key.startswith("pooler.")


@contextmanager
def without_bars() -> Iterator[None]:
    """Standard error belongs to the display of training; a bar for a tenth of a second would be noise there."""
    logging = import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
