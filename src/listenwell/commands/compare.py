from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console

    from listenwell.evaluation.compare import Column, Comparison, TableCell


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
    picture: Path | None = None,
    axes: str = "bleu-2,posi",
) -> None:
    """Compare evaluated systems in one table, with paired tests, and the papers' numbers below.

    All systems must have been scored on the same items. Every other system is tested against the baseline by the paired
    bootstrap and the paired t-test. A score that a system lacks is absent, not zero.

    Of a run's evaluations, the one on the whole split is used, or else the one on the most items. To use one with
    different decoding or fewer items, give its folder: runs/*/evaluation/edos-test-200-beam32*.

    Args:
        runs: Folders of evaluated runs, folders that `listenwell evaluate` wrote, or names of trained systems.
        published: A table of a paper, such as mime/2 or meed2/3/ed; may be given several times.
        split: Which split's evaluation of a run.
        data: The corpus of the evaluation, if it was given to `listenwell evaluate --data`.
        baseline: The run that the others are tested against; the first if not given.
        scores: A score to show instead of all; may be given several times.
        samples: How many items the page shows replies to, drawn evenly over the emotions.
        out: Folder for compare.md, compare.html (one page, with sample replies) and compare.json.
        format: What to print.
        picture: File for a picture (.png, .pdf or .svg) of all systems by two of their scores.
        axes: The two scores of the picture, horizontal and vertical: how fitting the replies are, and how positive.
    """
    import json
    import sys

    from rich.console import Console

    from listenwell.commands.display import tracked
    from listenwell.commands.numbers import at_least
    from listenwell.commands.terminal import shows_all
    from listenwell.evaluation.compare import compare as build_comparison
    from listenwell.evaluation.html_report import page
    from listenwell.evaluation.markdown import markdown
    from listenwell.evaluation.pictures import draw_against
    from listenwell.evaluation.store import read_all
    from listenwell.outputs import COMPARE, check_folder, check_picture, write_folder

    at_least(0, samples=samples)
    if out is not None:
        check_folder(out, COMPARE)
    across, _, up = axes.partition(",")
    if not across or not up:
        raise ValueError(f"--axes takes two scores with a comma between them, such as bleu-2,posi, found {axes!r}")
    if picture is not None:
        check_picture(picture, "compare", "--picture")
    systems = read_all(runs, split, data)
    if baseline in runs:
        baseline = systems[runs.index(baseline)].name
    with tracked() as progress:
        comparison = build_comparison(
            systems, papers=published or (), baseline=baseline, scores=scores or (), progress=progress
        )
    forms = {
        "markdown": lambda: markdown(comparison),
        "html": lambda: page(comparison, samples),
        "json": lambda: json.dumps(comparison.to_json(), indent=1, ensure_ascii=False) + "\n",
    }
    if format == "text":
        print_text(comparison, Console(width=None if Console().is_terminal else 160))
    elif format == "json":
        print(json.dumps(comparison.to_json(), indent=1, ensure_ascii=not shows_all()))
    else:
        sys.stdout.write(forms[format]())
    if out is not None:
        names = {"markdown": "compare.md", "html": "compare.html", "json": "compare.json"}

        def fill(place: Path) -> None:
            for kind, name in names.items():
                (place / name).write_text(forms[kind](), encoding="utf-8")

        write_folder(out, fill, COMPARE)
        print(f"written to {out}: {', '.join(names.values())}", file=sys.stderr)
    if picture is not None:
        draw_against({one.name: one.scores for one in systems}, across.strip(), up.strip(), picture)
        print(f"drawn to {picture}", file=sys.stderr)


def print_text(comparison: Comparison, console: Console) -> None:
    """Print the comparison, split into several tables if the columns do not fit the terminal's width."""
    from listenwell.evaluation.published import NOTES

    console.print(comparison.title, style="bold", markup=False, highlight=False)
    for columns in _fitting(comparison, console.width):
        console.print(_scores(comparison, columns))
    lines = [
        comparison.legend,
        *(f"[{n}] {NOTES[key]}" for n, key in enumerate(comparison.footnotes, 1)),
        *comparison.remarks,
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False)
    if comparison.tests:
        console.print(f"\nAgainst {comparison.baseline}", style="bold", markup=False, highlight=False)
        console.print(_tests(comparison))


def _scores(comparison: Comparison, columns: Sequence[Column]) -> Any:
    from itertools import groupby

    from rich.text import Text

    from listenwell.commands.display import table

    heads = [str(column) for column in columns]
    grid = table("", ["system", *heads], (), right=heads)
    for one in comparison.systems:
        grid.add_row(Text(one.name), *(_cell(comparison.cell(one, column)) for column in columns))
    shown = [(row, [comparison.published_cell(row, column) for column in columns]) for row in comparison.published]
    for where, rows in groupby((pair for pair in shown if any(pair[1])), key=lambda pair: pair[0].where):
        grid.add_section()
        grid.add_row(Text(f"published: {where}", style="dim italic"))
        for row, cells in rows:
            grid.add_row(Text(f"  {row.system}", style="italic"), *map(_cell, cells))
    return grid


def _cell(shown: TableCell | None) -> Any:
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


def _fitting(comparison: Comparison, width: int) -> Iterator[list[Column]]:
    """Split the columns into groups that fit the width next to the systems' names."""
    names = [one.name for one in comparison.systems]
    names += [line for row in comparison.published for line in (f"  {row.system}", f"published: {row.where}")]
    taken = first = max(map(len, names)) + 4
    chosen: list[Column] = []
    for column in comparison.columns:
        cells = [comparison.cell(one, column) for one in comparison.systems]
        needed = max([len(str(column)), *(max(len(c.value) + 2, len(c.interval)) for c in cells if c)]) + 4
        if chosen and taken + needed > width:
            yield chosen
            chosen, taken = [], first
        chosen.append(column)
        taken += needed
    if chosen:
        yield chosen


def _tests(comparison: Comparison) -> Any:
    from rich.text import Text

    from listenwell.commands.display import table
    from listenwell.evaluation.compare import TESTED

    grid = table("", TESTED, (), right=TESTED[2:])
    for row in comparison.tested_rows():
        grid.add_row(*map(Text, row))
    return grid
