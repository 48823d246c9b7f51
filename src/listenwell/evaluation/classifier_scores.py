"""Evaluates a classifier on labelled turns: scores, per-class scores, all predictions, and the confusion matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from listenwell import metrics
from listenwell.checkpoint import write_json
from listenwell.classifiers.label_cache import labelled_with
from listenwell.classifiers.labeller import Labeller
from listenwell.data.dialogue import ROLES, Dialogue, Example, examples
from listenwell.data.sources.jsonl import write_lines
from listenwell.evaluation.evaluate import Progress
from listenwell.evaluation.pictures import draw_confusion
from listenwell.labels.sets import EMOTION_INTENT
from listenwell.labels.taxonomy import LABELS
from listenwell.metrics import Score
from listenwell.outputs import EVALUATE, write_folder


@dataclass(frozen=True, slots=True)
class ClassScore:
    """The scores of one class: how often it is gold and predicted; precision, recall and F1 in percent."""

    label: str
    gold: int
    given: int
    precision: float
    recall: float
    f1: float

    def cells(self) -> tuple[str, ...]:
        """The cells of a table row."""
        counts = (f"{self.gold:,}", f"{self.given:,}")
        return (self.label, *counts, *(f"{share:.1f}" for share in (self.precision, self.recall, self.f1)))


@dataclass
class LabelEvaluation:
    """A classifier's scores on labelled turns, and the predictions they were computed from."""

    system: str
    scores: list[Score]
    classes: list[ClassScore]
    confusion: np.ndarray
    """(labels, labels) how often the gold label of the row was predicted as the label of the column."""
    records: list[dict[str, Any]]
    names: Sequence[str] = LABELS
    about: dict[str, Any] = field(default_factory=dict)


def labelled_turns(dialogues: Iterable[Dialogue]) -> list[Example]:
    """Every labelled turn as a separate example, since a classifier reads only the utterance."""
    turns = (item for dialogue in dialogues for item in examples(dialogue, ROLES, ["reply"]))
    return [item for item in turns if item.reply is not None and item.reply.label is not None]


def evaluate_labels(
    labeller: Labeller, items: Sequence[Example], about: dict[str, Any], progress: Progress, resamples: int = 1000
) -> LabelEvaluation:
    """Classify the items and score the predictions; items whose gold label is unknown to it are skipped and counted."""
    names = labeller.names
    ids = {name: index for index, name in enumerate(names)}
    chosen = [item for item in items if item.reply and item.reply.label and item.reply.label.name in ids]
    if not chosen or (names is LABELS and not labelled_with(EMOTION_INTENT, (item.reply for item in items))):
        label_counts = Counter(item.reply.label.name for item in items if item.reply and item.reply.label)
        listed = ", ".join(name for name, _ in label_counts.most_common(5)) or "none"
        raise ValueError(f"there is nothing to score: the labels of the turns are not the {len(names)} ({listed})")
    turns = [item.reply for item in chosen if item.reply is not None]
    gold = np.array([ids[turn.label.name] for turn in turns if turn.label is not None])
    chances = labeller.distribution([turn.text for turn in turns], progress("labels", len(turns)))
    given = chances.argmax(axis=1)
    records = [
        {
            "id": item.id,
            "text": turn.text,
            "gold": names[right],
            "label": names[label],
            "confidence": round(float(row[label]), 4),
        }
        for item, turn, right, label, row in zip(chosen, turns, gold, given, chances, strict=True)
    ]
    by = Counter(turn.label.by for turn in turns if turn.label is not None)
    about = {**about, "items": len(chosen), "left out": len(items) - len(chosen), "labels by": dict(by)}
    confusion = metrics.confusion(chances, gold)
    scores = label_scores(chances, gold, resamples)
    return LabelEvaluation(labeller.name, scores, class_scores(confusion, names), confusion, records, names, about)


def label_scores(chances: np.ndarray, gold: np.ndarray, resamples: int) -> list[Score]:
    """All scores; if some labels do not occur in the data, also the accuracy among those that do: `accuracy-of-8`."""
    measures = (
        metrics.macro_precision,
        metrics.macro_recall,
        metrics.macro_f1,
        metrics.weighted_precision,
        metrics.weighted_recall,
        metrics.weighted_f1,
    )
    scores = [metrics.accuracy_at(chances, gold, k, resamples=resamples) for k in (1, 2, 5) if k < chances.shape[1]]
    scores += [measure(chances, gold, resamples=resamples) for measure in measures]
    scores.append(metrics.calibration_error(chances, gold, resamples=resamples))
    present = np.unique(gold)
    if 1 < len(present) < chances.shape[1]:
        among = metrics.accuracy_at(chances[:, present], np.searchsorted(present, gold), resamples=resamples)
        scores.append(replace(among, name=f"accuracy-of-{len(present)}"))
    return scores


def class_scores(confusion: np.ndarray, names: Sequence[str] = LABELS) -> list[ClassScore]:
    """The scores of the labels that are gold or predicted at least once, in the order of their ids."""
    gold, given, hits = confusion.sum(axis=1), confusion.sum(axis=0), confusion.diagonal()
    return [
        ClassScore(
            label=name,
            gold=int(gold[index]),
            given=int(given[index]),
            precision=100 * hits[index] / max(1, given[index]),
            recall=100 * hits[index] / max(1, gold[index]),
            f1=200 * hits[index] / (gold[index] + given[index]),
        )
        for index, name in enumerate(names)
        if gold[index] + given[index]
    ]


def write(evaluation: LabelEvaluation, folder: Path) -> None:
    """Write scores.json, labels.jsonl with one record per item, and confusion.png."""

    def fill(place: Path) -> None:
        write_lines(evaluation.records, place / "labels.jsonl")
        summary: dict[str, Any] = {"command": EVALUATE.command, "system": evaluation.system, "about": evaluation.about}
        summary["scores"] = [s.to_json() for s in evaluation.scores]
        write_json(place / "scores.json", {**summary, "classes": [asdict(one) for one in evaluation.classes]})
        corpus = f"{evaluation.about.get('data', '')}, {evaluation.about.get('split', '')}".strip(", ")
        draw_confusion(
            evaluation.confusion, evaluation.names, f"{evaluation.system} on {corpus}", place / "confusion.png"
        )

    write_folder(folder, fill, EVALUATE)
