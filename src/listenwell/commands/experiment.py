"""Code shared by the commands that run an experiment on a system's replies to some contexts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from listenwell.data.dialogue import Example
    from listenwell.evaluation.experiment import StudyResult
    from listenwell.systems.house.options import HouseDecoding


def study(
    name: str,
    measure: Callable[[Any, list[Example], Any], StudyResult],
    system: str,
    data: str,
    split: str,
    path: Path | None,
    limit: int,
    out: Path | None,
    decoding: HouseDecoding | None,
    json: bool,
) -> None:
    """Measure a system on items of a split and show the result. `measure` gets the system, the items and progress."""
    from listenwell.commands.display import tracked
    from listenwell.loading import load
    from listenwell.outputs import STUDIES, check_folder

    if out is None and Path(system).is_dir():
        out = Path(system) / "evaluation" / name
    if out is not None:
        check_folder(out, STUDIES[name])
    bot = load(system, care=False)
    if decoding is not None:
        bot.decoding = decoding.over(bot.decoding)
    items = some_items(data, split, path, limit)
    with tracked() as progress:
        result = measure(bot, items, progress)
    result.about = {"system": system, "data": data, "split": split, "items": len(items)}
    result.about["decoding"] = bot.decoding.signature()
    show_result(name, result, out, json)


def some_items(data: str, split: str, path: Path | None, limit: int) -> list[Example]:
    """`limit` items (replies with their contexts), taken evenly from a split; all if it is 0."""
    from listenwell.data import sources
    from listenwell.data.dialogue import examples

    items = [item for dialogue in sources.read(data, path, split) for item in examples(dialogue)]
    if not limit or limit >= len(items):
        return items
    return [items[index * len(items) // limit] for index in range(limit)]


def show_result(study: str, result: StudyResult, out: Path | None, json: bool) -> None:
    """Write the result to `out`, if given, and print the scores."""
    import json as encoder

    from listenwell.commands.display import report, scores_table
    from listenwell.evaluation.experiment import write
    from listenwell.outputs import STUDIES

    about: dict[str, Any] = result.about
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(result, out, STUDIES[study])
    if json:
        print(encoder.dumps({"command": study, **result.to_json()}))
        return
    title = "{system} on {items:,} contexts of {data}, {split}; {decoding}".format_map(about)
    console = report()
    console.print(scores_table(title, result.scores))
    if out is not None:
        console.print(f"written to {out}: scores.json, replies.jsonl", highlight=False)
