"""Emotion embeddings: silhouettes against scikit-learn, projections by hand, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score

from listenwell import checkpoint, cli
from listenwell.checkpoint import Checkpoint
from listenwell.evaluation.embeddings import IS_POSITIVE, Embeddings, cosine_distances, distances, read, silhouette


@pytest.fixture
def vectors() -> np.ndarray:
    """Two loose clouds in ten dimensions."""
    random = np.random.default_rng(3)
    return random.normal(size=(32, 10)) + 1.5 * IS_POSITIVE[:, None] * random.normal(size=10)


@pytest.fixture
def runs(tiny_model, tokenizer, tmp_path: Path) -> dict[str, str]:
    for name in ("mime", "mime-no-mimicry", "multi-trs"):
        checkpoint.save(Checkpoint(name, tiny_model(name), tokenizer), tmp_path / name / "best")
    return {name: str(tmp_path / name) for name in ("mime", "mime-no-mimicry", "multi-trs")}


def test_the_silhouette_is_that_of_scikit_learn(vectors):
    cosine = silhouette_score(vectors, IS_POSITIVE, metric="cosine")
    assert silhouette(cosine_distances(vectors), IS_POSITIVE) == pytest.approx(cosine)
    euclidean = silhouette_score(vectors, IS_POSITIVE)
    assert silhouette(distances(vectors), IS_POSITIVE) == pytest.approx(euclidean)


def test_the_plane_is_that_of_the_first_two_principal_components(vectors):
    points, share = Embeddings("some", vectors).plane()
    slow = PCA(2).fit(vectors)
    assert np.abs(points) == pytest.approx(np.abs(slow.transform(vectors)))
    assert share == pytest.approx(slow.explained_variance_ratio_.sum())
    assert (points[IS_POSITIVE].mean(axis=0) > 0).all()


def test_polarities_that_lie_apart_score_near_one():
    vectors = np.where(IS_POSITIVE[:, None], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    vectors = vectors + 0.01 * np.random.default_rng(0).normal(size=(32, 3))
    scores = Embeddings("apart", vectors).scores()
    assert scores["silhouette"] > 0.99
    assert scores["silhouette in the plane"] > 0.95


def test_the_command_measures_and_draws_systems_side_by_side(runs, tmp_path, capsys):
    picture = tmp_path / "figures" / "embeddings.png"
    cli.main(["embeddings", runs["mime"], runs["mime-no-mimicry"], "--out", str(picture)])
    said = capsys.readouterr().out
    assert "mime-no-mimicry" in said
    assert "silhouette" in said
    assert picture.stat().st_size > 10_000
    cli.main(["embeddings", runs["mime"], "--json"])
    (record,) = json.loads(capsys.readouterr().out)
    assert record == {"system": "mime", **read(runs["mime"]).scores()}


def test_a_system_without_emotion_embeddings_is_named(runs):
    with pytest.raises(SystemExit, match="multi-trs has no emotion embeddings to draw"):
        cli.main(["embeddings", runs["mime"], runs["multi-trs"]])
