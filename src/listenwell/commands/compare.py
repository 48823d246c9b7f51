from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console

    from listenwell.evaluation.compare import Column, Comparison, Shown


def compare(
    runs: list[str],
    published: list[str] | None = None,
    split: str = "test",
    data: str | None = None,
    baseline: str | None = None,
    scores: list[str] | None = None,
    samples: int = 300,
    out: Path | None = None,
    format: Literal["text", "markdown", "html", "json"] = "text",
) -> None:
    """Put evaluated systems into one table, with paired tests, and the papers' numbers underneath.

    All must have been scored on the same items. Every other system is tested against the baseline by the paired
    bootstrap and the paired t-test. A score that a system lacks is absent, not zero.

    Of a run's evaluations the one on the whole split is taken, or else that on the most items; one by another decoding,
    or on fewer items, is named by its folder: runs/*/evaluation/edos-test-200-beam32*.

    Args:
        runs: Folders of evaluated runs, folders that `listenwell evaluate` wrote, or names of trained systems.
        published: A table of a paper, such as mime/2 or meed2/3/ed; may be given several times.
        split: Which split's evaluation of a run.
        data: The corpus of the evaluation, where that was named: `listenwell evaluate --data`.
        baseline: The one of the runs that the others are tested against; the first if not given.
        scores: A score to show instead of all; may be given several times.
        samples: How many items the page shows the replies to, drawn evenly over the emotions.
        out: Folder for compare.md, compare.html (one page, with sample replies) and compare.json.
        format: What to print.
    """
    import json
    import sys

    from rich.console import Console

    from listenwell.commands.display import tracked
    from listenwell.commands.numbers import at_least
    from listenwell.commands.terminal import shows_all
    from listenwell.evaluation.compare import compare as put_together
    from listenwell.evaluation.html_report import page
    from listenwell.evaluation.markdown import markdown
    from listenwell.evaluation.store import read_all
    from listenwell.outputs import COMPARE, check_folder, write_folder

    at_least(0, samples=samples)
    if out is not None:
        check_folder(out, COMPARE)
    systems = read_all(runs, split, data)
    if baseline in runs:
        baseline = systems[runs.index(baseline)].name
    with tracked() as progress:
        found = put_together(systems, papers=published or (), baseline=baseline, scores=scores or (), progress=progress)
    forms = {
        "markdown": lambda: markdown(found),
        "html": lambda: page(found, samples),
        "json": lambda: json.dumps(found.to_json(), indent=1, ensure_ascii=False) + "\n",
    }
    if format == "text":
        print_text(found, Console(width=None if Console().is_terminal else 160))
    elif format == "json":
        print(json.dumps(found.to_json(), indent=1, ensure_ascii=not shows_all()))
    else:
        sys.stdout.write(forms[format]())
    if out is not None:
        names = {"markdown": "compare.md", "html": "compare.html", "json": "compare.json"}

        def fill(place: Path) -> None:
            for kind, name in names.items():
                (place / name).write_text(forms[kind](), encoding="utf-8")

        write_folder(out, fill, COMPARE)
        print(f"written to {out}: {', '.join(names.values())}", file=sys.stderr)


def print_text(found: Comparison, console: Console) -> None:
    """As many tables side by side as the columns need: a terminal is narrow, and a row must stay a row."""
    from listenwell.evaluation.published import NOTES

    console.print(found.title, style="bold", markup=False, highlight=False)
    for columns in _fitting(found, console.width):
        console.print(_scores(found, columns))
    lines = [found.legend, *(f"[{n}] {NOTES[key]}" for n, key in enumerate(found.footnotes, 1)), *found.remarks]
    for line in lines:
        console.print(line, markup=False, highlight=False)
    if found.tests:
        console.print(f"\nAgainst {found.baseline}", style="bold", markup=False, highlight=False)
        console.print(_tests(found))


def _scores(found: Comparison, columns: Sequence[Column]) -> Any:
    from itertools import groupby

    from rich.text import Text

    from listenwell.commands.display import table

    heads = [str(column) for column in columns]
    made = table("", ["system", *heads], (), right=heads)
    for one in found.systems:
        made.add_row(Text(one.name), *(_cell(found.cell(one, column)) for column in columns))
    shown = [(row, [found.published_cell(row, column) for column in columns]) for row in found.published]
    for where, rows in groupby((pair for pair in shown if any(pair[1])), key=lambda pair: pair[0].where):
        made.add_section()
        made.add_row(Text(f"published: {where}", style="dim italic"))
        for row, cells in rows:
            made.add_row(Text(f"  {row.system}", style="italic"), *map(_cell, cells))
    return made


def _cell(shown: Shown | None) -> Any:
    from rich.text import Text

    from listenwell.evaluation.compare import ABSENT, MARKS

    if shown is None:
        return Text(ABSENT, style="dim")
    mark = f" {MARKS[shown.verdict]}" if shown.verdict else ""
    text = Text(shown.value + mark, style="bold" if shown.best else "")
    if shown.note:
        text.append(f" [{shown.note}]", style="dim")
    if shown.interval:
        text.append(f"\n{shown.interval}", style="not bold dim")
    return text


def _fitting(found: Comparison, width: int) -> Iterator[list[Column]]:
    """The columns, cut into runs that fit the width beside the systems' names."""
    names = [one.name for one in found.systems]
    names += [line for row in found.published for line in (f"  {row.system}", f"published: {row.where}")]
    taken = first = max(map(len, names)) + 4
    chosen: list[Column] = []
    for column in found.columns:
        cells = [found.cell(one, column) for one in found.systems]
        needed = max([len(str(column)), *(max(len(c.value) + 2, len(c.interval)) for c in cells if c)]) + 4
        if chosen and taken + needed > width:
            yield chosen
            chosen, taken = [], first
        chosen.append(column)
        taken += needed
    if chosen:
        yield chosen


def _tests(found: Comparison) -> Any:
    from rich.text import Text

    from listenwell.commands.display import table
    from listenwell.evaluation.compare import TESTED

    made = table("", TESTED, (), right=TESTED[2:])
    for row in found.tested_rows():
        made.add_row(*map(Text, row))
    return made
