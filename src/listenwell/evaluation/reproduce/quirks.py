"""Why measured numbers differ from published ones: known quirks of public code, switched on one at a time.

Each quirk is computed from the stored replies and score statistics of an evaluation, without a model. A value with a
quirk is never a score: it only shows the effect of the quirk. The one quirk that needs a model, the gold emotion at
evaluation, is measured by `gold_emotion.py` and read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from listenwell.evaluation.store import StoredEvaluation
from listenwell.metrics.diversity import distinct
from listenwell.metrics.overlap import average_bleu, bleu
from listenwell.metrics.score import Score
from listenwell.text import words

CONTRACTIONS = {
    "it's": "it is", "don't": "do not", "doesn't": "does not", "didn't": "did not", "you'd": "you would",
    "you're": "you are", "you'll": "you will", "i'm": "i am", "they're": "they are", "that's": "that is",
    "what's": "what is", "couldn't": "could not", "i've": "i have", "we've": "we have", "can't": "cannot",
    "i'd": "i would", "aren't": "are not", "isn't": "is not", "wasn't": "was not", "weren't": "were not",
    "won't": "will not", "there's": "there is", "there're": "there are",
}  # fmt: skip
"""Contractions that the data readers of MoEL, MIME and EmpDG expand before tokenization."""

MACRO = "macro-averaged perplexity"
UNKNOWN = "vocabulary built on test"
GOLD = "gold emotion at evaluation"
FEWER = "only replies that are answered"
MULTI_BLEU = "multi-bleu on lower-cased words, contractions written out"

ABOUT = {
    MACRO: "exp of the mean over replies of each reply's own mean, as MoEL's and MIME's test loop has it: every reply "
    "counts alike, long or short",
    UNKNOWN: "the words of the test split are in the vocabulary. What that is worth at most: unknown words cost their "
    "UNK probability, and which word it was is free",
    GOLD: "the side that mimics is chosen by the true emotion, which no system has in use; a run of its own, never a "
    "score",
    FEWER: "EmpDG's loader needs the user's next turn and so drops each dialogue's last reply: 2,713 of 5,255 items. "
    "Distinct-n grows as the replies grow fewer",
    MULTI_BLEU: "the public scripts write contractions out (i'm: i am) in training texts and references and then split "
    "them; here replies and references are rewritten so, afterwards",
}
"""A description of each quirk."""


@dataclass(frozen=True, slots=True)
class Quirk:
    """The value that one of our numbers would have with a quirk."""

    name: str
    value: float
    worth: float
    """The difference from the number without the quirk."""

    def __str__(self) -> str:
        return f"{self.name}: {self.value:.2f} ({self.worth:+.2f})"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "worth": self.worth}


def quirks_of(score: str, evaluations: Sequence[StoredEvaluation]) -> tuple[Quirk, ...]:
    """The effect of each quirk on a score, averaged over the evaluations (one per seed)."""
    found = []
    for name, compute in _QUIRKS.get(score, {}).items():
        values = [(compute(one, one.scores[score]), one.scores[score].value) for one in evaluations]
        whole = [(with_quirk, without) for with_quirk, without in values if with_quirk is not None]
        if values and len(whole) == len(values):
            value, plain = (fmean(side) for side in zip(*whole, strict=True))
            found.append(Quirk(name, value, value - plain))
    return tuple(found)


def macro_perplexity(evaluation: StoredEvaluation, score: Score) -> float | None:
    if score.statistics is None:
        return None
    cost, counted = score.statistics.rows.T
    return float(np.exp((cost / counted).mean()))


def perplexity_with_free_names(evaluation: StoredEvaluation, score: Score) -> float | None:
    """The perplexity without the cost of naming unknown words; their number follows from the rate in the signature."""
    if score.statistics is None or "unk" not in score.signature:
        return None
    cost, counted = score.statistics.rows.sum(axis=0)
    rate = float(score.signature["unk"].rstrip("%")) / 100
    unknown = rate * (counted - len(score.statistics))  # the end of a reply is never unknown
    unseen = max(1, int(score.signature["unseen"]))
    return float(np.exp((cost - unknown * np.log(unseen)) / counted))


def gold_emotion_file(evaluation: Path) -> Path:
    """The file for the result with the gold emotion, next to the evaluation's folder rather than in it."""
    return evaluation.with_name(f"{evaluation.name}.gold-emotion.json")


def perplexity_with_gold_emotion(evaluation: StoredEvaluation, score: Score) -> float | None:
    try:
        record = json.loads(gold_emotion_file(evaluation.place).read_text(encoding="utf-8"))
    except OSError:
        return None
    return float(record["perplexity-word"])


def answered(records: Sequence[dict[str, Any]]) -> list[int]:
    """The items whose reference is followed by another turn, which appears in the context of a later item."""
    begun = {tuple(record["context"][:length]) for record in records for length in range(len(record["context"]))}
    return [row for row, record in enumerate(records) if (*record["context"], record["reference"]) in begun]


def distinct_of_answered(evaluation: StoredEvaluation, score: Score) -> float | None:
    rows = answered(evaluation.records)
    if not rows or len(rows) == len(evaluation.records):
        return None
    replies = [words(evaluation.records[row]["reply"]) for row in rows]
    return distinct(replies, int(score.name.rpartition("-")[2])).value


def written_out(text: str) -> str:
    """Lower-cases and expands contractions, in the order of the public data readers."""
    text = re.sub("[’‘]", "'", text.lower())
    for short, long in CONTRACTIONS.items():
        text = text.replace(short, long)
    return text


def both_written_out(evaluation: StoredEvaluation) -> tuple[list[list[str]], list[list[str]]]:
    pairs = [(record["reply"], record["reference"]) for record in evaluation.records]
    replies, references = zip(*pairs, strict=True)
    return [words(written_out(text)) for text in replies], [words(written_out(text)) for text in references]


def multi_bleu(evaluation: StoredEvaluation, score: Score) -> float | None:
    if not _is_english(evaluation):
        return None
    compute = average_bleu if score.name == "average-bleu" else bleu
    return compute(*both_written_out(evaluation), resamples=0).value


def _is_english(evaluation: StoredEvaluation) -> bool:
    return evaluation.about.get("language", "en") == "en" and all(one.get("reference") for one in evaluation.records)


_PERPLEXITY: dict[str, Callable[[StoredEvaluation, Score], float | None]] = {
    MACRO: macro_perplexity,
    UNKNOWN: perplexity_with_free_names,
    GOLD: perplexity_with_gold_emotion,
}
_QUIRKS: dict[str, dict[str, Callable[[StoredEvaluation, Score], float | None]]] = {
    "perplexity-word": _PERPLEXITY,
    "perplexity": {MACRO: macro_perplexity},
    "perplexity-oracle": {MACRO: macro_perplexity},
    "distinct-1": {FEWER: distinct_of_answered},
    "distinct-2": {FEWER: distinct_of_answered},
    "bleu-4": {MULTI_BLEU: multi_bleu},
    "average-bleu": {MULTI_BLEU: multi_bleu},
}
"""Quirks by the score that they change."""
