"""A corpus that `listenwell curate` made of subtitles or posts; the folder's path names it.

80 % of the files are train, 10 % valid and 10 % test, so that all dialogues of a film are in one split; posts are split
by thread, by their texts. `part="emotional"` reads only the most emotional dialogues, if any were selected. Turns have
the labels of the classifier that the corpus was labelled with.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from listenwell.data.curation import manifest
from listenwell.data.dialogue import Dialogue
from listenwell.data.sources.report import Report
from listenwell.data.sources.splits import split_name
from listenwell.labels.taxonomy import unknown_name

NAME = "curated"
FOLDER = "curated"
HOW_TO_GET = "`listenwell curate subtitles FILES --out DIR` makes one; name its folder"
PARTS = ("emotional",)


def files(path: str | Path, split: str | None = None, *, part: str | None = None) -> list[Path]:
    """The shards, each with dialogues of every split and part."""
    _check(split, part)
    return manifest.shard_files(Path(path))


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    clean: bool = False,
    part: str | None = None,
) -> Iterator[Dialogue]:
    """The dialogues of a split (all by default). They are already clean: `clean` has no effect."""
    wanted = _check(split, part)
    folder = Path(path)
    manifest.shard_files(folder)  # missing files raise at the call
    return _read(folder, wanted, part, Report() if report is None else report)


def _read(folder: Path, split: str | None, part: str | None, report: Report) -> Iterator[Dialogue]:
    for curated in manifest.read_curated(folder):
        report.rows += 1
        if split in (None, curated.split) and (part is None or curated.selected):
            report.conversations += 1
            report.keep(len(curated.turns))
            yield curated.to_dialogue()


def _check(split: str | None, part: str | None) -> str | None:
    if part not in (None, *PARTS):
        raise ValueError(unknown_name("part", str(part), PARTS))
    return None if split is None else split_name(split)
