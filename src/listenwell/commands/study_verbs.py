"""What `listenwell study` does, one function for each verb."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from listenwell.configuration import OptionError


def create(name: str, recipe: str | None, given: dict[str, Any], url: str | None) -> None:
    from rich.console import Console

    from listenwell.commands.display import tracked
    from listenwell.studies.create import create as make
    from listenwell.studies.power import launch_note
    from listenwell.studies.spec import StudySpec, check_name, read_recipe
    from listenwell.studies.store import Store, store_url

    check_name(name)
    if recipe is not None:
        spec = read_recipe(recipe, **given)
    elif "kind" not in given or "systems" not in given:
        raise OptionError("study create needs --kind and --systems, or a --recipe that has them")
    else:
        spec = StudySpec(**given)
    with Store(store_url(name, url), create=True) as store, tracked() as progress:
        store.check_free(name)
        made = make(store, name, spec, progress=progress)
        design = store.design(made)
    console = Console()
    places = sum(len(task.layouts) for task in design.tasks)
    console.print(
        f"{name}: {len(design.items):,} items in {len(design.tasks):,} tasks for {spec.raters} raters each, "
        f"{places:,} places",
        highlight=False,
    )
    console.print(launch_note(spec), highlight=False)
    console.print(f"listenwell study serve {name}", highlight=False, style="bold")


def serve(name: str, url: str | None, host: str, port: int, hosts: list[str]) -> None:
    from rich.console import Console

    from listenwell.studies.create import data_notice
    from listenwell.studies.serve import serve as run
    from listenwell.studies.store import Store, store_url

    console = Console()
    with Store(store_url(name, url)) as store:
        study = store.study(name)
        if notice := data_notice(study):
            console.print(f"note: {notice}", highlight=False)

        def ready(address: str) -> None:
            console.print(f"{study.title}: {study.spec.kind}", highlight=False)
            console.print(f"raters  {address}/join/{study.join_code}?rater=ID", highlight=False, soft_wrap=True)
            console.print(f"report  {address}/report?key={study.report_key}", highlight=False, soft_wrap=True)
            if study.closed_at is not None:
                console.print("the study is closed: raters are told so; `study reopen` goes on", highlight=False)

        run(store, name, host, port, hosts, ready)


def list_studies(url: str | None, json: bool) -> None: ...
def links(name: str, url: str | None, people: str | None, json: bool) -> None: ...
def status(name: str, url: str | None, json: bool) -> None: ...
def report(name: str, url: str | None, out: Path | None, json: bool) -> None: ...
def export(name: str, url: str | None, format: str, out: Path | None) -> None: ...
def pay(name: str, url: str | None, out: Path | None) -> None: ...
def rate(name: str, url: str | None, judge: str | None, base_url: str | None) -> None: ...
def set_open(name: str, url: str | None, open_: bool) -> None: ...
