"""Evaluates a listener: is the predicted emotion right, and does the predicted label match the reference reply?

The scores are the same as for systems that reply (`evaluate.emotion_scores`, `evaluate.label_scores`), on the same
items, so that they can share a table; plus the calibration error of each head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from listenwell import metrics
from listenwell.checkpoint import write_json
from listenwell.classifiers.label_cache import labelled_with
from listenwell.classifiers.listener import ListenerClassifier, ListenerPrediction
from listenwell.data.batching import Targets
from listenwell.data.dialogue import Example
from listenwell.data.sources.jsonl import write_lines
from listenwell.evaluation.evaluate import Progress, emotion_scores, label_scores
from listenwell.evaluation.pictures import draw_confusion
from listenwell.labels.sets import LabelSet
from listenwell.metrics import Score
from listenwell.metrics.emotion import ABSENT
from listenwell.outputs import EVALUATE, write_folder
from listenwell.systems.capabilities import Capabilities
from listenwell.systems.reply import Reply

TOP_CLASSES = 5
"""Number of the likeliest emotions and labels to store for each item."""


@dataclass
class ListeningEvaluation:
    """A listener's scores on a split, and its predictions."""

    system: str
    scores: list[Score]
    confusion: np.ndarray
    """(emotions, emotions) how often the gold emotion of the row was predicted as the emotion of the column."""
    records: list[dict[str, Any]]
    emotions: LabelSet
    """The emotions that it distinguishes."""
    about: dict[str, Any] = field(default_factory=dict)


def evaluate_listening(
    listening: ListenerClassifier,
    items: Sequence[Example],
    about: dict[str, Any],
    progress: Progress,
    resamples: int = 1000,
) -> ListeningEvaluation:
    """Predict and score. The listener only gets contexts: no situation, no emotion, no label."""
    items = list(items)
    known, known_labels = listening.model.emotions, listening.model.label_set
    targets = Targets(known_labels, emotions=known)
    emotions = np.array([targets.emotion(item) for item in items], dtype=np.int64)
    if not (emotions != ABSENT).any():
        raise ValueError(f"there is nothing to score: no dialogue in the data has one of the {len(known)} emotions")
    readings = listening.predict([item.context for item in items], progress("listening", len(items)))
    chances = _table([one.emotions for one in readings], known.labels)
    predictions = [Reply("", one.emotion, one.emotions, next(iter(one.labels))) for one in readings]
    capabilities = Capabilities(emotions=known, label_set=known_labels)
    scores = [
        *emotion_scores(predictions, items, resamples, capabilities),
        metrics.calibration_error(chances, emotions, resamples=resamples),
    ]
    if labelled := label_scores(predictions, items, resamples, capabilities):
        by_label = _table([one.labels for one in readings], known_labels.labels)
        labels = np.array([targets.label(item) for item in items], dtype=np.int64)
        ece = metrics.calibration_error(by_label, labels, resamples=resamples)
        scores += [*labelled, replace(ece, name="label-ece")]
    about = {**about, "items": len(items)}
    with_labels = labelled_with(known_labels, (item.reply for item in items))
    records = [_record(item, one, with_labels) for item, one in zip(items, readings, strict=True)]
    return ListeningEvaluation(listening.name, scores, metrics.confusion(chances, emotions), records, known, about)


def _table(rows: Sequence[dict[str, float]], names: Sequence[str]) -> np.ndarray:
    return np.array([[row[name] for name in names] for row in rows])


def _record(item: Example, reading: ListenerPrediction, with_labels: bool) -> dict[str, Any]:
    return {
        "id": item.id,
        "context": [turn.text for turn in item.context],
        "gold emotion": item.emotion.name if item.emotion else None,
        "gold label": item.reply.label.name if with_labels and item.reply and item.reply.label else None,
        "emotions": {name: round(chance, 4) for name, chance in list(reading.emotions.items())[:TOP_CLASSES]},
        "labels": {name: round(chance, 4) for name, chance in list(reading.labels.items())[:TOP_CLASSES]},
    }


def write(evaluation: ListeningEvaluation, folder: Path) -> None:
    """Write scores.json, heard.jsonl with one record per item, and confusion.png of the emotions."""

    def fill(place: Path) -> None:
        write_lines(evaluation.records, place / "heard.jsonl")
        summary: dict[str, Any] = {"command": EVALUATE.command, "system": evaluation.system, "about": evaluation.about}
        summary["scores"] = [s.to_json() for s in evaluation.scores]
        write_json(place / "scores.json", summary)
        corpus = f"{evaluation.about.get('data', '')}, {evaluation.about.get('split', '')}".strip(", ")
        draw_confusion(
            evaluation.confusion,
            evaluation.emotions.labels,
            f"{evaluation.system} on {corpus}",
            place / "confusion.png",
        )

    write_folder(folder, fill, EVALUATE)
