"""Sentence embeddings from a pretrained encoder, without fine-tuning: similar meanings have a high cosine similarity.

>>> SentenceEncoder().embed(["I lost my job", "They fired me"])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import torch
from torch.nn import functional as F

from listenwell.backbones.encoder import PretrainedEncoder, read_architecture
from listenwell.backbones.locate import SHORT
from listenwell.data.batching import EncodingConfig, collate, encode, ordered_batches
from listenwell.data.dialogue import Example, Turn
from listenwell.layers.transformer import mean_over
from listenwell.text import backbone_tokenizer

LONGEST = 256
"""Maximum tokens of a sentence, where sentence-transformers truncates for this encoder."""


class SentenceEncoder:
    """Mean-pools the hidden states of a pretrained encoder and normalizes to length 1."""

    def __init__(self, backbone: str = "minilm") -> None:
        self.name = SHORT.get(backbone, backbone)
        self.tokenizer = backbone_tokenizer(backbone)
        self.encoder = PretrainedEncoder(read_architecture(backbone)).eval()
        self.encoder.load_pretrained(backbone)
        self.longest = min(LONGEST, self.encoder.longest)

    @property
    def width(self) -> int:
        return self.encoder.width

    def embed(self, texts: Sequence[str], done: Callable[[int], None] | None = None) -> np.ndarray:
        """(texts, width); duplicate texts are read once. `done` is called with the number of texts just finished."""
        if isinstance(texts, str):
            raise ValueError(f"a list of texts is embedded, found one text: {texts!r}")
        times = Counter(texts)
        rows = {text: row for row, text in enumerate(times)}
        items = [Example(text, reply=Turn("speaker", text)) for text in rows]
        data = encode(items, self.tokenizer, EncodingConfig(max_reply=self.longest - 1), cut_replies=True)
        vectors = np.zeros((len(rows), self.width), np.float32)
        for chosen in ordered_batches(data.lengths()):
            side = collate(data, chosen, self.tokenizer.pad).reply
            assert side is not None
            start = torch.full_like(side.tokens[:, :1], self.tokenizer.start)
            mask = torch.cat([torch.ones_like(start, dtype=torch.bool), side.mask], dim=1)
            with torch.inference_mode():
                hidden = self.encoder(torch.cat([start, side.tokens], dim=1), mask)
                vectors[chosen] = F.normalize(mean_over(hidden, mask), dim=-1).numpy()
            if done is not None:
                done(sum(times[data.ids[row]] for row in chosen))
        return vectors[[rows[text] for text in texts]]


@cache
def sentence_encoder(backbone: str = "minilm") -> SentenceEncoder:
    """Returns the encoder by name, created once."""
    return SentenceEncoder(backbone)
