from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console

    from listenwell.data.curation.pipeline import Curation

VERBS = ("subtitles", "posts", "stats", "check")
LANGUAGES = {"subtitles": "en", "posts": "zh"}
NONE = "none"


def curate(
    what: list[str],
    out: Path | None = None,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    language: str | None = None,
    labeller: str | None = None,
    most_emotional: int | None = None,
    held_out: str | None = None,
    shard_size: int = 50_000,
    plot: Path | None = None,
    json: bool = False,
) -> None:
    """Make a corpus of dialogues out of subtitle files or of threads of posts.

    `curate subtitles FILE_OR_FOLDER… --out DIR` reads SRT, VTT, ASS and OPUS XML in any encoding; detects which lines
    are said by the same person; cuts where nobody speaks for five seconds; cleans; drops near duplicates and anything
    in the test split of EmpatheticDialogues; labels every turn; and marks the most emotional dialogues. `curate posts`
    does the same with threads: a JSON list of texts per line, or one JSON array of such lists.

    DIR then has Parquet files, manifest.json with all counts, samples of everything that was dropped, and a list of the
    files that could not be read. It can be used as a corpus for any --data. If a run is stopped, the same command
    continues it.

    `curate stats DIR` prints the statistics of such a corpus and draws the labels of the last utterances. `curate check
    DIR` recomputes the hash over its records.

    Args:
        what: subtitles or posts, then the files and folders to read; or stats or check, then a folder made by them.
        out: The folder to write.
        engine: Processes on this machine, or Ray, whose cluster (RAY_ADDRESS) must see the same files.
        workers: How many processes; one per processor if not given.
        language: The language of the dialogues; en for subtitles and zh for posts if not given.
        labeller: The classifier that labels turns, by name or folder, or none. If not given, emotion-intent for
            English subtitles and none for others.
        most_emotional: Mark this many dialogues as selected, by the mean over their turns of p(any emotion).
        held_out: The corpus whose test split must not be in the result, several joined by +, or none;
            if not given, empathetic-dialogues for English and none for other languages.
        shard_size: Dialogues per Parquet file.
        plot: For stats: the picture to draw; labels.png in the corpus's folder if not given.
        json: Print the manifest, or the statistics, as JSON.
    """
    from listenwell.commands.numbers import at_least
    from listenwell.labels.taxonomy import unknown_name

    at_least(1, workers=workers, most_emotional=most_emotional, shard_size=shard_size)
    verb, *places = what
    if verb not in VERBS:
        raise ValueError(unknown_name("verb", verb, VERBS))
    if not places:
        needed = "the files and folders to read" if verb in LANGUAGES else "the folder of a curated corpus"
        raise ValueError(f"curate {verb} needs {needed}")
    if verb == "stats":
        return _stats(places, plot, json)
    if verb == "check":
        return _check(places)
    if out is None:
        raise ValueError(f"curate {verb} needs --out DIR, the folder to write")
    options = {"labeller": labeller, "held_out": held_out, "shard_size": shard_size}
    curation = _curation(verb, places, out, language or LANGUAGES[verb], most_emotional, options)
    _run(curation, engine, workers, json)


def _curation(
    kind: str, places: list[str], out: Path, language: str, most_emotional: int | None, options: dict[str, Any]
) -> Curation:
    from listenwell.data.curation.inputs import Inputs
    from listenwell.data.curation.manifest import OWNER
    from listenwell.data.curation.pipeline import Curation
    from listenwell.outputs import check_folder

    check_folder(out, OWNER)
    inputs = Inputs.named(kind, places)
    named = options["labeller"] or ("emotion-intent" if (kind, language) == ("subtitles", "en") else NONE)
    labelling = None
    if named != NONE:
        from listenwell.classifiers.corpus_labels import CorpusLabelling

        labelling = CorpusLabelling.named(named, language)
    if most_emotional is not None and (labelling is None or not labelling.knows_emotions):
        raise ValueError("--most-emotional needs --labeller with a classifier of the 41 emotions and intents")
    held_out = options["held_out"] or ("empathetic-dialogues" if language == "en" else NONE)
    return Curation(
        inputs, out, language, None if held_out == NONE else held_out, labelling, most_emotional, options["shard_size"]
    )


def _run(curation: Curation, engine: str, workers: int | None, json: bool) -> None:
    import json as encoder

    from rich.console import Console

    from listenwell.commands.curate_display import rates
    from listenwell.data.curation.engines import make_engine
    from listenwell.data.curation.pipeline import curate as run_curation

    running = make_engine(engine, workers)
    try:
        with rates() as begin:
            content = run_curation(curation, running, begin)
    finally:
        running.close()
    if json:
        print(encoder.dumps(content, ensure_ascii=False))
        return
    _show(content, curation.out, Console())


