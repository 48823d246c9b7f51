"""K-means by scikit-learn, or by faiss if it is installed and there are many vectors."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

MANY = 200_000
"""From this many vectors on, faiss is worth its startup time, if it is installed."""

CAREFUL_START = 20_000
"""Up to this many vectors, centres are initialised by k-means++; beyond, that would take longer than the clustering."""

ROUNDS = 20


def centres(vectors: Tensor, count: int, seed: int = 0) -> Tensor:
    """The centres (at most `count`, width) of the clusters of `vectors` (items, width).

    Equal vectors count as one point: if there are no more points than clusters, the points are the centres. Empty
    clusters are left out.
    """
    if not len(vectors):
        return vectors
    table = vectors.detach().float().cpu().numpy()
    points = np.unique(table, axis=0)
    cluster_centres = points if len(points) <= count else _fitted(table, count, seed)
    return torch.from_numpy(np.ascontiguousarray(cluster_centres)).to(vectors)


def _fitted(vectors: np.ndarray, count: int, seed: int) -> np.ndarray:
    if len(vectors) >= MANY and find_spec("faiss") is not None:
        return _by_faiss(vectors, count, seed)
    cluster = _scikit()
    start = "k-means++" if len(vectors) <= CAREFUL_START else "random"
    fit = cluster.KMeans(count, init=start, n_init=1, max_iter=ROUNDS, random_state=seed, copy_x=True).fit(vectors)
    return fit.cluster_centers_[np.unique(fit.labels_)]


def _by_faiss(vectors: np.ndarray, count: int, seed: int) -> np.ndarray:
    fit: Any = import_module("faiss").Kmeans(vectors.shape[1], count, niter=ROUNDS, seed=seed)
    fit.train(vectors)
    _, labels = fit.index.search(vectors, 1)
    return fit.centroids[np.unique(labels)]


def _scikit() -> Any:
    try:
        return import_module("sklearn.cluster")
    except ImportError as problem:
        raise ImportError("clustering needs scikit-learn: pip install 'listenwell[train]'") from problem
