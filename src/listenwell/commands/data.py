from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from listenwell.data.sources.statistics import Statistics

VERBS = ("list", "stats", "convert", "check", "label", "select", "clean", "unpaired", "choices")
NO_REPLY = "no reply in it (a single turn)"


def data(
    verb: str = "list",
    source: str | None = None,
    split: str | None = None,
    path: Path | None = None,
    part: str | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    clean: bool = False,
    using: str = "emotion-intent",
    overwrite: bool = False,
    most_emotional: int | None = None,
    threshold: list[str] | None = None,
    candidates: Path | None = None,
    most: int = 10_000,
    json: bool = False,
) -> None:
    """List the corpora; describe, convert, check, label, clean or select from one.

    `data` lists them. `data stats SOURCE` counts what one contains, what was dropped and what is dirty. `data convert
    SOURCE --out FILE.jsonl` writes it as JSON lines. `data check SOURCE` looks for duplicates within and across splits.
    `data label SOURCE --out FILE.jsonl` converts it with one of the 41 labels on every turn, by a trained classifier.
    `data select SOURCE --most_emotional N --out FILE.jsonl` keeps the N most emotional dialogues, each in its split;
    dialogues of a single turn, which have no reply, are left out. `data clean SOURCE --out FILE.jsonl` cleans text from
    social media: names, links, hashtags, kaomoji, emoticons, repeats, adverts, duplicates.

    `data unpaired --out FILE.jsonl --threshold 0.6` takes utterances from open-domain dialogues whose emotion a trained
    classifier is confident about, as unpaired contexts or responses: dual-emp is trained on them in addition to pairs.

    `data choices SOURCE --candidates REPLIES.jsonl --out FILE.jsonl` collects people's replies to a context, people's
    replies to other contexts, and replies that `generate` wrote, each labelled by its origin: the training data of the
    house system's chooser.

    Args:
        verb: list, stats, convert, check, label, select, clean, unpaired or choices; a source's name alone
            means stats.
        source: A source by name or a .jsonl file, several joined by +; unpaired has its own default.
        split: Only this split; all if not given.
        path: Path of the source, if it is not in LISTENWELL_DATA.
        part: Only this part, of a source that has parts, such as edos's mturk.
        out: For convert, label, select, clean, unpaired and choices: the file to write; .gz is compressed.
        plot: For stats: also draw the labels in this picture (PNG, PDF or SVG): the share of each if they are among
            the 41, else how often each occurs.
        clean: Leave out junk turns and duplicates.
        using: For label, select and unpaired: a trained classifier by name (`listenwell models`), or a run's folder.
        overwrite: For label: also relabel turns that a person has labelled.
        most_emotional: For select: how many dialogues to keep, by the mean over their turns of p(any emotion).
        threshold: For unpaired: the minimum probability among the 32 emotions, 0.6 if not given. If it is given
            several times, one file is written for each: --out 'unpaired-{threshold}.jsonl'.
        candidates: For choices: a file that `generate` wrote for items of the same source and split.
        most: For choices: the maximum number of items without candidates to take as well.
        json: Print JSON instead of tables.
    """
    from listenwell.commands.numbers import at_least
    from listenwell.labels.taxonomy import unknown_name

    at_least(1, most_emotional=most_emotional)
    at_least(0, most=most)
    if verb not in VERBS and source is None:
        verb, source = "stats", verb
    if verb not in VERBS:
        raise ValueError(unknown_name("verb", verb, VERBS))
    if verb == "list":
        return _list()
    options = {**({"part": part} if part else {}), **({"clean": True} if clean else {})}
    if verb == "unpaired":
        from listenwell.commands.unpaired_data import unpaired_data

        return unpaired_data(source, split, path, out, options, using, threshold, json)
    if source is None:
        raise ValueError(f"data {verb} needs a source; `listenwell data` lists them")
    if verb == "convert":
        return _convert(source, split, path, out, options)
    if verb == "label":
        return _label(source, split, path, out, options, using, overwrite)
    if verb == "select":
        return _select(source, split, path, out, options, using, most_emotional)
    if verb == "choices":
        from listenwell.commands.choices_data import choices_data

        return choices_data(source, split, path, out, candidates, most)
    if verb == "clean":
        from listenwell.commands.clean_data import clean_data

        return clean_data(source, split, path, out, options, json)
    if verb == "check":
        return _check(source, path, {"part": part} if part else {}, json)
    return _stats(source, split, path, plot, options, json)


