"""Renders a comparison as Markdown, for a report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from listenwell.evaluation import published
from listenwell.evaluation.compare import ABSENT, HOW_TESTED, MARKS, TESTED, Comparison, TableCell


def markdown(comparison: Comparison) -> str:
    """Render the table, the notes, the paired tests, the systems and the signatures."""
    parts = [f"# {escaped(comparison.title)}", _scores(comparison), escaped(comparison.legend)]
    if comparison.footnotes or comparison.remarks:
        notes = [f"{n}. {escaped(published.NOTES[key])}" for n, key in enumerate(comparison.footnotes, 1)]
        remarks = [f"- {escaped(remark)}" for remark in comparison.remarks]
        parts += ["## Notes", *("\n".join(lines) for lines in (notes, remarks) if lines)]
    if comparison.tests:
        parts += [f"## Against {escaped(str(comparison.baseline))}", _tests(comparison)]
    heads, rows = comparison.facts()
    parts += ["## Systems", _table(heads, [[escaped(cell) for cell in row] for row in rows])]
    parts += ["## Signatures", "\n".join(_signatures(comparison))]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Escapes text for Markdown, also inside table cells."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split()))


def _scores(comparison: Comparison) -> str:
    columns = comparison.columns
    rows = [[escaped(one.name), *(_cell(comparison.cell(one, c)) for c in columns)] for one in comparison.systems]
    rows += [
        [f"*{escaped(f'{row.system} ({row.where})')}*", *(_cell(comparison.published_cell(row, c)) for c in columns)]
        for row in comparison.published
    ]
    head = "system (*published*)" if comparison.published else "system"
    return _table([head, *(escaped(str(column)) for column in columns)], rows, right=True)


def _cell(shown: TableCell | None) -> str:
    if shown is None:
        return ABSENT
    value = f"**{shown.value}**" if shown.best else shown.value
    note = f"<sup>{shown.note}</sup>" if shown.note else ""
    mark = MARKS[shown.verdict] if shown.verdict else ""
    return " ".join(part for part in (value + note, mark, escaped(shown.interval)) if part)


def _tests(comparison: Comparison) -> str:
    rows = [[escaped(cell) for cell in row] for row in comparison.tested_rows()]
    return _table(TESTED, rows) + "\n\n" + HOW_TESTED


def _signatures(comparison: Comparison) -> Iterable[str]:
    for name, by in comparison.signatures():
        for signature, systems in by:
            whose = "" if len(by) == 1 else f" ({escaped(', '.join(systems))})"
            yield f"- {escaped(name)}{whose}: `{signature.replace('`', '')}`"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: bool = False) -> str:
    rule = ["---", *(["---:" if right else "---"] * (len(heads) - 1))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, rule, *rows])
