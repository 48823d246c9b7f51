"""A paper's report with published and measured numbers, as self-contained HTML, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined

from listenwell import __version__
from listenwell.evaluation.reproduce.cases import AnsweredCase
from listenwell.evaluation.reproduce.polarity import PolarityRow
from listenwell.evaluation.reproduce.quirks import ABOUT
from listenwell.evaluation.reproduce.results import Result
from listenwell.evaluation.reproduce.spec import PaperSpec
from listenwell.evaluation.reproduce.verdict import TOLERANCE, Measured

COLUMNS = (
    "paper",
    "table",
    "dataset",
    "row",
    "metric",
    "published",
    "measured",
    "low",
    "high",
    "seeds",
    "verdict",
    "ours",
    "ours_how",
    "why_different",
    "why",
)


def counts(results: Sequence[Result]) -> dict[str, int]:
    """The number of results with each verdict."""
    return dict(Counter(one.verdict for one in results))


def as_csv(results: Sequence[Result]) -> str:
    out = io.StringIO()
    table = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    for one in results:
        table.writerow({key: _safe(value) for key, value in one.to_json().items()})
    return out.getvalue()


def _safe(value: Any) -> Any:
    """Quotes text that a spreadsheet would read as a formula."""
    return (
        f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") and not _is_number(value) else value
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_latex(paper: PaperSpec, results: Sequence[Result]) -> str:
    """Render one tabular per table and dataset, with two or three lines per row: published, measured and, if
    different, ours; then one tabular with the effects of known quirks."""
    parts = [f"% {_tex(paper.title)}; made by listenwell {__version__}"]
    for (table, dataset), rows in grouped(results).items():
        metrics = list(dict.fromkeys(one.metric for cells in rows.values() for one in cells))
        parts.append(f"% Table {table}, {dataset}: {_tex(paper.tables[table].title)}")
        parts.append(rf"\begin{{tabular}}{{ll{'r' * len(metrics)}}}")
        parts.append(" & ".join(["", "", *map(_tex, metrics)]) + r" \\ \hline")
        for row, cells in rows.items():
            by_metric = {one.metric: one for one in cells}
            kinds = ["published", "measured", *(["ours"] if any(one.ours for one in cells) else [])]
            for kind in kinds:
                values = [_tex(text_of(by_metric.get(metric), kind)) for metric in metrics]
                parts.append(" & ".join([_tex(row) if kind == "published" else "", kind, *values]) + r" \\")
        parts.append(r"\end{tabular}")
    return "\n".join([*parts, *_latex_quirks(results)]) + "\n"


def _latex_quirks(results: Sequence[Result]) -> list[str]:
    lines = [
        " & ".join(map(_tex, (one.table, one.row, one.metric, quirk.name, f"{quirk.value:.2f}", f"{quirk.worth:+.2f}")))
        for one in results
        for quirk in one.quirks
    ]
    if not lines:
        return []
    head = "table & row & number & quirk & with it & worth"
    return [
        "% Why different: what known quirks of public code are worth",
        r"\begin{tabular}{llllrr}",
        rf"{head} \\ \hline",
        *(rf"{line} \\" for line in lines),
        r"\end{tabular}",
    ]


def grouped(results: Sequence[Result]) -> dict[tuple[str, str], dict[str, list[Result]]]:
    """Results by table and dataset, then by row."""
    tables: dict[tuple[str, str], dict[str, list[Result]]] = {}
    for one in results:
        tables.setdefault((one.table, one.dataset), {}).setdefault(one.row, []).append(one)
    return tables


def text_of(one: Result | None, kind: str) -> str:
    if one is None:
        return ""
    if kind == "published":
        return str(one.published)
    shown = one.measured if kind == "measured" else one.ours
    return number(shown) if shown is not None else "—" if kind == "measured" else ""


def number(measured: Measured) -> str:
    digits = 1 if abs(measured.value) >= 100 else 2 if abs(measured.value) >= 1 else 3
    text = f"{measured.value:.{digits}f}"
    if measured.low is not None and measured.high is not None:
        text += f" [{measured.low:.{digits}f}, {measured.high:.{digits}f}]"
    return text


def _tex(text: str) -> str:
    for sign, escaped in (
        ("\\", r"\textbackslash{}"),
        ("&", r"\&"),
        ("%", r"\%"),
        ("_", r"\_"),
        ("#", r"\#"),
        ("$", r"\$"),
    ):
        text = text.replace(sign, escaped)
    return text.replace("→", r"$\rightarrow$").replace("—", "---")


@dataclass(frozen=True)
class Extras:
    """The contents of a report besides the numbers."""

    pictures: Mapping[str, str] = field(default_factory=dict)
    """Data URIs by the title of a figure."""
    polarity: Mapping[str, Sequence[PolarityRow]] = field(default_factory=dict)
    """Automatic scores by the polarity of the emotion, by table."""
    cases: Sequence[AnsweredCase] = ()


def as_html(paper: PaperSpec, results: Sequence[Result], facts: Mapping[str, str], extras: Extras | None = None) -> str:
    """Render the report; `facts` are shown at the top."""
    source = resources.files("listenwell.evaluation.reproduce").joinpath("report.html").read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(source)
    return template.render(
        paper=paper,
        tables=grouped(results),
        counts=counts(results),
        facts=facts,
        extras=extras or Extras(),
        quirks=used_quirks(results),
        number=number,
        tolerance=f"{100 * TOLERANCE:.0f}",
        version=__version__,
        total=len(results),
    )


def used_quirks(results: Sequence[Result]) -> dict[str, str]:
    """Descriptions of the quirks that occur in the results."""
    names = {quirk.name for one in results for quirk in one.quirks}
    return {name: about for name, about in ABOUT.items() if name in names}
