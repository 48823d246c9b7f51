"""Corpora by name: `read("empathetic-dialogues", split="train")` gives Dialogues, one at a time.

A source is one module with `read` and `files`, and `read_polarity` if its turns have more labels than a Turn holds; it
is imported only when its name is used. Several are read as one, one after another, by their names with + between:
"xdailydialog+emotionlines". A name with a split, "lccc@valid", is read from that split, whichever one is asked for: of
some corpora only the small files are at hand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from listenwell.data.dialogue import Dialogue
from listenwell.data.relabel import by_polarity
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.splits import SPLITS
from listenwell.labels.sets import POLARITY, LabelSet
from listenwell.labels.taxonomy import unknown_name
from listenwell.paths import DATA_VARIABLE, data_folder
from listenwell.plugins import import_plugin, plugins

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = [
    "SOURCES",
    "Report",
    "SourceError",
    "all_sources",
    "data_files",
    "data_hash",
    "find_data",
    "read",
    "source_module",
    "source_name",
]

SOURCES: dict[str, str] = {
    "empathetic-dialogues": "listenwell.data.sources.empathetic_dialogues",
    "shipped": "listenwell.data.sources.shipped",
    "jsonl": "listenwell.data.sources.jsonl",
    "dailydialog": "listenwell.data.sources.dailydialog",
    "xdailydialog": "listenwell.data.sources.xdailydialog",
    "edos": "listenwell.data.sources.edos",
    "empathetic-intents": "listenwell.data.sources.empathetic_intents",
    "emotionlines": "listenwell.data.sources.emotionlines",
    "goemotions": "listenwell.data.sources.goemotions",
    "lccc": "listenwell.data.sources.lccc",
    "smp2020-ewect": "listenwell.data.sources.smp2020_ewect",
    "nlpcc2014": "listenwell.data.sources.nlpcc2014",
    "nlpcc2013": "listenwell.data.sources.nlpcc2013",
    "nlpcc-sentences": "listenwell.data.sources.nlpcc_sentences",
    "weibo-senti": "listenwell.data.sources.weibo_senti",
    "weibo-raw": "listenwell.data.sources.weibo_raw",
    "smile": "listenwell.data.sources.smile",
    "chinese-chat": "listenwell.data.sources.chinese_chat",
    "epitome": "listenwell.data.sources.epitome",
    "curated": "listenwell.data.sources.curated",
    "grief": "listenwell.data.sources.grief",
    "talk": "listenwell.data.sources.talk",
    "attentive": "listenwell.data.sources.attentive",
}

GROUP = "listenwell.sources"
"""The entry points by which other packages add sources."""

SOURCE_SEPARATOR = "+"
SPLIT_MARK = "@"


def read(
    name: str,
    path: str | Path | None = None,
    split: str | None = None,
    *,
    labels: str | LabelSet = "emotion-intent",
    **options: Any,
) -> Iterator[Dialogue]:
    """The dialogues of a named source, of a .jsonl file, or of a curated folder given as the name.

    The turns have the source's own labels, whichever set is wanted; `labels="polarity"` alone maps them, onto negative,
    neutral and positive. `options` go to the source's own `read` (report=, strict=, clean=, language= …).
    """
    by_mood = labels in (POLARITY, POLARITY.name)
    if len(several := _several(name, path)) > 1:
        # A wrong name raises at the call.
        each = [(part, read(part, None, split, labels=labels, **options)) for part in several]
        # Two corpora may use one id for two dialogues.
        return (replace(dialogue, id=f"{part}/{dialogue.id}") for part, dialogues in each for dialogue in dialogues)
    name, split = _own_split(name, split)
    source, place = _resolve(name, path)
    given = () if place is None else (place,)
    read_polarity = getattr(source, "read_polarity", None)
    if by_mood and read_polarity is not None:
        return read_polarity(*given, split=split, **options)
    dialogues = source.read(*given, split=split, **options)
    return map(by_polarity, dialogues) if by_mood else dialogues


def data_files(
    name: str, path: str | Path | None = None, split: str | None = None, **options: Any
) -> list[Path | Traversable]:
    """The files that `read` would open, for `data_hash`; `options` are those that choose files, such as part=."""
    if len(several := _several(name, path)) > 1:
        return [file for part in several for file in data_files(part, None, split, **options)]
    name, split = _own_split(name, split)
    source, place = _resolve(name, path)
    if place is None:
        return list(source.files())
    # A source whose files are one split each gives the split beside the file.
    return [entry[0] if isinstance(entry, tuple) else entry for entry in source.files(place, split, **options)]


def data_hash(files: str | Path | Traversable | Iterable[str | Path | Traversable]) -> str:
    """The first 16 hex digits of the SHA-256 over the bytes of the files, in the order given."""
    several: Iterable[Any] = [files] if isinstance(files, str) or hasattr(files, "open") else files
    digest = hashlib.sha256()
    for file in several:
        with (Path(file) if isinstance(file, str) else file).open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:16]


def all_sources() -> dict[str, str]:
    """The module of each source by name: listenwell's own, then those that installed packages add."""
    return {**SOURCES, **{name: plugin.module for name, plugin in plugins(GROUP, SOURCES).items()}}


