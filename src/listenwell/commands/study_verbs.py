"""The verbs of `listenwell study`, one function each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from listenwell.configuration import OptionError

if TYPE_CHECKING:
    from listenwell.studies.store import Store, Study

NEEDED = "studies need more packages: pip install 'listenwell[studies]'"


def _url(name: str, url: str | None) -> str:
    try:
        from listenwell.studies.store import store_url
    except ModuleNotFoundError as problem:
        raise ImportError(f"{NEEDED} ({problem.name} is missing)") from problem
    return store_url(name, url)


def _store(name: str, url: str | None) -> Store:
    where = _url(name, url)
    from listenwell.studies.store import Store

    return Store(where)


def create(name: str, recipe: str | None, given: dict[str, Any], url: str | None) -> None:
    from rich.console import Console

    from listenwell.commands.display import tracked
    from listenwell.studies.spec import StudySpec, check_name, read_recipe

    check_name(name)
    if recipe is not None:
        spec = read_recipe(recipe, **given)
    elif "kind" not in given or "systems" not in given:
        raise OptionError("study create needs --kind and --systems, or a --recipe that has them")
    else:
        spec = StudySpec(**given)
    where = _url(name, url)
    from listenwell.studies.create import prepare, with_language
    from listenwell.studies.power import launch_note
    from listenwell.studies.store import Store, is_there

    if is_there(where):
        with Store(where) as store:
            store.check_free(name)
    spec = with_language(spec)
    with tracked() as progress:
        design = prepare(spec, progress=progress)
    with Store(where, create=True) as store:  # only now, so that a failure leaves nothing behind
        store.add(name, spec, design)
    console = Console()
    places = sum(len(task.layouts) for task in design.tasks)
    console.print(
        f"{name}: {len(design.items):,} items in {len(design.tasks):,} tasks for {spec.raters} raters each, "
        f"{places:,} places",
        highlight=False,
    )
    console.print(launch_note(spec), highlight=False, soft_wrap=True)
    console.print(f"Next: listenwell study serve {name}", highlight=False)


def serve(name: str, url: str | None, host: str, port: int, hosts: list[str]) -> None:
    from rich.console import Console

    console = Console()
    with _store(name, url) as store:
        from listenwell.studies.create import data_notice
        from listenwell.studies.serve import serve as run

        study = store.study(name)
        if notice := data_notice(study):
            console.print(f"note: {notice}", highlight=False)

        def ready(address: str) -> None:
            for line in _addresses(study, address):
                console.print(line, highlight=False, soft_wrap=True)

        run(store, name, host, port, hosts, ready)


def _addresses(study: Study, address: str) -> list[str]:
    lines = [
        f"{study.title} ({study.spec.kind}); Ctrl-C stops the server, and nothing is lost",
        f"raters  {address}/join/{study.join_code}?rater=ID",
        f"report  {address}/report?key={study.report_key}",
    ]
    if study.closed_at is not None:
        lines.append(f"The study is closed, and raters are told so; `listenwell study reopen {study.name}` goes on")
    return lines


def list_studies(url: str | None, json: bool) -> None:
    import json as encoder

    from rich.console import Console

    from listenwell.commands.display import table
    from listenwell.studies.spec import read_recipe, recipe_names

    rows = _known(url)
    if json:
        print(encoder.dumps(rows))
        return
    console = Console()
    if rows:
        columns = ("name", "kind", "systems", "items", "state", "answers", "store")
        shown = [tuple(str(row[column]) for column in columns) for row in rows]
        console.print(table("Studies", columns, shown, right=("items", "answers")))
    else:
        console.print("There are no studies here yet.")
    ready = [(name, read_recipe(name).kind, read_recipe(name).about) for name in sorted(recipe_names())]
    console.print(table("Ready to be made (study create NAME --recipe …)", ("recipe", "kind", "what it is"), ready))


def _known(url: str | None) -> list[dict[str, Any]]:
    """The studies in the given store, or those in the default folder."""
    import os

    from listenwell.studies.results import collect
    from listenwell.studies.store import FOLDER, STORE_VARIABLE, Store

    named = url or os.environ.get(STORE_VARIABLE)
    stores = [named] if named else [f"sqlite:///{path}" for path in sorted(FOLDER.glob("*/study.sqlite"))]
    rows = []
    for place in stores:
        with Store(place) as store:
            for study in store.studies():
                results = collect(store, study)
                rows.append(
                    {
                        "name": study.name,
                        "kind": study.spec.kind,
                        "systems": ", ".join(study.spec.systems),
                        "items": study.spec.items,
                        "state": "open" if study.closed_at is None else "closed",
                        "answers": sum(len(record.answers) for record in results.records),
                        "store": store.shown,
                    }
                )
    return rows


def links(name: str, url: str | None, people: str | None, server: str, json: bool) -> None:
    import json as encoder

    from listenwell.studies.rating import Ratings

    ids = [one.strip() for one in (people or "").split(",") if one.strip()]
    if not ids:
        raise OptionError("study links needs --people anna,ben: an id for each person, as you want it in the report")
    with _store(name, url) as store:
        ratings = Ratings(store, store.study(name))
        link_of = {one: f"{server}/r/{ratings.join(one).token}" for one in ids}
    if json:
        print(encoder.dumps(link_of))
        return
    for one, link in link_of.items():
        print(f"{one}\t{link}")


def status(name: str, url: str | None, json: bool) -> None:
    import json as encoder

    from rich.console import Console

    from listenwell.commands.display import table
    from listenwell.studies.results import collect

    with _store(name, url) as store:
        results = collect(store, store.study(name))
    people = [record for record in results.records if not record.machine]
    places = sum(len(task.layouts) for task in results.design.tasks)
    counts = {
        "state": "open" if results.study.closed_at is None else "closed",
        "raters": sum(not about["machine"] for about in results.raters.values()),
        "machines": sum(about["machine"] for about in results.raters.values()),
        "tasks done": f"{sum(record.state == 'done' for record in people)} of {places}",
        "tasks under way": sum(record.state == "active" for record in people),
        "tasks abandoned": sum(record.state == "expired" for record in people),
        "answers": sum(len(record.answers) for record in people),
    }
    if json:
        print(encoder.dumps(counts))
        return
    Console().print(table(name, ("", ""), [(key, str(value)) for key, value in counts.items()]))


def report(name: str, url: str | None, out: Path | None, json: bool) -> None:
    import json as encoder

    from listenwell.commands.display import report as wide
    from listenwell.commands.display import table
    from listenwell.outputs import check_folder
    from listenwell.studies.create import data_notice
    from listenwell.studies.report import REPORT, make_report, to_json, write_report
    from listenwell.studies.tables import shown_name

    if out is not None:
        check_folder(out, REPORT)
    with _store(name, url) as store:
        study = store.study(name)
        notice = data_notice(study)
        full_report = make_report(store, study, (notice,) if notice else ())
    if out is not None:
        write_report(full_report, out)
    if json:
        print(encoder.dumps(to_json(full_report), ensure_ascii=False))
        return
    console = wide()
    for section in full_report.sections:
        console.print(f"{section.title}: {section.about}", style="bold", highlight=False)
        for one in section.tables:
            rows = [
                (shown_name(row), *(f"{c.text} ({c.interval})" if c.interval else c.text for c in row.cells))
                for row in one.rows
            ]
            console.print(table(one.title, (one.head, *one.columns), rows, right=one.columns))
    if out is not None:
        console.print(f"written to {out}: report.html, report.csv, report.tex, report.json, heds.json, heds.md")


def export(name: str, url: str | None, format: Any, out: Path | None) -> None:
    from listenwell.studies.export import export as write
    from listenwell.studies.results import collect

    if out is None:
        what = "FOLDER" if format in ("potato", "label-studio") else f"FILE.{format}"
        raise OptionError(f"study export --format {format} needs --out {what}")
    with _store(name, url) as store:
        write(collect(store, store.study(name)), format, out)
    print(f"written to {out}")


def pay(name: str, url: str | None, out: Path | None) -> None:
    from listenwell.outputs import check_file
    from listenwell.studies.pay import pay_csv
    from listenwell.studies.results import collect

    if out is not None:
        check_file(out)
    with _store(name, url) as store:
        lines = pay_csv(collect(store, store.study(name)))
    if out is None:
        print(lines, end="")
    else:
        out.write_text(lines, encoding="utf-8")


def rate(name: str, url: str | None, judge: str | None, base_url: str | None) -> None:
    from listenwell.commands.display import tracked

    if judge is None:
        raise OptionError("study rate needs --judge: openai:MODEL, or a classifier by name")
    with _store(name, url) as store:
        from listenwell.studies.machine import judge_named
        from listenwell.studies.machine import rate as run

        study = store.study(name)
        machine = judge_named(judge, base_url)
        with tracked() as progress:
            number = run(store, study, machine, progress("items", len(store.design(study).items)))
    print(f"{machine.name}, a machine, rated {number} items; the report shows it apart from people")


def set_open(name: str, url: str | None, open_: bool) -> None:
    with _store(name, url) as store:
        study = store.study(name)
        if open_:
            store.reopen_study(study)
        else:
            store.close_study(study)
    print(f"{name} is {'open again' if open_ else 'closed; what raters still send of their tasks is kept'}")
