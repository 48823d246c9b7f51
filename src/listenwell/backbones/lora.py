"""A frozen causal language model of the transformers library with trainable low-rank adapters (LoRA).

    y = W x + scale · B A x          W as pretrained, A and B learned, B zero at the start (Hu et al. 2022)

The adapters are peft's, on every linear projection. This module reduces the cost of a step on a CPU: texts of
different length are padded only for attention, the products of an adapter are added to the frozen one in place, a
frozen norm takes three passes instead of ten, and a model whose weights will be loaded is not initialised randomly
first. In mixed precision, a frozen weight is cast only once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from listenwell.backbones.encoder import NOT_ARCHITECTURE
from listenwell.backbones.language_model import find_language_model, load_language_model, need_transformers
from listenwell.backbones.locate import BackboneError
from listenwell.backbones.stored import StoredWeights
from listenwell.layers.attention import attend
from listenwell.layers.cpu import spare_rows
from listenwell.layers.packing import Places

ATTENTION = "listenwell"
"""The name under which the attention below is registered with transformers."""

ADAPTER = "default"
"""peft's name for the single adapter of a projection."""


def need_peft() -> Any:
    try:
        return import_module("peft")
    except ImportError as problem:
        raise ImportError("low-rank adapters need peft: pip install 'listenwell[house]'") from problem


def language_architecture(name: str) -> dict[str, Any]:
    """The architecture of a causal language model; `name` as for `find_language_model`."""
    path = find_language_model(name) / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    if "model_type" not in config:
        raise BackboneError(f"{path}: no model_type in it, which says how the pretrained model is built")
    return {key: value for key, value in config.items() if key not in NOT_ARCHITECTURE}


class Layout:
    """Maps between a padded batch and its texts packed without padding.

    A few spare positions follow the packed texts, so that half-precision products come in few shapes.
    """

    def __init__(self, mask: Tensor) -> None:
        """`mask` (batch, time) is True at real positions; every text begins at the first."""
        self.places = Places(mask)
        self.spare = spare_rows(self.places.count)

    def padded(self, packed: Tensor) -> Tensor:
        """(positions,) of the texts, followed by the spare ones."""
        return nn.functional.pad(packed, (0, self.spare))

    def spread(self, packed: Tensor) -> Tensor:
        """(1, heads, positions, width) to (batch, heads, time, width), zero at padding."""
        return self.places.spread(packed[0].transpose(0, 1)[: self.places.count]).transpose(1, 2)

    def pack(self, spread: Tensor) -> Tensor:
        """(batch, heads, time, width) to (1, positions, heads, width), zero at the spare positions."""
        return nn.functional.pad(self.places.pack(spread.transpose(1, 2)), (0, 0, 0, 0, 0, self.spare))[None]


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    layout: Layout | None = None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attention with transformers' signature. With a layout, texts are packed, and each attends only to itself."""
    if layout is None:
        forward = import_module("transformers.integrations.sdpa_attention").sdpa_attention_forward
        return forward(module, query, key, value, attention_mask, scaling=scaling, **options)
    # Rotary embeddings are in full precision even if the products are not.
    query, key, value = (layout.spread(part.to(value.dtype)) for part in (query, key, value))
    # Padding comes after the text, where causal attention never looks: no mask is needed.
    return layout.pack(attend(query, key, value, causal=True, scale=scaling)), None


