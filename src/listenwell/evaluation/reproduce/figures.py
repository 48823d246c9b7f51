"""Draws the figures of a paper from the evaluations behind its tables."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from listenwell.evaluation.embeddings import draw, read
from listenwell.evaluation.reproduce.plan import Plan
from listenwell.evaluation.reproduce.spec import FigureSpec, PaperSpec
from listenwell.labels.taxonomy import EMOTIONS
from listenwell.metrics.extras import need
from listenwell.outputs import save_picture

COLOURS = ("#4878a8", "#c8773a", "#5b9a62", "#9a6fb0")


def draw_figures(paper: PaperSpec, plan: Plan, folder: Path) -> dict[str, Path]:
    """Draw the figures whose systems have been scored; returns their files by title."""
    pictures = {}
    for number, figure in paper.figures.items():
        place = folder / f"figure-{number}.png"
        if _draw(figure, paper, plan, place):
            pictures[f"Figure {number}: {figure.title}"] = place
    return pictures


def _draw(figure: FigureSpec, paper: PaperSpec, plan: Plan, place: Path) -> bool:
    scorings = {
        row: one
        for (row, _), several in plan.of_row.items()
        for one in several[:1]
        if row in figure.systems and one.done
    }
    if set(scorings) != set(figure.systems):
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    if figure.kind == "embeddings":
        draw([read(scorings[row].system) for row in figure.systems], place)
    else:
        accuracies = {row: accuracy_by_emotion(scorings[row].folder) for row in figure.systems}
        draw_by_emotion(accuracies, f"{paper.name}: {figure.title}", place)
    return True


def accuracy_by_emotion(evaluation: Path) -> dict[str, float]:
    """The accuracy by emotion, from an evaluation's tables.json."""
    tables = json.loads((evaluation / "tables.json").read_text(encoding="utf-8"))
    return {
        emotion: score["value"]
        for emotion, scores in tables["emotion"].items()
        for score in scores
        if score["name"] == "accuracy@1"
    }


def draw_by_emotion(accuracies: Mapping[str, Mapping[str, float]], title: str, place: Path) -> None:
    """Draw a grouped bar chart over the 32 emotions."""
    axes = need("matplotlib.figure", "a picture").Figure(figsize=(12, 4), layout="constrained").add_subplot()
    width = 0.8 / len(accuracies)
    for index, (name, values) in enumerate(accuracies.items()):
        places = [number + (index - (len(accuracies) - 1) / 2) * width for number in range(len(EMOTIONS))]
        heights = [values.get(emotion, 0.0) for emotion in EMOTIONS]
        axes.bar(places, heights, width, color=COLOURS[index % len(COLOURS)], label=name)
    axes.set_xticks(range(len(EMOTIONS)), EMOTIONS, rotation=90, fontsize=8)
    axes.set_ylabel("emotion accuracy, %", fontsize=9)
    axes.set_title(title, fontsize=10)
    axes.margins(x=0.01)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, frameon=False)
    save_picture(axes.figure, place, "reproduce", dpi=130)


def embedded(pictures: Mapping[str, Path]) -> dict[str, str]:
    """The pictures as data URIs, for a self-contained page."""
    return {
        title: f"data:image/png;base64,{base64.b64encode(place.read_bytes()).decode()}"
        for title, place in pictures.items()
    }
