from __future__ import annotations

from pathlib import Path

from listenwell.decoding import Decoding


def evaluate(
    system: str,
    data: str = "empathetic-dialogues",
    split: str = "test",
    path: Path | None = None,
    out: Path | None = None,
    decoding: Decoding | None = None,
    limit: int = 0,
    resamples: int = 1000,
    json: bool = False,
) -> None:
    """Score a system on a split: perplexity, emotion accuracy, BLEU, Distinct, bland replies and more.

    Every score comes with its 95 % interval and a signature that says how it was computed. The system is given
    what it would be given in use: the turns so far, never the emotion, the label or the situation.

    Args:
        system: A trained system by name (`listenwell models`), or the folder of a run.
        data: A source by name (`listenwell data`) or a .jsonl file.
        split: Which split.
        path: Where the source lies, if not in LISTENWELL_DATA.
        out: Folder for scores.json and replies.jsonl; evaluation/SPLIT within a run's folder if that is the system.
        decoding: How to write replies; the system's own way if not given.
        limit: Only the first so many items; 0 for all.
        resamples: Of the bootstrap that gives the intervals; 0 for none.
        json: Print scores.json instead of a table.
    """
    import json as encoder
    from itertools import islice

    from rich.console import Console

    from listenwell import sources
    from listenwell.commands.display import table, tracked
    from listenwell.dialogue import examples
    from listenwell.evaluation.evaluate import evaluate as measure
    from listenwell.evaluation.evaluate import write
    from listenwell.finding import load

    bot = load(system)
    if decoding is not None:
        bot.decoding = decoding
    items = (item for dialogue in sources.read(data, path, split) for item in examples(dialogue))
    chosen = list(islice(items, limit or None))
    meta = bot.checkpoint.meta
    about: dict[str, object] = {
        "data": data,
        "split": split,
        "data hash": sources.data_hash(sources.data_files(data, path, split)),
        **{key: meta[key] for key in ("commit", "seed", "examples", "seconds", "parameters") if key in meta},
    }
    with tracked() as progress:
        found = measure(bot, chosen, about, progress, resamples)
    if out is None and Path(system).is_dir():
        out = Path(system) / "evaluation" / split
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(found, out)
    if json:
        print(encoder.dumps({"system": system, "about": found.about, "scores": [s.to_json() for s in found.scores]}))
        return
    rows = [(s.name, f"{s.value:.2f}{s.unit and ' ' + s.unit}", _interval(s), str(s.signature)) for s in found.scores]
    title = f"{system} on {data}, {split}: {len(chosen):,} items, {found.about['decoding']}"
    console = Console(width=None if Console().is_terminal else 160)
    console.print(table(title, ("score", "value", "95 % interval", "signature"), rows, right=("value",)))
    if out is not None:
        console.print(f"written to {out}: scores.json, replies.jsonl", highlight=False)


def _interval(score) -> str:
    return "" if score.low is None else f"{score.low:.2f} to {score.high:.2f}"
