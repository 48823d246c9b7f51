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
    report_only: bool = False,
    list: bool = False,
) -> None:
    """Reproduce the tables of a paper: train what is missing, score it, and write published beside measured.

    Shipped weights are used where they serve. What is trained and scored is kept: a command that is cut off continues
    where it was, and a second one computes nothing again. The report is written as HTML, CSV, LaTeX and JSON.

    Args:
        paper: mime, meed2, dual-emp, bert-joint or strategy-memory. Without one, all papers are listed.
        table: Only this table, such as 1 or text.
        budget: small runs everything on a few examples, to see that it works; cpu is what two cores do in hours; paper
            has the paper's own sizes, where there is a recipe of them.
        seeds: How many seeds each row is trained with; more than one trains shipped systems again.
        out: Folder for runs, evaluations and reports, one folder per paper.
        precision: bf16 computes the layers in half the bits, for machines that do that faster.
        report_only: Train and score nothing: write the report from what is there.
        list: Only print what would be trained and scored, and what is there already.
    """
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
    if list:
        _list_work(spec, work, results(spec, work, tables))
        return
    _check_reports(root)
    if not report_only:
        _carry_out(work, spec, budget, precision)
    numbers = results(spec, work, tables)
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
    console = report()
    console.print(table(spec.title, ("step", "state"), steps))
    console.print(", ".join(f"{count} numbers {verdict}" for verdict, count in counts(numbers).items()))


def _state(step: Training | Scoring) -> str:
    return "there" if step.done else "to do"


def _carry_out(work: Plan, spec: PaperSpec, budget: str, precision: Literal["", "bf16"]) -> None:
    """Each step in turn; one that was cut off is resumed by the command that does it."""
    import sys
    import time

    from listenwell.evaluation.reproduce.plan import Training

    missing = work.missing()
    begun = time.monotonic()
    for number, step in enumerate(missing, 1):
        spent = time.monotonic() - begun
        left = f", about {spent / (number - 1) * (len(missing) - number + 1) / 60:.0f} min left" if number > 1 else ""
        what = f"train {step.recipe}" if isinstance(step, Training) else f"score {step.row}"
        print(f"[{number}/{len(missing)}] {what}{left}", file=sys.stderr, flush=True)
        if isinstance(step, Training):
            _train(step, budget, precision)
        else:
            _score(step, spec, precision)


def _train(step: Training, budget: str, precision: Literal["", "bf16"]) -> None:
    from listenwell.commands.train import train

    step.folder.parent.mkdir(parents=True, exist_ok=True)
    step.mark.touch()
    train(
        step.recipe,
        out=step.folder,
        resume=True,
        set=[f"seed={step.seed}", *(_small(step.recipe) if budget == "small" else [])],
        precision=precision or None,
    )
    step.mark.unlink()


def _small(recipe: str) -> list[str]:
    """Changes that let every stage see a few examples only."""
    from listenwell.evaluation.reproduce.plan import SMALL
    from listenwell.training import load_recipe

    return [f"stages.{index}.examples={SMALL}" for index in range(len(load_recipe(recipe).stages))]


def _score(step: Scoring, spec: PaperSpec, precision: Literal["", "bf16"]) -> None:
    from listenwell.commands.evaluate import evaluate
    from listenwell.decoding import Changes

    step.folder.parent.mkdir(parents=True, exist_ok=True)
    options = dict(change.split("=", 1) for change in spec.decoding)
    decoding: Any = Changes({name: _value(text) for name, text in options.items()}) if options else None
    evaluate(
        step.system,
        data=step.dataset.data,
        split=step.dataset.split,
        items=step.dataset.drawn,
        out=step.folder,
        decoding=decoding,
        precision=precision,
    )


def _value(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text


REPORTS = ("report.html", "report.csv", "report.tex", "report.json")


def _check_reports(root: Path) -> None:
    """Refuses, before the work, to overwrite reports that this command did not write."""
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

    from listenwell.evaluation.reproduce.figures import draw_figures, embedded
    from listenwell.evaluation.reproduce.report import as_csv, as_html, as_latex

    root.mkdir(parents=True, exist_ok=True)
    texts = {
        "report.html": as_html(spec, numbers, facts, embedded(draw_figures(spec, work, root))),
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
        (f"{one.table} {one.dataset}", one.row, one.metric, str(one.published), number(one.measured), one.verdict)
        for one in numbers
        if one.measured is not None
    ]
    if rows:
        console.print(table(spec.title, ("table", "row", "number", "published", "measured", "verdict"), rows))
    console.print(", ".join(f"{count} {verdict}" for verdict, count in counts(numbers).items()))
    console.print(f"written to {root}: report.html, report.csv, report.tex, report.json", highlight=False)
