"""Scores on subsets of the items: those whose dialogue has a given polarity or emotion.

Nothing is recomputed: a score's statistics, one row per item, are summed over the subset. Scores without statistics
(Distinct-n, unique replies, entropy) depend on the number of replies, and are not split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from listenwell.data.dialogue import Example
from listenwell.labels.sets import EMOTION, set_with
from listenwell.metrics.bootstrap import score_with_interval
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Statistics

POLARITIES = ("positive", "negative", "ambiguous", "neutral")
"""Polarities in the order of a table."""

Tables = dict[str, dict[str, list[Score]]]


def split_tables(scores: Sequence[Score], items: Sequence[Example], resamples: int) -> Tables:
    """Scores by polarity and by emotion of the dialogue, from the 32 or another label set; empty without emotions."""
    names = {item.emotion.name for item in items if item.emotion}
    known = EMOTION if any(name in EMOTION for name in names) else set_with(names)
    labels = sorted(names) if known is None else known.labels
    polarity = {} if known is None else known.polarity
    emotions = [item.emotion.name if item.emotion and item.emotion.name in labels else None for item in items]
    sides = [None if name is None else polarity.get(name) for name in emotions]
    tables = {
        "polarity": _table(scores, sides, emotions, POLARITIES, resamples),
        "emotion": _table(scores, emotions, emotions, labels, resamples),
    }
    return {by: groups for by, groups in tables.items() if groups}


def _table(
    scores: Sequence[Score],
    groups: Sequence[str | None],
    emotions: Sequence[str | None],
    order: Sequence[str],
    resamples: int,
) -> dict[str, list[Score]]:
    by_group: dict[str, list[Score]] = {}
    known = np.array([name is not None for name in emotions])
    for group in (name for name in order if name in groups):
        chosen = np.array([name == group for name in groups])
        parts = (_part(score, chosen, known, group, resamples) for score in scores)
        by_group[group] = [part for part in parts if part is not None]
    return by_group


def _part(score: Score, chosen: np.ndarray, known: np.ndarray, group: str, resamples: int) -> Score | None:
    """The score on the chosen items; None if its rows cannot be matched to the items."""
    if score.statistics is None:
        return None
    if len(score.statistics) != len(chosen):
        # Scores of predicted emotions only have rows for dialogues with an emotion.
        if len(score.statistics) != known.sum() or "absent" not in score.signature:
            return None
        chosen = chosen[known]
    rows = score.statistics.rows[chosen]
    signature = _without_interval(score.signature).plus(only=group, of_items=len(rows))
    statistics = Statistics(rows, score.statistics.combine)
    return score_with_interval(score.name, statistics, signature, score.better, score.unit, resamples=resamples)


def _without_interval(signature: Signature) -> Signature:
    return Signature(signature.metric, tuple(pair for pair in signature if pair[0] not in ("bs", "rs", "ci")))


def tables_json(tables: Tables) -> dict[str, Any]:
    return {
        by: {group: [s.to_json() for s in scores] for group, scores in groups.items()} for by, groups in tables.items()
    }