def _read(source: str, path: Path | None, split: str | None, options: dict[str, Any], report: Any) -> Any:
    from listenwell.data import sources

    return sources.read(source, path, split, report=report, **options)


def _list() -> None:
    from rich.console import Console

    from listenwell.commands.display import table
    from listenwell.data import sources

    rows = [(name, *_where(name)) for name in sources.all_sources()]
    Console().print(table("Sources (listenwell data stats SOURCE)", ("name", "what it is", "where"), rows))


def _stats(
    source: str, split: str | None, path: Path | None, plot: Path | None, options: dict[str, Any], json: bool
) -> None:
    import json as encoder

    from rich.console import Console

    from listenwell.commands.display import table
    from listenwell.data.sources import Report
    from listenwell.data.sources.statistics import describe
    from listenwell.outputs import check_picture

    if plot is not None:
        check_picture(plot, "data", "--plot")
    report, console = Report(), Console()
    statistics = describe(_read(source, path, split, options, report), report)
    if plot is not None:
        _draw(statistics, f"{source}, {split or 'all splits'}", plot)
    if json:
        print(encoder.dumps({**statistics.to_json(), "report": report.to_json()}))
        return
    console.print(table(f"{source}, {split or 'all splits'}", ("", ""), statistics.table()))
    _print_report(report, console)
    if plot is not None:
        console.print(f"drawn: {plot}", highlight=False)


def _draw(statistics: Statistics, title: str, path: Path) -> None:
    """Draw the shares of the 41 labels, as in MEED2's Figure 2, or the counts of other labels."""
    from listenwell.classifiers.label_cache import are_of
    from listenwell.data.sources.plots import draw
    from listenwell.evaluation.pictures import draw_distributions
    from listenwell.labels.sets import EMOTION_INTENT

    if not are_of(EMOTION_INTENT, statistics.labels):
        return draw(statistics, title, path)
    counts = {"turns": statistics.labels, **({"dialogues": statistics.emotions} if statistics.emotions else {})}
    draw_distributions(counts, title, path, "data")


def _print_report(report: Any, console: Any) -> None:
    from listenwell.commands.display import table

    rows = [(row.fate, row.reason, f"{row.number:,}", row.first_seen) for row in report.table()]
    if rows:
        console.print(table("Found in the data", ("fate", "reason", "times", "first seen"), rows, right=("times",)))
    else:
        console.print("Nothing was dropped, and nothing is dirty.")


def _convert(source: str, split: str | None, path: Path | None, out: Path | None, options: dict[str, Any]) -> None:
    from rich.console import Console

    from listenwell.data.sources import Report
    from listenwell.data.sources.jsonl import write
    from listenwell.outputs import check_file

    if out is None:
        raise ValueError("data convert needs --out FILE.jsonl")
    check_file(out)
    report = Report()
    count = write(_read(source, path, split, options, report), out)
    console = Console()
    _print_report(report, console)
    console.print(f"{count:,} dialogues written to {out}", highlight=False)


