"""Plots of labels (confusion matrices, and frequencies as in MEED2's Figures 2 and 5), and of systems by two of their
scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from listenwell.labels.taxonomy import EMOTIONS, INTENTS, LABELS
from listenwell.metrics.extras import need
from listenwell.metrics.score import Score
from listenwell.outputs import save_picture

COLOURS = ("#4878a8", "#c8773a", "#5b9a62", "#9a6fb0", "#7f7f7f")
LABELLED_FROM = 10
"""Cells of a confusion matrix show their number from this percentage on."""


def draw_confusion(table: np.ndarray, names: Sequence[str], title: str, path: Path) -> None:
    """Draw a confusion matrix, normalized by row: the share of a gold label's items that were given each label.

    table (labels, labels): how often items with the row's gold label were given the column's label. Labels that are
    never gold have no row, and labels that are never given no column.
    """
    rows, columns = (np.flatnonzero(table.sum(axis=axis)).tolist() for axis in (1, 0))
    if not rows:
        raise ValueError("there are no items to draw a confusion matrix of")
    shares = 100 * table[np.ix_(rows, columns)] / table[rows].sum(axis=1, keepdims=True)
    size = (3.2 + 0.27 * len(columns), 2.4 + 0.25 * len(rows))
    axes = need("matplotlib.figure", "a picture").Figure(figsize=size, layout="constrained").add_subplot()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for row, column in zip(*np.nonzero(shares >= LABELLED_FROM), strict=True):
        light = "white" if shares[row, column] > 55 else "black"
        axes.text(column, row, f"{shares[row, column]:.0f}", ha="center", va="center", fontsize=6, color=light)
    axes.set_xticks(range(len(columns)), [names[i] for i in columns], rotation=90, fontsize=7)
    axes.set_yticks(range(len(rows)), [f"{names[i]} ({table[i].sum():,})" for i in rows], fontsize=7)
    axes.set_xlabel("label given", fontsize=9)
    axes.set_ylabel("gold label (items)", fontsize=9)
    right = table.diagonal().sum() / table.sum()
    axes.set_title(f"{title}: {right:.1%} right", fontsize=10)
    axes.figure.colorbar(image, ax=axes, shrink=0.5, label="% of the gold label's items")
    save_picture(axes.figure, path, "evaluate", dpi=130)


def draw_distributions(
    counts: Mapping[str, Mapping[str, int]], title: str, path: Path, command: str = "evaluate"
) -> None:
    """Draw a bar chart with the share of each of the 41 labels, with several corpora or systems side by side.

    `counts`: for each corpus or system (one color each), how often it has each label; labels outside the 41 are
    ignored. Emotions, intents and neutral form three groups, in the order of the taxonomy. The `command` is recorded
    in the file.
    """
    counts = {name: {label: by_label.get(label, 0) for label in LABELS} for name, by_label in counts.items()}
    totals = {name: sum(by_label.values()) for name, by_label in counts.items()}
    if not counts or not all(totals.values()):
        empty = ", ".join(name for name, total in totals.items() if not total)
        raise ValueError(f"there are no labels to draw{f' of {empty}' if empty else ''}")
    axes = need("matplotlib.figure", "a picture").Figure(figsize=(12, 4.2), layout="constrained").add_subplot()
    places, width = _grouped(), 0.8 / len(counts)
    for index, (name, by_label) in enumerate(counts.items()):
        shares = [100 * by_label[label] / totals[name] for label in LABELS]
        offset = (index - (len(counts) - 1) / 2) * width
        colour = COLOURS[index % len(COLOURS)]
        axes.bar(places + offset, shares, width, color=colour, label=f"{name} ({totals[name]:,})")
    axes.set_xticks(places, LABELS, rotation=90, fontsize=8)
    axes.set_ylabel("% of labels", fontsize=9)
    axes.set_title(title, fontsize=10)
    axes.margins(x=0.01)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, frameon=False)
    save_picture(axes.figure, path, command, dpi=130)


def draw_against(systems: Mapping[str, Mapping[str, Score]], across: str, up: str, path: Path) -> None:
    """Draw one point per system: the score `across` on the x axis and `up` on the y axis, with intervals as error bars.

    `systems`: the scores of each system by name. Systems without one of the two scores are not drawn.
    """
    drawn = {name: scores for name, scores in systems.items() if {across, up} <= scores.keys()}
    if not drawn:
        raise ValueError(
            f"no system has both scores, {across} and {up}; give them with evaluate --metrics {across},{up}"
        )
    axes = need("matplotlib.figure", "a picture").Figure(figsize=(8, 6), layout="constrained").add_subplot()
    for index, (name, scores) in enumerate(drawn.items()):
        x, y = scores[across], scores[up]
        colour = COLOURS[index % len(COLOURS)]
        bars = {"xerr": _bar(x), "yerr": _bar(y), "elinewidth": 0.8, "capsize": 2}
        axes.errorbar([x.value], [y.value], fmt="o", color=colour, markersize=5, **bars)
        axes.annotate(name, (x.value, y.value), (5, 4), textcoords="offset points", fontsize=8, color=colour)
    for name, label in ((across, axes.set_xlabel), (up, axes.set_ylabel)):
        score = next(iter(drawn.values()))[name]
        label(f"{name}{', %' if score.unit == '%' else ''} ({score.better} is better)", fontsize=9)
    axes.margins(0.12)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    save_picture(axes.figure, path, "compare", dpi=130)


def _bar(score: Score) -> list[list[float]] | None:
    """The error bar of a score: how far its interval extends to both sides; None without an interval."""
    if score.low is None or score.high is None:
        return None
    return [[max(score.value - score.low, 0.0)], [max(score.high - score.value, 0.0)]]


def _grouped() -> np.ndarray:
    """The x positions of the labels, with gaps before the intents and before neutral."""
    gaps = np.zeros(len(LABELS))
    gaps[len(EMOTIONS) :] += 0.8
    gaps[len(EMOTIONS) + len(INTENTS) :] += 0.8
    return np.arange(len(LABELS)) + gaps
