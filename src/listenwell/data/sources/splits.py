"""The names of the parts of a corpus, and how a file name identifies the split."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from listenwell.labels.taxonomy import unknown_name

SPLITS: tuple[str, ...] = ("train", "valid", "test")
_ALIASES = {"dev": "valid", "val": "valid", "validation": "valid"}


def split_name(split: str) -> str:
    """One of SPLITS; the usual other names of the validation part are understood."""
    name = split.strip().lower()
    name = _ALIASES.get(name, name)
    if name not in SPLITS:
        raise ValueError(unknown_name("split", split, SPLITS))
    return name


def split_of_file(name: str) -> str | None:
    """The split that a file named train.csv, dev.jsonl.gz … holds; None where the name does not say."""
    stem = name.split(".", 1)[0].lower()
    stem = _ALIASES.get(stem, stem)
    return stem if stem in SPLITS else None


def split_of_texts(texts: Iterable[str]) -> str:
    """For a corpus without published splits: eight dialogues of ten are train, one is valid, one is test.

    Decided by the texts alone, so that a dialogue that comes twice is not torn between two splits.
    """
    plain = "\n".join(" ".join(text.casefold().split()) for text in texts)
    tenth = hashlib.sha256(plain.encode("utf-8", "replace")).digest()[0] * 10 // 256
    return "train" if tenth < 8 else SPLITS[tenth - 7]
