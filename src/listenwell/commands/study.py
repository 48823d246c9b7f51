from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

VERBS = ("list", "create", "serve", "links", "status", "report", "export", "pay", "rate", "close", "reopen")


def study(
    verb: str = "list",
    name: str | None = None,
    kind: Literal["likert", "ab", "drag", "emotion"] | None = None,
    systems: str | None = None,
    data: str | None = None,
    split: str | None = None,
    path: Path | None = None,
    items: int | None = None,
    raters: int | None = None,
    scales: str | None = None,
    seed: int | None = None,
    recipe: str | None = None,
    store: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8200,
    allowed_host: list[str] | None = None,
    people: str | None = None,
    judge: str | None = None,
    base_url: str | None = None,
    format: Literal["potato", "label-studio", "csv", "jsonl"] = "csv",
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Let people rate replies: make a study, serve it to raters, and report the results.

    `study create NAME --kind likert --systems house,mime,human --items 100` draws items evenly over the emotions, lets
    each system reply once, freezes everything and says which differences this many ratings can detect. `study serve
    NAME` serves the raters' pages. `study report NAME` writes tables, tests and a datasheet.

    `study links NAME --people anna,ben` gives each person their own link. `study status NAME` shows the progress.
    `study rate NAME --judge openai:MODEL` lets a machine rate too, marked as one. `study export NAME --format potato
    --out FOLDER` writes the items and ratings for other tools. `study pay NAME` lists what each rater is owed. `study
    close NAME` ends the study; `study reopen NAME` continues it.

    Args:
        verb: list, create, serve, links, status, report, export, pay, rate, close or reopen.
        name: The study's name.
        kind: For create: likert (scales from 1 to 5), ab (the better of two), drag (good, okay, bad) or emotion (does
            the reply's emotion fit).
        systems: For create: systems by name (`listenwell models`), separated by commas; human is the corpus's own
            reply.
        data: For create: a source by name, several joined by +, or a .jsonl file.
        split: For create: which split of it.
        path: For create: where the source is, if it is not in LISTENWELL_DATA.
        items: For create: how many dialogues to draw.
        raters: For create: how many people rate each item.
        scales: For create: the questions of a likert study: mime, dual-emp, bert-joint,
            strategy-memory or epitome.
        seed: For create: the random seed.
        recipe: For create: a ready-made study, such as mime-ratings (`listenwell study` lists them), or a .yaml file;
            other flags change single fields of it.
        store: Where the study is kept, such as postgresql://user@host/database; LISTENWELL_STORE if not given, else
            studies/NAME/study.sqlite.
        host: For serve and links: the address to listen on; 0.0.0.0 for all.
        port: For serve and links: the port; 0 for any free one.
        allowed_host: For serve and links: a host name at which raters reach the server, such as study.example.org;
            may be given several times.
        people: For links: ids of raters, separated by commas, as you want to see them in the report.
        judge: For rate: the machine that rates: openai:MODEL, or a classifier by name or folder.
        base_url: For rate: where the server of openai:MODEL is; LISTENWELL_BASE_URL if not given.
        format: For export: csv or jsonl (all ratings), potato or label-studio (items and ratings).
        out: For report, export and pay: the folder or file to write.
        json: For list, status, links and report: print JSON.
    """
    from listenwell.commands import study_verbs
    from listenwell.commands.numbers import at_least
    from listenwell.configuration import OptionError
    from listenwell.labels.taxonomy import unknown_name

    if verb not in VERBS:
        raise OptionError(unknown_name("verb", verb, VERBS))
    at_least(1, items=items, raters=raters)
    at_least(0, seed=seed, port=port)
    if verb == "list":
        return study_verbs.list_studies(store, json)
    if name is None:
        raise OptionError(f"study {verb} needs a NAME; `listenwell study` lists the studies there are")
    if verb == "create":
        given: dict[str, Any] = {
            "kind": kind,
            "systems": None if systems is None else [one.strip() for one in systems.split(",") if one.strip()],
            "data": data,
            "split": split,
            "path": None if path is None else str(path),
            "items": items,
            "raters": raters,
            "scales": scales,
            "seed": seed,
        }
        return study_verbs.create(
            name, recipe, {key: value for key, value in given.items() if value is not None}, store
        )
    if verb == "serve":
        return study_verbs.serve(name, store, host, port, allowed_host or [])
    if verb == "links":
        from listenwell.studies.serve import address

        return study_verbs.links(name, store, people, address(host, port, allowed_host or []), json)
    if verb == "status":
        return study_verbs.status(name, store, json)
    if verb == "report":
        return study_verbs.report(name, store, out, json)
    if verb == "export":
        return study_verbs.export(name, store, format, out)
    if verb == "pay":
        return study_verbs.pay(name, store, out)
    if verb == "rate":
        return study_verbs.rate(name, store, judge, base_url)
    return study_verbs.set_open(name, store, verb == "reopen")