def _show(content: dict[str, Any], out: Path, console: Console) -> None:
    """Print the counts for every unit, then what was written."""
    from rich.markup import escape

    from listenwell.commands.display import table

    rows = []
    for unit, count in content["counts"].items():
        if count["in"]:
            rows.append((unit, "in", f"{count['in']:,}"))
            rows += [("", f"dropped: {escape(reason)}", f"{number:,}") for reason, number in count["dropped"].items()]
            rows.append(("", "out", f"{count['out']:,}"))
    console.print(table("Curated", ("", "", "number"), rows, right=("number",)))
    changed = [(escape(name), f"{number:,}") for name, number in content["changed"].items()]
    console.print(table("Turns that a cleaning step changed", ("step", "turns"), changed, right=("turns",)))
    records = content["records"]
    chosen = f", {records['selected']:,} of them selected" if records["selected"] else ""
    lines = [
        f"{records['dialogues']:,} dialogues with {records['turns']:,} turns{chosen}, in {out}",
        f"hash over all records: {records['hash'][:16]}",
    ]
    if refused := sum(content["counts"]["files"]["dropped"].values()):
        lines.append(f"{refused:,} files were not used: {out / 'problems.jsonl'} says why")
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def _stats(places: list[str], plot: Path | None, json: bool) -> None:
    import json as encoder

    from rich.console import Console

    from listenwell.data.curation import manifest
    from listenwell.data.curation.statistics import describe
    from listenwell.outputs import check_picture

    folder = _one_folder(places)
    manifest.shard_files(folder)
    picture = plot or folder / "labels.png"
    check_picture(picture, "curate", "--plot")
    statistics_by_part = describe(manifest.read_curated(folder))
    last = (statistics_by_part.get("emotional") or statistics_by_part["all"]).last_labels
    if last:
        _draw(last, folder, picture)
    if json:
        print(encoder.dumps({name: statistics.to_json() for name, statistics in statistics_by_part.items()}))
        return
    _show_statistics(statistics_by_part, Console())
    if last:
        Console().print(f"drawn: {picture}", highlight=False)


def _draw(last: dict[str, int], folder: Path, picture: Path) -> None:
    from listenwell.classifiers.label_cache import are_of
    from listenwell.evaluation.pictures import draw_distributions
    from listenwell.labels.sets import EMOTION_INTENT

    if are_of(EMOTION_INTENT, last):
        draw_distributions({"last utterances": last}, f"{folder.resolve().name}: last utterance", picture, "curate")
    else:
        from listenwell.data.sources.plots import draw
        from listenwell.data.sources.statistics import Statistics

        draw(Statistics(labels=last), f"{folder.resolve().name}, last utterances", picture)  # type: ignore[arg-type]


def _show_statistics(statistics_by_part: dict[str, Any], console: Console) -> None:
    from listenwell.commands.display import table
    from listenwell.data.curation.statistics import PUBLISHED

    titles = {"all": "All dialogues (MEED2's Table 1)", "emotional": "The most emotional ones (MEED2's Table 2)"}
    for name, statistics in statistics_by_part.items():
        rows = [(row, _number(value), _number(PUBLISHED[name][row])) for row, value in statistics.rows().items()]
        console.print(table(titles[name], ("", "here", "MEED2"), rows, right=("here", "MEED2")))
    last = (statistics_by_part.get("emotional") or statistics_by_part["all"]).last_labels
    total = sum(last.values())
    rows = [(label, f"{number:,}", f"{100 * number / total:.1f} %") for label, number in last.most_common()]
    if rows:
        title = "Labels of the last utterance (MEED2's Figure 2)"
        console.print(table(title, ("label", "dialogues", "share"), rows, right=("dialogues", "share")))


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _check(places: list[str]) -> None:
    from listenwell.data.curation.manifest import read_manifest, verify

    folder = _one_folder(places)
    digest = verify(folder)
    print(
        f"{folder}: {read_manifest(folder)['records']['dialogues']:,} dialogues, hash {digest[:16]} as in the manifest"
    )


def _one_folder(places: list[str]) -> Path:
    if len(places) != 1:
        raise ValueError(f"one folder of a curated corpus is expected, found {len(places)}: {', '.join(places)}")
    return Path(places[0]).expanduser()
