"""Our own implementation of BERT, the encoder of all classifiers here and of crisis care, such as MiniLM.

Its parameters have the names of transformers' `BertModel`, and so of published files; its outputs are those of
`BertModel` with torch's fused attention, including dropout (tests/backbones/test_bert.py). It exists because
transformers is not a core dependency and takes longer to import than everything else in loading a classifier (5.2
seconds of processor time with it, 1.9 without), and every system is wrapped in crisis care. Families other than BERT
use transformers (`encoder`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "relu": F.relu}


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT, under the names of its config.json."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(f"a width of {self.hidden_size} cannot be split among {self.num_attention_heads} heads")

    @classmethod
    def of(cls, architecture: Mapping[str, Any]) -> BertConfig:
        """From a config.json; unknown keys are ignored."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in architecture.items() if key in known})


def is_plain_bert(architecture: Mapping[str, Any]) -> bool:
    """Whether `Bert` implements what a config.json describes: no decoder, and no changes from later families."""
    return (
        architecture.get("model_type") == "bert"
        and architecture.get("hidden_act", "gelu") in ACTIVATIONS
        and architecture.get("position_embedding_type", "absolute") == "absolute"
        and not architecture.get("is_decoder")
        and not architecture.get("add_cross_attention")
    )


class BertEmbeddings(nn.Module):
    """Word, position and segment embeddings."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        words = torch.empty(config.vocab_size, width)  # `Bert` fills it: initialising it twice costs time
        self.word_embeddings = nn.Embedding.from_pretrained(words, freeze=False, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, tokens: Tensor, added: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(batch, time) to (batch, time, width); see `Bert.forward`."""
        words = self.word_embeddings(tokens)
        if added is not None:
            words = words + added
        types = self.token_type_embeddings.weight[0] if segments is None else self.token_type_embeddings(segments)
        positions = self.position_embeddings.weight[: tokens.shape[1]]
        return self.dropout(self.LayerNorm(words + types + positions))


class BertSelfAttention(nn.Module):
    """Every position attends to every real one."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads, self.dropout_rate = config.num_attention_heads, config.attention_probs_dropout_prob
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        mixed = F.scaled_dot_product_attention(
            self.split(self.query(x)),
            self.split(self.key(x)),
            self.split(self.value(x)),
            None if mask is None else mask[:, None, None, :],
            dropout_p=self.dropout_rate if self.training else 0.0,
        )
        return mixed.transpose(1, 2).flatten(2)

    def split(self, x: Tensor) -> Tensor:
        """(batch, time, width) to (batch, heads, time, width of a head)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class BertOutput(nn.Module):
    """The output projection of a sublayer, with its residual connection and norm."""

    def __init__(self, inner: int, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(x)) + before)


class BertAttention(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = BertSelfAttention(config)
        self.output = BertOutput(config.hidden_size, config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.output(self.self(x, mask), x)


class BertIntermediate(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.dense(x))


class BertLayer(nn.Module):
    """Attention and a feed-forward layer, each with a residual connection and a norm."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = BertAttention(config)
        self.intermediate = BertIntermediate(config)
        self.output = BertOutput(config.intermediate_size, config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class BertEncoder(nn.Module):
    """The layers; `Bert` runs them."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))


class Bert(nn.Module):
    """Tokens to one vector per position. Random until weights are loaded."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config)
        self.apply(self._initialise)

    @torch.no_grad()
    def _initialise(self, module: nn.Module) -> None:
        """BERT's initialisation, with a zero padding embedding. Norms already have theirs."""
        if isinstance(module, nn.Linear | nn.Embedding):
            module.weight.normal_(std=self.config.initializer_range)
        if isinstance(module, nn.Linear):
            module.bias.zero_()
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx].zero_()

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        added: Tensor | None = None,
        segments: Tensor | None = None,
    ) -> Tensor:
        """(batch, time) to (batch, time, width): the last layer's output.

        `mask` is True at real positions, None if all are. `added` (batch, time, width) is added to the word
        embeddings; `segments` (batch, time) says which of two texts a position belongs to, the first if not given.
        """
        return deque(self.outputs(tokens, mask, added, segments), maxlen=1).pop()  # without keeping the others

    def outputs(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        added: Tensor | None = None,
        segments: Tensor | None = None,
    ) -> Iterator[Tensor]:
        """Yields the embeddings and then the output of each layer."""
        x = self.embeddings(tokens, added, segments)
        yield x
        for layer in self.encoder.layer:
            x = layer(x, mask)
            yield x
