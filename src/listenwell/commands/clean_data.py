"""`listenwell data clean`: clean a corpus step by step, with a report of each step."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def clean_data(
    source: str, split: str | None, path: Path | None, out: Path | None, options: dict[str, Any], json: bool = False
) -> None:
    """Clean the dialogues of a source into a .jsonl file and print what every step did."""
    import json as encoder
    from dataclasses import asdict

    from rich.console import Console
    from rich.markup import escape

    from listenwell.commands.display import table
    from listenwell.data import sources
    from listenwell.data.sources.cleaning import Cleaner
    from listenwell.data.sources.jsonl import write

    if out is None:
        raise ValueError("data clean needs --out FILE.jsonl")
    cleaner, report = Cleaner(), sources.Report()
    count = write(cleaner.clean(sources.read(source, path, split, report=report, **options)), out)
    if json:
        steps = {name: asdict(step) for name, step in cleaner.counts.items()}
        print(encoder.dumps({"read": report.dialogues, "written": count, "steps": steps}, ensure_ascii=False))
        return
    numbers = ("utterances changed", "utterances dropped", "dialogues dropped")
    rows = [
        (escape(name), f"{step.changed:,}", f"{step.utterances:,}", f"{step.dialogues:,}", escape(step.example))
        for name, step in cleaner.counts.items()
    ]
    console = Console()
    console.print(table(f"{source}, cleaned", ("step", *numbers, "example"), rows, right=numbers))
    console.print(f"{count:,} of {report.dialogues:,} dialogues written to {out}", highlight=False)
