"""Corpora by name: `read("empathetic-dialogues", split="train")` yields Dialogues, one at a time.

A source is a module with `read` and `files`, and `read_polarity` if its turns can have more labels than a Turn holds;
it is only imported when its name is used. Names joined with +, such as "xdailydialog+emotionlines", are read one after
another as one source. A name with a split, such as "lccc@valid", is always read from that split, whichever is
requested, since only the small files of some corpora may be available.
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
"""The entry point group with which other packages add sources."""

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
    """Read the dialogues of a source, of a .jsonl file, or of a curated folder; `name` is its name or path.

    Turns keep the source's own labels, unless `labels="polarity"`, which maps them to negative, neutral and positive;
    other values have no effect. `options` are passed to the source's own `read` (report=, strict=, clean=, language=
    …).
    """
    by_mood = labels in (POLARITY, POLARITY.name)
    if len(several := _several(name, path)) > 1:
        # Read eagerly, so that a wrong name raises at the call.
        each = [(part, read(part, None, split, labels=labels, **options)) for part in several]
        # Two corpora may use the same id.
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
    """The files that `read` would open, for `data_hash`; `options` are those that select files, such as part=."""
    if len(several := _several(name, path)) > 1:
        return [file for part in several for file in data_files(part, None, split, **options)]
    name, split = _own_split(name, split)
    source, place = _resolve(name, path)
    if place is None:
        return list(source.files())
    # A source with one file per split also returns the split of each file.
    return [entry[0] if isinstance(entry, tuple) else entry for entry in source.files(place, split, **options)]


def data_hash(files: str | Path | Traversable | Iterable[str | Path | Traversable]) -> str:
    """The first 16 hex digits of the SHA-256 of the files' bytes, in the given order."""
    several: Iterable[Any] = [files] if isinstance(files, str) or hasattr(files, "open") else files
    digest = hashlib.sha256()
    for file in several:
        with (Path(file) if isinstance(file, str) else file).open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:16]


def all_sources() -> dict[str, str]:
    """The module of each source by name: listenwell's own, then those added by installed packages."""
    return {**SOURCES, **{name: plugin.module for name, plugin in plugins(GROUP, SOURCES).items()}}


def source_module(name: str) -> ModuleType:
    """The module of a source. One from another package must define everything that we use of it."""
    plain = source_name(name)
    module = import_plugin(plain, SOURCES[plain] if plain in SOURCES else all_sources()[plain])
    needed = () if plain in SOURCES else ("FOLDER", "HOW_TO_GET", "files", "read")
    if missing := [part for part in needed if not hasattr(module, part)]:
        raise ValueError(f"{plain}: the plugin module {module.__name__} lacks {', '.join(missing)}")
    return module


def source_name(name: str) -> str:
    """The registered name of a source; hyphens and underscores are equivalent, and case is ignored."""
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
    """The folder or file of a corpus: `path` if given, else a folder in `data_folder()`."""
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
        if root.name == folder and root.is_dir():  # the variable is set to the corpus's own folder
            return root
    looked = ", ".join(str(root / folder) for root in roots)
    raise FileNotFoundError(
        f"{plain} not found; looked for {looked}. Set {DATA_VARIABLE} to the folder that holds {folder}/, "
        f"or give its path; {source.HOW_TO_GET}"
    )


def curated_folder(name: str) -> Path | None:
    """The folder, if `name` is the path of one that `listenwell curate` wrote, or is "curated:DIR"; else None."""
    prefix, colon, place = name.partition(":")
    if colon and prefix == "curated":
        return find_data("curated", place)
    folder = Path(name).expanduser()
    is_path = name not in SOURCES and (folder / "manifest.json").is_file()
    return folder if is_path else None


def data_roots() -> list[Path]:
    """The folders to search for corpora; each corpus has its own folder in one of them."""
    return [data_folder()]


def _several(name: str, path: str | Path | None) -> list[str]:
    """Splits a name at +, unless it is the name of an existing file, such as a+b.jsonl."""
    if SOURCE_SEPARATOR not in name or Path(name).expanduser().exists():
        return [name]
    if path is not None:
        raise ValueError(f"{name} are several sources in different places; leave the path {str(path)!r} out")
    return name.split(SOURCE_SEPARATOR)


def _own_split(name: str, split: str | None) -> tuple[str, str | None]:
    """Separates a name such as "lccc@valid" into source and split; without a split, returns the requested one."""
    source, mark, own = name.rpartition(SPLIT_MARK)
    if not mark or own not in SPLITS or Path(name).expanduser().exists():  # a folder may be named a@test
        return name, split
    return source, own


def _resolve(name: str, path: str | Path | None) -> tuple[ModuleType, Path | None]:
    """The module of a source and the path of its files, which is None if they are inside the package."""
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
    """Whether the source's files are inside the package."""
    return getattr(source, "INSIDE", False)
