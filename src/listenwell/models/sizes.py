"""Sizes shared by all encoder-decoder transformers here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class TransformerSizes:
    """Sizes of an encoder and a decoder over one word table."""

    width: int = 300
    """Width of every layer."""
    heads: int = 6
    """Heads of every attention layer."""
    attention_width: int = 0
    """Total width of an attention layer's heads; 0 means the model's."""
    encoder_layers: int = 1
    """Number of encoder layers."""
    decoder_layers: int = 1
    """Number of decoder layers."""
    feed_forward: int = 1200
    """Inner width of the feed-forward layers."""
    dropout: float = 0.1
    """Dropout rate after every sublayer and on the embeddings."""
    word_width: int = 0
    """Width of the word table; 0 means the model's. A narrower table is projected to it."""

    @property
    def layer_sizes(self) -> dict[str, Any]:
        """The arguments of encoders and decoders."""
        return {
            "width": self.width,
            "heads": self.heads,
            "inner": self.feed_forward,
            "dropout": self.dropout,
            "attention_width": self.attention_width,
        }
