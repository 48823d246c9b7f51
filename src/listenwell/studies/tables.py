"""Tables of a report, and their output as CSV (safe to open in a spreadsheet) and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from listenwell.studies.statistics import Estimate

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""Characters that make a spreadsheet treat a cell as a formula."""

LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "κ": r"$\kappa$",
    "α": r"$\alpha$",
    "ρ": r"$\rho$",
    "ν": r"$\nu$",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A number, with its interval if it has one, or text."""

    value: float | str | None
    low: float | None = None
    high: float | None = None
    digits: int = 2
    mark: str = ""
    """For example * for a significant difference."""

    @classmethod
    def of(cls, estimate: Estimate | None, scale: float = 1.0, digits: int = 2, mark: str = "") -> Cell:
        if estimate is None:
            return cls(None)
        low = None if estimate.low is None else scale * estimate.low
        high = None if estimate.high is None else scale * estimate.high
        return cls(scale * estimate.value, low, high, digits, mark)

    @property
    def text(self) -> str:
        if self.value is None:
            return "–"
        if isinstance(self.value, str):
            return self.value
        return f"{self.value:.{self.digits}f}{self.mark}"

    @property
    def interval(self) -> str:
        return "" if self.low is None else f"{self.low:.{self.digits}f} to {self.high:.{self.digits}f}"

    @property
    def is_number(self) -> bool:
        return not isinstance(self.value, str)


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    cells: tuple[Cell, ...]
    kind: str = "measured"
    """measured, machine (rated by a machine judge) or published."""


@dataclass(frozen=True, slots=True)
class Table:
    key: str
    title: str
    head: str
    """The heading of the row names."""
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())


def p_value(p: float | None) -> Cell:
    if p is None:
        return Cell(None)
    return Cell("<0.001") if p < 0.001 else Cell(p, digits=3)


def stars(p: float | None) -> str:
    return "" if p is None or p >= 0.05 else "*"


def to_csv(tables: Iterable[Table]) -> str:
    """All tables in one file, one line per number: table, row, kind, column, value, low, high."""
    lines = [["table", "row", "kind", "column", "value", "low", "high"]]
    for table in tables:
        for row in table.rows:
            for column, cell in zip(table.columns, row.cells, strict=True):
                value = "" if cell.value is None else str(cell.value)
                ends = ["" if end is None else str(end) for end in (cell.low, cell.high)]
                lines.append([table.title, row.name, row.kind, column, value, *ends])
    return write_csv(lines)


def write_csv(lines: Iterable[Sequence[str]]) -> str:
    """CSV in which no cell is a spreadsheet formula. Numbers stay numbers."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([safe_cell(cell) for cell in line] for line in lines)
    return stream.getvalue()


def safe_cell(text: str) -> str:
    """Prefix text that starts like a formula with an apostrophe; numbers do not need one."""
    if text.startswith(FORMULA_STARTS) and not _is_number(text):
        return f"'{text}"
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def to_latex(table: Table) -> str:
    """The table in booktabs style, ready to include."""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex(table.title)}}}",
        r"\begin{tabular}{l" + "r" * len(table.columns) + "}",
        r"\toprule",
        " & ".join(latex(name) for name in (table.head, *table.columns)) + r" \\",
        r"\midrule",
    ]
    kind = table.rows[0].kind if table.rows else ""
    for row in table.rows:
        if row.kind != kind:
            lines.append(r"\midrule")
            kind = row.kind
        cells = [
            latex(cell.text) + (rf" {{\scriptsize [{latex(cell.interval)}]}}" if cell.interval else "")
            for cell in row.cells
        ]
        lines.append(" & ".join((latex(shown_name(row)), *cells)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\\ {{\footnotesize {latex(note)}}}" for note in table.notes]
    lines.append(r"\end{table}")
    return "\n".join(lines) + "\n"


def shown_name(row: Row) -> str:
    marks = {"machine": " (machine)", "published": " (published)"}
    return row.name + marks.get(row.kind, "")


def latex(text: str) -> str:
    return "".join(LATEX.get(sign, sign) for sign in text)
