"""The report of a study: every table for all raters and for those kept by the filters, with machines separate."""

from __future__ import annotations

import base64
import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from listenwell.outputs import Owner, check_folder, command_of, write_folder
from listenwell.studies.agreement_tables import agreement_table, machine_agreement
from listenwell.studies.analysis import View, good_labels, main_tables
from listenwell.studies.datasheet import datasheet, datasheet_json, datasheet_markdown
from listenwell.studies.power import launch_note
from listenwell.studies.quality import Discarded, filter_records
from listenwell.studies.records import Study
from listenwell.studies.results import Judgement, Results, TaskRecord, collect, judgements
from listenwell.studies.store import Store
from listenwell.studies.tables import Cell, Row, Table, shown_name, to_csv, to_latex

FILES = frozenset({"report.html", "report.csv", "report.tex", "report.json", "heds.json", "heds.md", "labels.png"})
REPORT = Owner("study", FILES, lambda folder: command_of(folder / "report.json") == "study")


@dataclass(frozen=True, slots=True)
class Section:
    """The tables for one selection of raters."""

    title: str
    about: str
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Report:
    results: Results
    sections: tuple[Section, ...]
    discarded: tuple[Discarded, ...]
    labels: Mapping[str, Counter[str]] = field(default_factory=dict)
    """Labels of replies rated good, by system (MEED2's Figure 5)."""
    notices: tuple[str, ...] = ()

    @property
    def study(self) -> Study:
        return self.results.study

    def tables(self) -> list[Table]:
        """All tables, with the section in their titles."""
        return [
            Table(one.key, f"{one.title}, {section.title.lower()}", one.head, one.columns, one.rows, one.notes)
            for section in self.sections
            for one in section.tables
        ]


def make_report(store: Store, study: Study, notices: tuple[str, ...] = ()) -> Report:
    results = collect(store, study)
    everybody = results.counted()
    filtered = filter_records(results, everybody)
    people, kept = judgements(everybody, results), judgements(filtered.kept, results)
    sections = [
        _section("All raters", results, everybody, people),
        _section("After the filters", results, filtered.kept, kept),
    ]
    sections += _machines(results, people)
    labels = good_labels(View(results, kept)) if results.spec.kind == "drag" else {}
    return Report(results, tuple(sections), filtered.discarded, labels, notices)


def _section(title: str, results: Results, records: Any, judged: list[Judgement]) -> Section:
    about = (
        f"{len({record.rater for record in records})} people, {len(records)} tasks "
        f"({sum(record.state == 'done' for record in records)} finished), {len(judged)} judgements"
    )
    tables = [*main_tables(View(results, judged)), agreement_table(results, judged), _balance(results, records)]
    return Section(title, about, tuple(tables))


def _machines(results: Results, people: list[Judgement]) -> list[Section]:
    """A section for each machine judge, marked as a machine in every table."""
    by_name: dict[str, list[TaskRecord]] = {}
    for record in results.counted(machine=True):
        by_name.setdefault(record.rater, []).append(record)
    sections = []
    for name, records in by_name.items():
        judged = judgements(records, results)
        tables = [*main_tables(View(results, judged), name), machine_agreement(results, people, judged, name)]
        about = f"A machine, not a person: {len(records)} tasks, {len(judged)} judgements"
        sections.append(Section(f"Machine: {name}", about, tuple(tables)))
    return sections


def _balance(results: Results, records: Any) -> Table:
    """How often each system was shown first. This is balanced by design; the table shows the actual result."""
    first: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for record in records:
        for answer in record.answers:
            if len(answer.systems) > 1:
                first[answer.systems[0]] += 1
                shown.update(answer.systems)
    rows = tuple(
        Row(system, (Cell(100 * first[system] / shown[system], digits=1), Cell(float(shown[system]), digits=0)))
        for system in shown
    )
    title = "On the left" if results.spec.kind == "ab" else "In the first place"
    return Table("balance", f"{title}: how often each system stood there", "system", ("%", "times shown"), rows)


def report_page(store: Store, study: Study, notices: tuple[str, ...] = ()) -> tuple[str, str]:
    """The HTML page and its content security policy."""
    return render(make_report(store, study, notices))


def render(report: Report) -> tuple[str, str]:
    source = resources.files("listenwell.studies").joinpath("report.html").read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    style = source.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    study = report.study
    page = template.from_string(source).render(
        report=report,
        study=study,
        spec=study.spec,
        policy=policy,
        made=_day(study.created_at),
        now=_day(datetime.now(UTC).timestamp()),
        shown_name=shown_name,
        power=launch_note(study.spec),
        picture=_picture(report),
        datasheet=datasheet(report.results, report.tables()),
    )
    return page, policy


def _picture(report: Report) -> str | None:
    """MEED2's Figure 5 as a data URL, so that the page needs no other file."""
    if not report.labels:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.png"
        if not draw_labels(report, path):
            return None
        return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()


def draw_labels(report: Report, path: Path) -> bool:
    """Draw the labels of replies rated good. Returns False if none is among the 41 or matplotlib is missing."""
    from listenwell.evaluation.pictures import draw_distributions
    from listenwell.labels.taxonomy import LABEL_ID

    counts = {system: given for system, given in report.labels.items() if any(name in LABEL_ID for name in given)}
    if not counts:
        return False
    try:
        draw_distributions(counts, "Labels of the replies that were rated good", path, "study")
    except ImportError:  # no matplotlib: the numbers are in report.json
        return False
    return True


def to_json(report: Report) -> dict[str, Any]:
    study = report.study
    return {
        "command": "study",
        "study": study.name,
        "spec": study.spec.to_json(),
        "made from": dict(study.made_from),
        "notices": list(report.notices),
        "sections": [
            {
                "title": section.title,
                "about": section.about,
                "tables": [
                    {
                        "key": table.key,
                        "title": table.title,
                        "columns": list(table.columns),
                        "notes": list(table.notes),
                        "rows": [
                            {
                                "name": row.name,
                                "kind": row.kind,
                                "cells": [{"value": c.value, "low": c.low, "high": c.high} for c in row.cells],
                            }
                            for row in table.rows
                        ],
                    }
                    for table in section.tables
                ],
            }
            for section in report.sections
        ],
        "discarded": [{"rater": one.rater, "task": one.task, "reason": one.reason} for one in report.discarded],
        "labels of good replies": {system: dict(counts) for system, counts in report.labels.items()},
    }


def write_report(report: Report, folder: Path) -> None:
    """Write all files of a report, replacing the folder as a whole."""
    check_folder(folder, REPORT)
    write_folder(folder, _filler(report), REPORT)


def _filler(report: Report) -> Callable[[Path], None]:
    def fill(place: Path) -> None:
        tables = report.tables()
        sheet = datasheet(report.results, tables)
        texts = {
            "report.html": render(report)[0],
            "report.csv": to_csv(tables),
            "report.tex": "\n".join(to_latex(table) for table in tables),
            "report.json": json.dumps(to_json(report), ensure_ascii=False, indent=1),
            "heds.json": json.dumps(datasheet_json(sheet), ensure_ascii=False, indent=1),
            "heds.md": datasheet_markdown(sheet, report.study.title),
        }
        for name, text in texts.items():
            (place / name).write_text(text, encoding="utf-8")
        draw_labels(report, place / "labels.png")

    return fill


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")
