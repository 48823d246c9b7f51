"""A classifier's label probabilities for every reply of a corpus, computed once and cached."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from listenwell.classifiers.label_cache import Begin, fingerprint
from listenwell.classifiers.labeller import Labeller
from listenwell.data.curation.atomic import written_whole
from listenwell.data.dialogue import Example
from listenwell.paths import writable_cache


def reply_chances(items: Sequence[Example], labeller: Labeller, begin: Begin | None = None) -> np.ndarray:
    """(items, labels) p(label | reply), in half precision; zeros if there is no reply."""
    texts = [item.reply.text for item in items if item.reply is not None]
    path = _place(texts, labeller)
    known = _read(path, len(texts))
    if known is None:
        done = begin("reading what replies express", len(texts)) if begin is not None and texts else None
        known = labeller.distribution(texts, done).astype(np.float16)
        _keep(path, known)
    chances = np.zeros((len(items), len(labeller.names)), np.float16)
    chances[[item.reply is not None for item in items]] = known
    return chances


def _place(texts: Sequence[str], labeller: Labeller) -> Path:
    """Returns the cache file for these texts, in this order, and exactly these weights."""
    digest = hashlib.sha256(fingerprint(labeller.checkpoint).encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "replace")).digest())
    return writable_cache() / "chances" / f"{digest.hexdigest()[:16]}.npy"


def _read(path: Path, rows: int) -> np.ndarray | None:
    with suppress(OSError, ValueError):  # missing, or cut off when the process was killed: recompute
        kept = np.load(path)
        return kept if len(kept) == rows else None
    return None


def _keep(path: Path, chances: np.ndarray) -> None:
    # Without a cache, only time is lost.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as unfinished, unfinished.open("wb") as file:
            np.save(file, chances)
