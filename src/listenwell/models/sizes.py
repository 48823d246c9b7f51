"""The sizes that every encoder-decoder transformer here has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class TransformerSizes:
    """Sizes of an encoder and a decoder over one word table."""

    width: int = 300
    """Of every layer."""
    heads: int = 6
    """Of every attention."""
    attention_width: int = 0
    """Of all heads of an attention together; 0 means the model's."""
    encoder_layers: int = 1
    """How deep the context is read."""
    decoder_layers: int = 1
    """How deep the reply is written."""
    feed_forward: int = 1200
    """Inner width of the feed-forward parts."""
    dropout: float = 0.1
    """After every part, and on the embeddings."""
    word_width: int = 0
    """Width of the word table; 0 means the model's. A narrower one goes through a projection."""

    @property
    def layer_sizes(self) -> dict[str, Any]:
        """As encoders and decoders take them."""
        return {
            "width": self.width,
            "heads": self.heads,
            "inner": self.feed_forward,
            "dropout": self.dropout,
            "attention_width": self.attention_width,
        }
