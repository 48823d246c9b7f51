from __future__ import annotations

from pathlib import Path


def data(source: str | None = None, split: str | None = None, path: Path | None = None, json: bool = False) -> None:
    """List the corpora, or describe one: what it holds, and what of it was dropped or is dirty.

    Args:
        source: A source by name or a .jsonl file; without it, all sources are listed.
        split: Only this split.
        path: Where it lies, if not in LISTENWELL_DATA.
        json: Print JSON instead of tables.
    """
    import json as encoder

    from rich.console import Console

    from listenwell import sources
    from listenwell.commands.display import table
    from listenwell.sources.statistics import describe

    console = Console()
    if source is None:
        rows = [(name, *_where(name)) for name in sources.SOURCES]
        console.print(table("Sources (listenwell data SOURCE)", ("name", "what it is", "where"), rows))
        return
    report = sources.Report()
    found = describe(sources.read(source, path, split, report=report), report)
    if json:
        print(encoder.dumps({**found.to_json(), "report": report.to_json()}))
        return
    console.print(table(f"{source}, {split or 'all splits'}", ("", ""), found.table()))
    met = [(row.fate, row.reason, f"{row.number:,}", row.first_seen) for row in report.table()]
    if met:
        console.print(table("Met on the way", ("fate", "reason", "times", "first seen"), met, right=("times",)))
    else:
        console.print("Nothing was dropped or dirty.")


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
