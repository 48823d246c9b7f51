"""Plots the label distribution of a corpus."""

from __future__ import annotations

from pathlib import Path

from listenwell.data.sources.statistics import Statistics
from listenwell.outputs import save_picture


def draw(statistics: Statistics, title: str, path: Path) -> None:
    """Draw bar charts of the emotions of dialogues and the labels of turns, one panel for each that the corpus has."""
    from matplotlib.figure import Figure

    panels = [
        (name, counts)
        for name, counts in (("emotions", statistics.emotions), ("labels of turns", statistics.labels))
        if counts
    ]
    if not panels:
        raise ValueError(f"{title} has neither emotions nor labels to draw")
    most = max(len(counts) for _, counts in panels)
    figure = Figure(figsize=(5.5 * len(panels), 1.4 + 0.21 * most), layout="constrained")
    for index, (name, counts) in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), index + 1)
        names, numbers = zip(*reversed(counts.most_common()), strict=True)
        axes.barh(names, numbers, color="#4878a8")
        axes.set_title(f"{title}: {name}", fontsize=10)
        axes.tick_params(axis="y", labelsize=8)
        axes.grid(axis="x", alpha=0.3)
        axes.set_xlabel("dialogues" if name == "emotions" else "turns")
    save_picture(figure, path, "data", dpi=110)
