"""The names of splits, and how to tell the split from a file name or from texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from listenwell.labels.taxonomy import unknown_name

SPLITS: tuple[str, ...] = ("train", "valid", "test")
_ALIASES = {"dev": "valid", "val": "valid", "validation": "valid"}


def split_name(split: str) -> str:
    """Normalizes the name of a split to one of SPLITS; accepts the usual aliases of "valid"."""
    name = split.strip().lower()
    name = _ALIASES.get(name, name)
    if name not in SPLITS:
        raise ValueError(unknown_name("split", split, SPLITS))
    return name


def split_of_file(name: str) -> str | None:
    """The split of a file named train.csv, dev.jsonl.gz …; None if the name does not tell."""
    stem = name.split(".", 1)[0].lower()
    stem = _ALIASES.get(stem, stem)
    return stem if stem in SPLITS else None


def split_of_texts(texts: Iterable[str]) -> str:
    """Assign a split in a corpus without published ones: 80 % train, 10 % valid, 10 % test.

    The split depends only on a hash of the texts, so that duplicates of a dialogue are in the same split.
    """
    plain = "\n".join(" ".join(text.casefold().split()) for text in texts)
    tenth = hashlib.sha256(plain.encode("utf-8", "replace")).digest()[0] * 10 // 256
    return "train" if tenth < 8 else SPLITS[tenth - 7]
