"""The published numbers, and which of our scores each can be compared with.

`published.csv` holds every number of every table: paper, table, dataset, system, metric, value. A metric that does not
correspond to any of our scores (a human rating, the output of another sentiment model) has no entry in MEANINGS and
never appears in a table of measured numbers; it is listed as left out.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources

from listenwell.labels.taxonomy import unknown_name

DATASETS = {"empathetic-dialogues": "ed", "edos": "edos", "opensubtitles": "os"}
"""The papers' names of datasets, by the names of our sources."""

NOTES: dict[str, str] = {
    "perplexity": (
        "Published perplexities are, in the public code of MoEL, MIME, EmpDG and CEM, exp(mean of batch means), with a "
        "vocabulary built on train, valid and test, and an unknown word is not charged for. Measured ones are weighted "
        "by tokens over the whole split, with the words of train; an unknown word costs its UNK probability and "
        "log(number of unseen types)."
    ),
    "perplexity-subword": (
        "MEED2's perplexities are per sub-word of RoBERTa's tokenizer, on 2,000 held-out dialogues of each domain, so "
        "they are shown next to the measured perplexity per token, which compares only systems of one tokenizer."
    ),
    "bleu": (
        "The papers do not say how BLEU was tokenized and smoothed. The measured one is corpus BLEU as multi-bleu.perl "
        "prints it, unsmoothed, on lower-cased words."
    ),
    "bleu-characters": "Strategy memory's BLEU is on Chinese, read as characters; the paper does not give the script.",
    "average-bleu": (
        "AVG BLEU is the mean of BLEU-1 to BLEU-4. The paper does not say how they were tokenized and smoothed; the "
        "measured ones are corpus BLEU, unsmoothed, on lower-cased words, which are listenwell's own and nearly nltk's."
    ),
    "distinct": (
        "Distinct-n falls as the number of replies grows, and the papers differ in it: 5,255 test items in MoEL's and "
        "MIME's public code, 2,713 in EmpDG's, 2,000 dialogues per domain in MEED2. Published shares are in percent."
    ),
    "accuracy": (
        "Measured emotion accuracy counts every listener's turn of the split, 32 ways, from the context alone. The "
        "papers do not say how many items theirs counts."
    ),
    "macro-f1": (
        "The paper does not say how its emotion F1 is averaged; the measured one is the mean of the classes' F1. The "
        "one beside it, weighted-f1, counts a class by how often it is the true one."
    ),
    "label": (
        "Published scores of the predictor are on 2,000 held-out dialogues of each domain. Both are averaged over the "
        "classes by how often each is the reply's, and in EmpatheticDialogues both are held against machine labels."
    ),
    "nist": "The paper does not give the script of its NIST; the measured one is nltk's definition, on characters.",
    "entropy": "The paper does not give the logarithm of its entropy; the measured one is in nats, over characters.",
    "embedding": (
        "The paper does not name its word vectors. The measured ones are GloVe's of 100 dimensions, whose cosines have "
        "another scale; a word without a vector has the mean of all."
    ),
    "ses": (
        "MEED2's sentence embeddings are Sentence-BERT's; the paper does not say of which model. The measured ones are "
        "all-MiniLM-L6-v2's, whose cosines have another scale."
    ),
}
"""How published numbers differ in definition from the measured ones above them."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The score of ours that corresponds to a published metric."""

    score: str
    note: str
    """How the definitions differ: a key of NOTES."""
    places: int = 0
    """How many places to shift the decimal point: 2 turns a fraction into percent."""


MEANINGS: dict[str, Meaning] = {
    "ppl": Meaning("perplexity-word", "perplexity"),
    "bleu": Meaning("bleu-4", "bleu"),
    **{f"bleu{n}": Meaning(f"bleu-{n}", "bleu-characters") for n in (1, 2, 3, 4)},
    "avg_bleu": Meaning("average-bleu", "average-bleu"),
    **{f"dist{n}": Meaning(f"distinct-{n}", "distinct", places=2) for n in (1, 2, 3, 4)},
    **{f"dist{n}_pct": Meaning(f"distinct-{n}", "distinct") for n in (1, 2)},
    "emotion_acc": Meaning("accuracy@1", "accuracy"),
    **{f"emotion_acc_top{k}": Meaning(f"accuracy@{k}", "accuracy") for k in (1, 2, 5)},
    **{f"nist{n}": Meaning(f"nist-{n}", "nist") for n in (3, 4)},
    "ent": Meaning("entropy", "entropy"),
    "emb_average": Meaning("embedding-average", "embedding"),
    "emb_greedy": Meaning("greedy-matching", "embedding"),
    "emb_extrema": Meaning("vector-extrema", "embedding"),
    "ses": Meaning("ses", "ses"),
    "emotion_f1": Meaning("macro-f1", "macro-f1"),
    **{f"intent_{name}": Meaning(f"label-{name}", "label", places=2) for name in ("precision", "recall", "f1")},
}

