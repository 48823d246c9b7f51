"""Evaluates a reply chooser on rated replies: how good are the replies that it would choose?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.checkpoint import write_json
from listenwell.classifiers.chooser import ReplyChooser
from listenwell.data.dialogue import Example
from listenwell.data.sources.jsonl import write_lines
from listenwell.evaluation.evaluate import Progress
from listenwell.labels.sets import RATINGS
from listenwell.metrics import Score
from listenwell.metrics.bootstrap import score_with_interval
from listenwell.metrics.score import Signature
from listenwell.metrics.sums import Statistics
from listenwell.outputs import EVALUATE, write_folder


@dataclass
class ChooserEvaluation:
    """A chooser's scores on rated replies, and a record for each reply."""

    system: str
    scores: list[Score]
    records: list[dict[str, Any]]
    about: dict[str, Any] = field(default_factory=dict)


def evaluate_chooser(
    chooser: ReplyChooser, items: Sequence[Example], about: dict[str, Any], progress: Progress, resamples: int = 1000
) -> ChooserEvaluation:
    """Rank the replies to each dialogue; compares the rating of the top one with the mean and the best rating."""
    rated = [item for item in items if item.reply is not None and _rating(item) is not None]
    if not rated:
        raise ValueError('there is nothing to score: no reply has a rating, "1" to "5", as its label')
    pairs = [(item.context, item.reply.text) for item in rated if item.reply is not None]
    fits = chooser.fit(pairs, progress("replies", len(pairs)))
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, item in enumerate(rated):
        groups[tuple(turn.text for turn in item.context)].append(row)
    ratings = np.array([_rating(item) for item in rated], dtype=np.float64)
    rows = [np.array(group) for group in groups.values()]
    values = {
        "rating-chosen": [ratings[some][fits[some].argmax()] for some in rows],
        "rating-any": [ratings[some].mean() for some in rows],
        "rating-best": [ratings[some].max() for some in rows],
    }
    scores = [
        score_with_interval(
            name,
            Statistics(np.stack([np.array(each), np.ones(len(each))], axis=1), "ratio"),
            Signature.of("rating", of=name.removeprefix("rating-"), by="reader", per="dialogue"),
            "higher",
            resamples=resamples,
        )
        for name, each in values.items()
    ]
    records = [
        {"id": item.id, "rating": _rating(item), "fit": round(float(fit), 4)}
        for item, fit in zip(rated, fits, strict=True)
    ]
    return ChooserEvaluation(chooser.name, scores, records, {**about, "items": len(rated), "dialogues": len(rows)})


def _rating(item: Example) -> int | None:
    label = item.label_of("reply")
    return None if label is None or label.name not in RATINGS.labels else RATINGS.labels.index(label.name) + 1


def write(evaluation: ChooserEvaluation, folder: Path) -> None:
    """Write scores.json, and fits.jsonl with one record per reply; neither contains text."""

    def fill(place: Path) -> None:
        write_lines(evaluation.records, place / "fits.jsonl")
        summary: dict[str, Any] = {"command": EVALUATE.command, "system": evaluation.system, "about": evaluation.about}
        summary["scores"] = [score.to_json() for score in evaluation.scores]
        write_json(place / "scores.json", summary)

    write_folder(folder, fill, EVALUATE)