class _Adapted(torch.autograd.Function):
    """W x + b + scale · B A x for a frozen W: no gradient for W, no copy of the sum.

    Computed in the precision of W; the gradients of A and B have the precision of A and B.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, down: Tensor, up: Tensor, scale: float
    ) -> Tensor:
        ctx.given, ctx.learned = x.dtype, down.dtype
        down, up = down.to(weight.dtype), up.to(weight.dtype)
        rows = x.reshape(-1, x.shape[-1]).to(weight.dtype)
        low = rows @ down.T
        y = rows @ weight.T if bias is None else torch.addmm(bias, rows, weight.T)
        y.addmm_(low, up.T, alpha=scale)
        ctx.save_for_backward(rows, low, weight, down, up)
        ctx.scale, ctx.shape = scale, x.shape
        return y.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        rows, low, weight, down, up = ctx.saved_tensors
        grad = grads[0].reshape(-1, grads[0].shape[-1])
        grad_low = (grad @ up).mul_(ctx.scale)
        grad_down, grad_up = grad_low.T @ rows, (grad.T @ low).mul_(ctx.scale)
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = (grad @ weight).addmm_(grad_low, down).view(ctx.shape).to(ctx.given)
        return grad_x, None, None, grad_down.to(ctx.learned), grad_up.to(ctx.learned), None


def _wanted(x: Tensor, weight: Tensor) -> torch.dtype:
    """The precision in which to compute a product of both."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype


