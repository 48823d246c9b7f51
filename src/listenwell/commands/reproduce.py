from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from listenwell.evaluation.reproduce.plan import Plan, Scoring, Training
    from listenwell.evaluation.reproduce.results import Result
    from listenwell.evaluation.reproduce.spec import PaperSpec


def reproduce(
    paper: str = "",
    table: str | None = None,
    budget: Literal["small", "cpu", "paper"] = "cpu",
    seeds: int = 1,
    out: Path = Path("runs/reproduce"),
    precision: Literal["", "bf16"] = "",
    quirks: bool = False,
    rescore: bool = False,
    report_only: bool = False,
    list: bool = False,
) -> None:
    """Reproduce the tables of a paper: train what is missing, score it, and write published beside measured.

    Shipped weights are used where possible. Trained models and scores are kept: an interrupted command continues where
    it stopped, and running it again recomputes nothing. The report is written as HTML, CSV, LaTeX and JSON.

    Args:
        paper: mime, meed2, dual-emp, bert-joint or strategy-memory. Without one, all papers are listed.
        table: Only this table, such as 1 or text.
        budget: small runs everything on a few examples, to check that it works; cpu is what two cores can do in hours;
            paper uses the paper's own sizes and trains for hours to days; rows without a recipe for these sizes are
            left out, with the reason.
        seeds: How many seeds to train each row with; more than one retrains shipped systems.
        out: Folder for runs, evaluations and reports, one folder per paper.
        precision: bf16 computes the layers in half the bits, for machines that do that faster.
        quirks: Also run MIME with the gold emotion at evaluation, as its public code does, to see the effect; it is
            never reported as a score. All other quirks are computed from saved replies.
        rescore: Recompute every score from saved replies and statistics, without a model, and stop if one differs.
        report_only: Train and score nothing; write the report from existing results.
        list: Only print what would be trained and scored, and what exists already.
    """
    import sys

    from listenwell.commands import reproduce_steps as steps
    from listenwell.commands.numbers import at_least
    from listenwell.evaluation.reproduce.plan import plan
    from listenwell.evaluation.reproduce.results import results
    from listenwell.evaluation.reproduce.spec import paper as paper_named
    from listenwell.evaluation.reproduce.spec import papers
    from listenwell.labels.taxonomy import unknown_name

    at_least(1, seeds=seeds)
    if not paper:
        _list_papers(papers())
        return
    spec = paper_named(paper)
    if table is not None and table not in spec.tables:
        raise ValueError(unknown_name(f"table of {paper}", table, spec.tables))
    tables = None if table is None else [table]
    root = out / paper
    work = plan(spec, root, budget, seeds, tables)
    ratings = steps.read_ratings(spec, tables)
    if list:
        _list_work(spec, work, results(spec, work, tables, ratings))
        return
    _check_reports(root)
    if not report_only:
        steps.carry_out(work, spec, budget, precision)
        steps.answer(spec, work, root)
    if quirks:
        steps.measure_quirks(work)
    if rescore:
        print(steps.check_kept(work), file=sys.stderr)
    numbers = results(spec, work, tables, ratings)
    _write(spec, work, root, numbers, {"budget": budget, "seeds": str(seeds), "tables": table or "all"})
    _show(spec, root, numbers)


def _list_papers(known: dict[str, PaperSpec]) -> None:
    from listenwell.commands.display import report, table

    rows = [(name, ", ".join(spec.tables), ", ".join(spec.figures) or "–", spec.title) for name, spec in known.items()]
    report().print(table("papers", ("name", "tables", "figures", "title"), rows))


def _list_work(spec: PaperSpec, work: Plan, numbers: Any) -> None:
    from listenwell.commands.display import report, table
    from listenwell.evaluation.reproduce.report import counts

    steps = [(f"train {one.recipe}, seed {one.seed}", _state(one)) for one in work.trainings]
    steps += [(f"score {one.row} on {one.dataset.data}", _state(one)) for one in work.scorings]
    steps += [(f"leave out {row}", why) for row, why in work.left_out.items()]
    console = report()
    console.print(table(spec.title, ("step", "state"), steps))
    console.print(", ".join(f"{count} numbers {verdict}" for verdict, count in counts(numbers).items()))


def _state(step: Training | Scoring) -> str:
    return "there" if step.done else "to do"


REPORTS = ("report.html", "report.csv", "report.tex", "report.json")


def _check_reports(root: Path) -> None:
    """Refuse, before any work, to overwrite reports that this command did not write."""
    import json

    from listenwell.outputs import OutputError

    try:
        is_own = json.loads((root / "report.json").read_text(encoding="utf-8")).get("command") == "reproduce"
    except (OSError, ValueError, AttributeError):
        is_own = False
    if not is_own and (others := [name for name in REPORTS if (root / name).exists()]):
        raise OutputError(f"{root / others[0]} was not written by listenwell reproduce; name another folder with --out")


def _write(spec: PaperSpec, work: Plan, root: Path, numbers: list[Result], facts: dict[str, str]) -> None:
    import json

    from listenwell.evaluation.reproduce.cases import answered_cases
    from listenwell.evaluation.reproduce.figures import draw_figures, embedded
    from listenwell.evaluation.reproduce.polarity import polarity_tables
    from listenwell.evaluation.reproduce.report import Extras, as_csv, as_html, as_latex

    root.mkdir(parents=True, exist_ok=True)
    extras = Extras(
        embedded(draw_figures(spec, work, root)), polarity_tables(spec, work), answered_cases(spec.name, work, root)
    )
    texts = {
        "report.html": as_html(spec, numbers, facts, extras),
        "report.csv": as_csv(numbers),
        "report.tex": as_latex(spec, numbers),
        "report.json": json.dumps(
            {"command": "reproduce", **facts, "results": [one.to_json() for one in numbers]}, indent=1
        ),
    }
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")


def _show(spec: PaperSpec, root: Path, numbers: list[Result]) -> None:
    from listenwell.commands.display import report, table
    from listenwell.evaluation.reproduce.report import counts, number

    console = report()
    rows = [
        (
            *(f"{one.table} {one.dataset}", one.row, one.metric, str(one.published), number(one.measured), one.verdict),
            "" if one.ours is None else f"{number(one.ours)}, {one.ours_how}",
            one.why_different,
        )
        for one in numbers
        if one.measured is not None
    ]
    if rows:
        columns = ("table", "row", "number", "published", "measured", "verdict", "ours", "why different")
        console.print(table(spec.title, columns, rows))
    console.print(", ".join(f"{count} {verdict}" for verdict, count in counts(numbers).items()))
    console.print(f"written to {root}: report.html, report.csv, report.tex, report.json", highlight=False)