MEANINGS_IN: dict[tuple[str, str], Meaning] = {("meed2", "ppl"): Meaning("perplexity", "perplexity-subword")}
"""Exceptions, for papers that use a name in another sense: by (paper, metric)."""


def meaning(paper: str, metric: str) -> Meaning | None:
    """The score of ours that corresponds to a paper's metric; None if there is none."""
    return MEANINGS_IN.get((paper, metric)) or MEANINGS.get(metric)


@dataclass(frozen=True, slots=True)
class Cell:
    """A published number in the unit of the measured ones, with the paper's digits."""

    value: Decimal
    metric: str
    """The paper's name for the metric."""
    note: str

    def __str__(self) -> str:
        return f"{self.value:f}"


@dataclass(frozen=True, slots=True)
class Row:
    """A system's row in a paper's table."""

    paper: str
    table: str
    dataset: str
    system: str
    values: Mapping[str, Decimal]
    """Values by metric, as published."""

    @property
    def where(self) -> str:
        return f"{self.paper}, {'text' if self.table == 'text' else f'table {self.table}'}, {self.dataset}"

    def cells(self) -> dict[str, Cell]:
        """The numbers that correspond to a score of ours, by the score's name."""
        by_score: dict[str, Cell] = {}
        for metric, value in self.values.items():
            if means := meaning(self.paper, metric):
                by_score[means.score] = Cell(value.scaleb(means.places), metric, means.note)
        return by_score

    def left_out(self) -> list[str]:
        """The metrics that do not correspond to any score of ours."""
        return [metric for metric in self.values if meaning(self.paper, metric) is None]


@cache
def load() -> tuple[Row, ...]:
    """Every row of every table, in the order of the file."""
    text = resources.files("listenwell.evaluation").joinpath("published.csv").read_text(encoding="utf-8")
    by_row: dict[tuple[str, str, str, str], dict[str, Decimal]] = {}
    for line in csv.DictReader(text.splitlines()):
        key = (line["paper"], line["table"], line["dataset"], line["system"])
        by_row.setdefault(key, {})[line["metric"]] = Decimal(line["value"])
    return tuple(Row(*key, values) for key, values in by_row.items())


def rows(paper: str, table: str | None = None, dataset: str | None = None) -> list[Row]:
    """The rows of a paper, or only of one table or dataset. There is always at least one; else it raises ValueError."""
    rows_left = _narrowed(list(load()), "paper", paper, "")
    if table is not None:
        rows_left = _narrowed(rows_left, "table", table, f" of {paper}")
    if dataset is not None:
        rows_left = _narrowed(rows_left, "dataset", dataset, f" of {paper} table {table}" if table else f" of {paper}")
    return rows_left


def rows_at(place: str, data: str | None = None) -> list[Row]:
    """The rows named by "mime/2" or "meed2/3/edos".

    If no dataset is named and the table has several, only those of the source `data`, if there are any.
    """
    paper, *rest = place.split("/")
    if not paper or len(rest) > 2 or not all(rest):
        raise ValueError(f"published numbers are named paper/table, as mime/2, or paper/table/dataset, found {place!r}")
    rows_left = rows(paper, *rest)
    if len(rest) < 2:
        fitting = [row for row in rows_left if row.dataset == DATASETS.get(data or "")]
        rows_left = fitting or rows_left
    return rows_left


def _narrowed(rows_left: list[Row], part: str, name: str, of: str) -> list[Row]:
    matching = [row for row in rows_left if getattr(row, part) == name]
    if not matching:
        known = dict.fromkeys(getattr(row, part) for row in rows_left)
        if part == "paper":
            raise ValueError(unknown_name("paper", name, known))
        raise ValueError(f"unknown {part} {name!r}{of}; known: {', '.join(known)}")  # a similar number is no hint
    return matching
