from __future__ import annotations

from pathlib import Path
from typing import Any

VERBS = ("list", "stats", "convert", "check")


def data(
    verb: str = "list",
    source: str | None = None,
    split: str | None = None,
    path: Path | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    clean: bool = False,
    json: bool = False,
) -> None:
    """List the corpora; describe, convert or check one.

    `data` lists them. `data stats SOURCE` counts what one holds, what was dropped and what is dirty. `data convert
    SOURCE --out FILE.jsonl` writes it as JSON lines. `data check SOURCE` looks for duplicates within and across splits.

    Args:
        verb: list, stats, convert or check; a source's name alone means stats.
        source: A source by name or a .jsonl file.
        split: Only this split; all if not given.
        path: Where it lies, if not in LISTENWELL_DATA.
        out: For convert: the file to write; .gz is compressed.
        plot: For stats: also draw the labels into this picture (PNG, PDF or SVG).
        clean: Leave out junk turns and duplicates.
        json: Print JSON instead of tables.
    """
    from listenwell.taxonomy import unknown_name

    if verb not in VERBS and source is None:
        verb, source = "stats", verb
    if verb not in VERBS:
        raise ValueError(unknown_name("verb", verb, VERBS))
    if verb == "list":
        return _list()
    if source is None:
        raise ValueError(f"data {verb} needs a source; `listenwell data` lists them")
    if verb == "convert":
        return _convert(source, split, path, out, clean)
    if verb == "check":
        return _check(source, path, json)
    return _stats(source, split, path, plot, clean, json)


def _read(source: str, path: Path | None, split: str | None, clean: bool, report: Any) -> Any:
    from listenwell import sources

    return sources.read(source, path, split, report=report, **({"clean": True} if clean else {}))


def _list() -> None:
    from rich.console import Console

    from listenwell import sources
    from listenwell.commands.display import table

    rows = [(name, *_where(name)) for name in sources.SOURCES]
    Console().print(table("Sources (listenwell data stats SOURCE)", ("name", "what it is", "where"), rows))


def _stats(source: str, split: str | None, path: Path | None, plot: Path | None, clean: bool, json: bool) -> None:
    import json as encoder

    from rich.console import Console

    from listenwell.commands.display import table
    from listenwell.sources import Report
    from listenwell.sources.picture import draw
    from listenwell.sources.statistics import describe

    report, console = Report(), Console()
    found = describe(_read(source, path, split, clean, report), report)
    if plot is not None:
        draw(found, f"{source}, {split or 'all splits'}", plot)
    if json:
        print(encoder.dumps({**found.to_json(), "report": report.to_json()}))
        return
    console.print(table(f"{source}, {split or 'all splits'}", ("", ""), found.table()))
    _print_report(report, console)
    if plot is not None:
        console.print(f"drawn: {plot}", highlight=False)


def _print_report(report: Any, console: Any) -> None:
    from listenwell.commands.display import table

    met = [(row.fate, row.reason, f"{row.number:,}", row.first_seen) for row in report.table()]
    if met:
        console.print(table("Met on the way", ("fate", "reason", "times", "first seen"), met, right=("times",)))
    else:
        console.print("Nothing was dropped or dirty.")


def _convert(source: str, split: str | None, path: Path | None, out: Path | None, clean: bool) -> None:
    from rich.console import Console

    from listenwell.sources import Report
    from listenwell.sources.jsonl import write

    if out is None:
        raise ValueError("data convert needs --out FILE.jsonl")
    report = Report()
    count = write(_read(source, path, split, clean, report), out)
    console = Console()
    _print_report(report, console)
    console.print(f"{count:,} dialogues written to {out}", highlight=False)


def _check(source: str, path: Path | None, json: bool) -> None:
    import json as encoder
    from dataclasses import asdict

    from rich.console import Console

    from listenwell.commands.display import table
    from listenwell.sources.leakage import LONG_REPLY, check
    from listenwell.sources.splits import SPLITS

    found = check(SPLITS, lambda split: _read(source, path, split, False, None))
    if json:
        print(encoder.dumps(asdict(found)))
        return
    console = Console()
    rows = [(name, f"{number:,}") for name, number in found.within.items()]
    console.print(table(f"{source}: duplicate dialogues within", ("split", "times"), rows, right=("times",)))
    across = [
        (f"{pair.second} in {pair.first}", f"{pair.dialogues:,}", f"{pair.replies:,} of {pair.replies_of:,}")
        for pair in found.across
    ]
    columns = ("what of which", "dialogues", f"replies of {LONG_REPLY} words or more")
    console.print(table("across splits", columns, across, right=columns[1:]))


def _where(name: str) -> tuple[str, str]:
    from importlib import import_module

    from listenwell import sources

    module = import_module(sources.SOURCES[name])
    about = (module.__doc__ or "").strip().splitlines()[0]
    if name in ("shipped", "jsonl"):
        return about, "inside the package" if name == "shipped" else "any .jsonl file"
    try:
        return about, str(sources.find_data(name))
    except FileNotFoundError:
        return about, "not found: set LISTENWELL_DATA"