def _label(
    source: str,
    split: str | None,
    path: Path | None,
    out: Path | None,
    options: dict[str, Any],
    using: str,
    overwrite: bool,
) -> None:
    from rich.console import Console

    from listenwell import checkpoint
    from listenwell.classifiers.label_cache import cached_labeller
    from listenwell.classifiers.labeller import has_gold, label_dialogues
    from listenwell.commands.display import tracked
    from listenwell.data.sources import Report
    from listenwell.data.sources.jsonl import write
    from listenwell.outputs import check_file
    from listenwell.weights import find

    if out is None:
        raise ValueError("data label needs --out FILE.jsonl")
    check_file(out)
    labeller = cached_labeller(checkpoint.load(find(using)))
    # Read twice, first to count the turns, because the corpus may not fit in memory.
    turns = [has_gold(turn) for dialogue in _read(source, path, split, options, None) for turn in dialogue.turns]
    unchanged = 0 if overwrite else sum(turns)
    report = Report()
    with tracked() as progress:
        dialogues = _read(source, path, split, options, report)
        count = write(label_dialogues(dialogues, labeller, overwrite, progress("turns", len(turns))), out)
    console = Console()
    _print_report(report, console)
    by_model = f"{len(turns) - unchanged:,} turns labelled by {labeller.checkpoint.name}"
    summary = f"{by_model}, {unchanged:,} kept the label of a person"
    console.print(f"{count:,} dialogues written to {out}: {summary}", highlight=False)


def _select(
    source: str,
    split: str | None,
    path: Path | None,
    out: Path | None,
    options: dict[str, Any],
    using: str,
    most: int | None,
) -> None:
    from rich.console import Console

    from listenwell.classifiers.emotionality import most_emotional
    from listenwell.classifiers.labeller import Labeller
    from listenwell.commands.display import tracked
    from listenwell.data.sources import Report
    from listenwell.data.sources.jsonl import write
    from listenwell.outputs import check_file

    if out is None or most is None:
        raise ValueError("data select needs --most_emotional N and --out FILE.jsonl")
    check_file(out)
    labeller, report = Labeller.load(using), Report()
    dialogues = []
    for dialogue in _read(source, path, split, options, report):
        if len(dialogue.turns) > 1:
            dialogues.append(dialogue)
        else:  # often a single outcry; they would crowd out dialogues to learn from
            report.drop_kept(NO_REPLY, len(dialogue.turns))
    turns = sum(len(dialogue.turns) for dialogue in dialogues)
    with tracked() as progress:
        count = write(most_emotional(dialogues, labeller, most, progress("turns", turns)), out)
    console = Console()
    _print_report(report, console)
    console.print(f"{count:,} of {len(dialogues):,} dialogues written to {out}", highlight=False)


def _check(source: str, path: Path | None, options: dict[str, Any], json: bool) -> None:
    import json as encoder
    from dataclasses import asdict

    from rich.console import Console

    from listenwell.commands.display import table
    from listenwell.data.sources.leakage import LONG_REPLY, check
    from listenwell.data.sources.splits import SPLITS

    leakage = check(SPLITS, lambda split: _read(source, path, split, options, None))
    if json:
        print(encoder.dumps(asdict(leakage)))
        return
    console = Console()
    rows = [(name, f"{number:,}") for name, number in leakage.within.items()]
    console.print(table(f"{source}: duplicate dialogues within", ("split", "times"), rows, right=("times",)))
    across = [
        (f"{pair.second} in {pair.first}", f"{pair.dialogues:,}", f"{pair.replies:,} of {pair.replies_of:,}")
        for pair in leakage.across
    ]
    columns = ("what of which", "dialogues", f"replies of {LONG_REPLY} words or more")
    console.print(table("across splits", columns, across, right=columns[1:]))


def _where(name: str) -> tuple[str, str]:
    from listenwell.data import sources

    try:
        module = sources.source_module(name)
    except ValueError as problem:  # from another package
        return "", str(problem)
    about = (module.__doc__ or "").strip().splitlines()[0]
    if getattr(module, "INSIDE", False):
        return about, "inside the package"
    if name == "jsonl":
        return about, "any .jsonl file"
    try:
        return about, str(sources.find_data(name))
    except FileNotFoundError:
        return about, "not found: set LISTENWELL_DATA"
