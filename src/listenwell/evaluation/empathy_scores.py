"""Evaluates an empathy classifier on pairs rated by people: do its levels match theirs?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from listenwell import metrics
from listenwell.checkpoint import write_json
from listenwell.classifiers.empathy import EmpathyClassifier, expected_levels, gold_levels, pair_of
from listenwell.contract import ABSENT
from listenwell.data.dialogue import Example
from listenwell.data.sources.jsonl import write_lines
from listenwell.evaluation.classifier_scores import ClassScore, class_scores
from listenwell.evaluation.evaluate import Progress
from listenwell.labels.empathy import LEVELS, MECHANISMS
from listenwell.metrics import Score
from listenwell.outputs import EVALUATE, write_folder


@dataclass
class EmpathyEvaluation:
    """A classifier's scores on pairs, and its predicted levels."""

    system: str
    scores: list[Score]
    classes: dict[str, list[ClassScore]]
    """By mechanism: the scores of each level."""
    records: list[dict[str, Any]]
    about: dict[str, Any] = field(default_factory=dict)


def evaluate_empathy(
    classifier: EmpathyClassifier,
    items: Sequence[Example],
    about: dict[str, Any],
    progress: Progress,
    resamples: int = 1000,
) -> EmpathyEvaluation:
    """Predict levels and score them: macro F1 and accuracy of the levels, calibration of their probabilities."""
    items = [item for item in items if item.context and item.reply is not None]
    gold = gold_levels(items)
    if (gold == ABSENT).all():
        raise ValueError("there is nothing to score: no reply has levels of empathy (--data epitome --part levels)")
    log_probs = classifier.log_probs([pair_of(item) for item in items], progress("empathy", len(items)))
    chances, chosen = np.exp(log_probs), classifier.choose(log_probs)
    scores, classes = [], {}
    for index, name in enumerate(MECHANISMS):
        given, right = np.eye(len(LEVELS))[chosen[:, index]], gold[:, index]
        found = {
            "macro-f1": metrics.macro_f1(given, right, resamples=resamples),
            "accuracy": metrics.accuracy_at(given, right, resamples=resamples),
            "ece": metrics.calibration_error(chances[:, index], right, resamples=resamples),
        }
        scores += [replace(score, name=f"{name}-{kind}") for kind, score in found.items()]
        classes[name] = class_scores(metrics.confusion(given, right), LEVELS)
    expected = expected_levels(chances)
    means = {
        name: {"people": _rounded(gold[:, index][gold[:, index] != ABSENT]), "machine": _rounded(expected[:, index])}
        for index, name in enumerate(MECHANISMS)
    }
    records = [
        {
            "id": item.id,
            "gold": {name: int(level) for name, level in zip(MECHANISMS, gold[row], strict=True)},
            "level": {name: int(level) for name, level in zip(MECHANISMS, chosen[row], strict=True)},
            "expected": {name: round(float(level), 4) for name, level in zip(MECHANISMS, expected[row], strict=True)},
        }
        for row, item in enumerate(items)
    ]
    about = {**about, "items": len(items), "mean levels": means}
    return EmpathyEvaluation(classifier.name, scores, classes, records, about)


def _rounded(levels: np.ndarray) -> float:
    return round(float(levels.mean()), 4)


def write(evaluation: EmpathyEvaluation, folder: Path) -> None:
    """Write scores.json, and levels.jsonl with one record per pair; neither contains text of the corpus."""

    def fill(place: Path) -> None:
        write_lines(evaluation.records, place / "levels.jsonl")
        summary: dict[str, Any] = {"command": EVALUATE.command, "system": evaluation.system, "about": evaluation.about}
        summary["scores"] = [s.to_json() for s in evaluation.scores]
        summary["classes"] = {name: [asdict(one) for one in several] for name, several in evaluation.classes.items()}
        write_json(place / "scores.json", summary)

    write_folder(folder, fill, EVALUATE)
