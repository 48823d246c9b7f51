"""The emotion embeddings of trained systems: how well the polarities separate, and a plot (MIME's Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.labels.taxonomy import EMOTIONS, POSITIVE
from listenwell.loading import load
from listenwell.metrics.extras import need
from listenwell.outputs import save_picture

IS_POSITIVE = np.array([name in POSITIVE for name in EMOTIONS])

COLOURS = {"positive": "#2a7f62", "negative": "#b5483a"}


@dataclass(frozen=True, slots=True)
class Embeddings:
    """A system's embeddings of the 32 emotions (32, width), in the order of the taxonomy."""

    name: str
    vectors: np.ndarray

    def plane(self) -> tuple[np.ndarray, float]:
        """The emotions projected on the first two principal components (32, 2), and their share of the variance."""
        centred = self.vectors - self.vectors.mean(axis=0)
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        points = left[:, :2] * sizes[:2]
        # The sign of a component is arbitrary: positive emotions go to the right and top, to make plots comparable.
        points = points * np.where(points[IS_POSITIVE].mean(axis=0) < 0, -1.0, 1.0)
        return points, float((sizes[:2] ** 2).sum() / (sizes**2).sum())

    def scores(self) -> dict[str, float]:
        """How well the two polarities separate, by angle in the full space and by distance in the plane."""
        points, share = self.plane()
        return {
            "silhouette": silhouette(cosine_distances(self.vectors), IS_POSITIVE),
            "silhouette in the plane": silhouette(distances(points), IS_POSITIVE),
            "variance in the plane": share,
        }


def read(system: str) -> Embeddings:
    """Read the embeddings of a trained system, by name or folder."""
    bot = load(system, care=False)
    table = getattr(getattr(bot, "model", None), "emotion_embeddings", None)
    if table is None:
        raise ValueError(f"{system}: {bot.name} has no emotion embeddings to draw; mime and its variants have")
    return Embeddings(Path(system).name, table.numpy(force=True).astype(np.float64))


def distances(points: np.ndarray) -> np.ndarray:
    """Euclidean distances of all pairs (n, n)."""
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))


def cosine_distances(vectors: np.ndarray) -> np.ndarray:
    """1 − cosine for all pairs (n, n)."""
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return 1 - directions @ directions.T


def silhouette(apart: np.ndarray, groups: np.ndarray) -> float:
    """Rousseeuw's mean silhouette of two groups, from −1 to 1, given the distances of all pairs (n, n).

    For each point it is (b − a) / max(a, b), where a is the mean distance to the rest of its group and b the mean
    distance to the other group.
    """
    same = groups[:, None] == groups[None]
    own = (apart * (same & ~np.eye(len(apart), dtype=bool))).sum(axis=1) / (same.sum(axis=1) - 1)
    other = (apart * ~same).sum(axis=1) / (~same).sum(axis=1)
    return float(((other - own) / np.maximum(own, other)).mean())


def draw(spaces: Sequence[Embeddings], path: Path) -> None:
    """Draw the planes side by side, colored by polarity and with the names of the emotions."""
    figure = need("matplotlib.figure", "a picture").Figure(figsize=(6.2 * len(spaces), 6), layout="constrained")
    for index, one in enumerate(spaces):
        _draw_plane(figure.add_subplot(1, len(spaces), index + 1), one)
    figure.axes[0].legend(loc="best", fontsize=9, frameon=False)
    save_picture(figure, path, "embeddings", dpi=130)


def _draw_plane(axes: Any, one: Embeddings) -> None:
    points, share = one.plane()
    for polarity, chosen in (("positive", IS_POSITIVE), ("negative", ~IS_POSITIVE)):
        colour = COLOURS[polarity]
        axes.scatter(*points[chosen].T, color=colour, s=22, label=polarity)
        for name, point in zip(np.array(EMOTIONS)[chosen], points[chosen], strict=True):
            axes.annotate(name, point, (3, 3), textcoords="offset points", fontsize=8, color=colour)
    scores = one.scores()
    subtitle = f"silhouette {scores['silhouette']:.2f}, in this plane {scores['silhouette in the plane']:.2f}"
    axes.set_title(f"{one.name}\n{subtitle}, which has {share:.0%} of the variance", fontsize=10)
    axes.set_xlabel("first principal component", fontsize=9)
    axes.set_ylabel("second principal component", fontsize=9)
    axes.margins(0.12)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