def _in_precision(base: nn.Linear, wanted: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """A frozen projection's weight and bias, cast once rather than at every product."""
    if base.weight.dtype == wanted:
        return base.weight, base.bias
    held = base.__dict__.get("_cast")
    if held is None or held[0] is not base.weight or held[1].dtype != wanted:
        bias = None if base.bias is None else base.bias.detach().to(wanted)
        held = base.__dict__["_cast"] = (base.weight, base.weight.detach().to(wanted), bias)
    return held[1], held[2]


def _adapted(layer: Any, slow: Any, x: Tensor) -> Tensor:
    """A projection with its adapter; peft's own forward if the projection is trained too."""
    base = layer.base_layer
    if base.weight.requires_grad:
        return slow(x)
    weight, bias = _in_precision(base, _wanted(x, base.weight))
    down, up = layer.lora_A[ADAPTER].weight, layer.lora_B[ADAPTER].weight
    with torch.autocast(x.device.type, enabled=False):
        return _Adapted.apply(x, weight, bias, down, up, layer.scaling[ADAPTER])


class _Norm(torch.autograd.Function):
    """w · x / √(mean x² + smallest) for a frozen w, in the precision of the product that follows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, smallest: float, wanted: torch.dtype) -> Tensor:
        size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        inverse = size.square_().div_(x.shape[-1]).add_(smallest).rsqrt_()
        ctx.save_for_backward(x, inverse, weight)
        return (x * inverse).mul_(weight).to(wanted)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, inverse, weight = ctx.saved_tensors
        grad = grads[0] * weight
        along = torch.linalg.vecdot(grad, x)[..., None].div_(x.shape[-1]).mul_(inverse).mul_(inverse)
        return grad.addcmul_(x, along, value=-1).mul_(inverse), None, None, None


def _normed(layer: Any, slow: Any, x: Tensor) -> Tensor:
    if layer.weight.requires_grad:
        return slow(x)
    wanted = _wanted(x, layer.weight)
    with torch.autocast(x.device.type, enabled=False):
        return _Norm.apply(x, layer.weight, layer.variance_epsilon, wanted)


def _make_lean(model: nn.Module) -> None:
    """The same results in fewer passes over memory, for layers of the usual types."""
    projection = need_peft().tuners.lora.Linear
    for layer in model.modules():
        if isinstance(layer, projection) and isinstance(layer.base_layer, nn.Linear):
            layer.forward = partial(_adapted, layer, layer.forward)
        # The name in Llama, Mistral and Qwen; others, such as Gemma's, compute something else.
        elif type(layer).__name__.endswith("RMSNorm") and hasattr(layer, "variance_epsilon"):
            layer.forward = partial(_normed, layer, layer.forward)


def make_adapted(architecture: Mapping[str, Any], rank: int, scale: float) -> Any:
    """A language model of this architecture with new adapters. Its own weights are not initialised: see `fill`."""
    transformers, peft = need_transformers(), need_peft()
    without_random = import_module("transformers.initialization").no_init_weights
    transformers.AttentionInterface.register(ATTENTION, _attend)
    try:
        config = transformers.AutoConfig.for_model(**architecture)
        _check_attention(config, transformers.MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None))
        with without_random():
            model = transformers.AutoModelForCausalLM.from_config(
                config, attn_implementation=ATTENTION, dtype=torch.float32
            )
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"no language model can be made of this architecture: {problem}") from problem
    adapters = peft.LoraConfig(r=rank, lora_alpha=scale * rank, lora_dropout=0.0, target_modules="all-linear")
    peft.inject_adapter_in_model(adapters, model)
    _make_lean(model)
    return model


def _check_attention(config: Any, kind: Any) -> None:
    """Raise ValueError if texts cannot be packed, because the model uses its own kind of attention."""
    if kind is None:
        raise ValueError(f"{config.model_type} is not a causal language model of transformers")
    if not kind._supports_attention_backend or getattr(config, "attn_logit_softcapping", None):
        raise ValueError(
            f"{config.model_type} computes attention in a way of its own; llama, qwen2, qwen3, mistral, gemma, gemma3, "
            "phi, phi3, olmo2, gpt_neox, opt, gpt2 and their like do not"
        )


def own_names(model: nn.Module) -> dict[str, str]:
    """The names of a model's own weights, without adapters, mapped to their names in the model without adapters."""
    return {name: name.replace(".base_layer.", ".") for name in model.state_dict() if ".lora_" not in name}


def stored_weights(model: Any, name: str, names: Mapping[str, str]) -> StoredWeights | None:
    """The backbone's file, if a model's own weights (`names`, from `own_names`) can be read from it one at a time.

    None if they are stored in some other way; then `fill` loads them through transformers.
    """
    stored = StoredWeights.find(find_language_model(name))
    is_tied = model.config.tie_word_embeddings
    tied = (getattr(model, "_tied_weights_keys", None) or ()) if is_tied else ()
    if stored is None or any(plain not in stored and plain not in tied for plain in names.values()):
        return None
    shapes = {names[own]: tuple(weight.shape) for own, weight in model.named_parameters() if own in names}
    for plain, shape in shapes.items():
        if plain in stored and stored.shape(plain) != shape:
            raise BackboneError(
                f"{stored.path}: its weights do not fit the architecture: {plain} is {stored.shape(plain)}, "
                f"expected {shape}"
            )
    return stored.only(names.values())


def fill(model: Any, name: str) -> None:
    """Load the weights of the backbone into an adapted model of its architecture. They are shared, not copied."""
    loaded, folder = load_language_model(name)
    theirs, names = loaded.state_dict(), own_names(model)
    try:
        model.load_state_dict({own: theirs[plain] for own, plain in names.items()}, strict=False, assign=True)
    except (KeyError, RuntimeError) as problem:
        raise BackboneError(f"{folder}: its weights do not fit the architecture: {problem}") from problem
    model.tie_weights()
    for name, parameter in model.named_parameters():
        if name in names:
            parameter.requires_grad_(False)


class MergedWeights(Mapping[str, Tensor]):
    """The weights of the equivalent plain language model: W + scale · B A, under the backbone's names.

    Each sum is computed on access: all of them together would be another copy of the model.
    """

    def __init__(self, model: nn.Module, plain: Mapping[str, Tensor]) -> None:
        """`plain` are the backbone's own weights, under its names."""
        self.plain = plain
        self.adapted: dict[str, Any] = {
            f"{name}.weight": layer for name, layer in model.named_modules() if hasattr(layer, "lora_A")
        }

    def __getitem__(self, name: str) -> Tensor:
        weight = self.plain[name].float()
        return weight + self.adapted[name].get_delta_weight(ADAPTER).detach() if name in self.adapted else weight

    def __iter__(self) -> Iterator[str]:
        return iter(self.plain)

    def __len__(self) -> int:
        return len(self.plain)