def source_module(name: str) -> ModuleType:
    """The module of a source; one that another package adds must have what is called in it."""
    plain = source_name(name)
    module = import_plugin(plain, SOURCES[plain] if plain in SOURCES else all_sources()[plain])
    needed = () if plain in SOURCES else ("FOLDER", "HOW_TO_GET", "files", "read")
    if missing := [part for part in needed if not hasattr(module, part)]:
        raise ValueError(f"{plain}: the plugin module {module.__name__} lacks {', '.join(missing)}")
    return module


def source_name(name: str) -> str:
    """The registered name: hyphens and underscores, small and capital letters are one."""
    if SOURCE_SEPARATOR in name:
        return SOURCE_SEPARATOR.join(source_name(part) for part in name.split(SOURCE_SEPARATOR))
    plain = _own_split(name, None)[0].strip().lower().replace("_", "-")
    known = SOURCES if plain in SOURCES else all_sources()
    if plain not in known:
        if Path(name).is_file():
            raise ValueError(
                f"{name}: expected a file of dialogues that ends in .jsonl or .jsonl.gz, one JSON object per line"
            )
        raise ValueError(unknown_name("source", name, known) + ". Your own dialogues: a path that ends in .jsonl")
    return plain


def find_data(name: str, path: str | Path | None = None) -> Path:
    """Where the files of a named corpus are: `path`, else a folder in `data_folder()`."""
    plain = source_name(name)
    if path is not None:
        place = Path(path).expanduser()
        if not place.exists():
            raise FileNotFoundError(f"{plain}: {place} is not there; name the folder or file of the corpus")
        return place
    source = source_module(plain)
    folder = getattr(source, "FOLDER", None)
    if folder is None:
        way_out = "read it with its name alone" if _is_inside(source) else "give the path of a .jsonl file"
        raise ValueError(f"{plain} has no folder; {way_out}")
    roots = data_roots()
    for root in roots:
        if (root / folder).is_dir():
            return root / folder
        if root.name == folder and root.is_dir():  # the variable names the corpus itself: what is meant is plain
            return root
    looked = ", ".join(str(root / folder) for root in roots)
    raise FileNotFoundError(
        f"{plain} not found; looked for {looked}. Set {DATA_VARIABLE} to the folder that holds {folder}/, "
        f"or give its path; {source.HOW_TO_GET}"
    )


def curated_folder(name: str) -> Path | None:
    """The folder that a name stands for, where it is one that `listenwell curate` wrote; "curated:DIR" is DIR."""
    prefix, colon, place = name.partition(":")
    if colon and prefix == "curated":
        return find_data("curated", place)
    folder = Path(name).expanduser()
    is_path = name not in SOURCES and (folder / "manifest.json").is_file()
    return folder if is_path else None


def data_roots() -> list[Path]:
    """The folders in which corpora are looked for, each corpus in a folder of its own."""
    return [data_folder()]


def _several(name: str, path: str | Path | None) -> list[str]:
    """The sources that a name stands for: one, or those with + between. A file may be called a+b.jsonl."""
    if SOURCE_SEPARATOR not in name or Path(name).expanduser().exists():
        return [name]
    if path is not None:
        raise ValueError(f"{name} are several sources in different places; leave the path {str(path)!r} out")
    return name.split(SOURCE_SEPARATOR)


def _own_split(name: str, split: str | None) -> tuple[str, str | None]:
    """A source without the split that its name may carry, and that split; else the one that is asked for."""
    source, mark, own = name.rpartition(SPLIT_MARK)
    if not mark or own not in SPLITS or Path(name).expanduser().exists():  # a folder may be called a@test
        return name, split
    return source, own


def _resolve(name: str, path: str | Path | None) -> tuple[ModuleType, Path | None]:
    """The module of a source and where its files are; None where they are inside the package."""
    from listenwell.data.sources import jsonl

    if path is None and jsonl.is_jsonl(name):
        return jsonl, Path(name).expanduser()
    if path is None and (folder := curated_folder(name)) is not None:
        return source_module("curated"), folder
    plain = source_name(name)
    source = source_module(plain)
    if _is_inside(source):
        if path is not None:
            raise ValueError(f"{plain} is inside the package and takes no path, found {str(path)!r}")
        return source, None
    return source, find_data(plain, path)


def _is_inside(source: ModuleType) -> bool:
    """Whether its files are inside the package."""
    return getattr(source, "INSIDE", False)
