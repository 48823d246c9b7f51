"""The small corpus that the project wrote itself and ships inside the package: `listenwell/corpus/*.jsonl`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable

from listenwell.data.dialogue import Dialogue
from listenwell.data.sources import jsonl
from listenwell.data.sources.report import Report
from listenwell.data.sources.splits import split_name

NAME = "shipped"
INSIDE = True
"""The files are inside the package."""


def files() -> list[Traversable]:
    """The corpus files, sorted by name. They may be inside a zip, so they are not paths, but `open("rb")` works."""
    corpus = package_files("listenwell").joinpath("corpus")
    entries = corpus.iterdir() if corpus.is_dir() else ()
    return sorted((entry for entry in entries if jsonl.is_jsonl(entry.name)), key=lambda entry: entry.name)


def languages() -> list[str]:
    """The languages of the shipped dialogues."""
    return sorted({dialogue.language for _, _, dialogue in _all(None)})


def read(split: str | None = None, language: str = "en", *, report: Report | None = None) -> Iterator[Dialogue]:
    """The shipped dialogues of a split (all by default) in one language."""
    wanted = None if split is None else split_name(split)
    if not any(dialogue.language == language for _, _, dialogue in _all(wanted)):
        raise ValueError(f"no shipped dialogues in {language!r}; there are: {', '.join(languages()) or 'none'}")
    return _read(wanted, language, Report() if report is None else report)


def _read(split: str | None, language: str, report: Report) -> Iterator[Dialogue]:
    inspector = jsonl.Inspector(report)
    for file, number, dialogue in _all(split):
        if dialogue.language == language:
            yield inspector.take(dialogue, file, number)


def _all(split: str | None) -> Iterator[tuple[str, int, Dialogue]]:
    for entry in files():
        with entry.open("rb") as stream:
            for number, dialogue in jsonl.read_stream(stream, entry.name, split):
                yield entry.name, number, dialogue
