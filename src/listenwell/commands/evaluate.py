from __future__ import annotations

from pathlib import Path
from typing import Any

from listenwell.decoding import Decoding


def evaluate(
    system: str,
    data: str | None = None,
    split: str = "test",
    path: Path | None = None,
    part: str | None = None,
    out: Path | None = None,
    decoding: Decoding | None = None,
    limit: int = 0,
    resamples: int = 1000,
    json: bool = False,
) -> None:
    """Score a system on a split: perplexity, emotion accuracy, BLEU, Distinct, bland replies and more.

    A classifier is scored on the turns that have labels: accuracy, precision, recall, F1, calibration, confusion.

    Every score comes with its 95 % interval and a signature that says how it was computed. The system is given
    what it would be given in use: the turns so far, never the emotion, the label or the situation.

    Args:
        system: A trained system by name (`listenwell models`), or the folder of a run.
        data: A source by name (`listenwell data`) or a .jsonl file; EmpatheticDialogues if not given, and for a
            classifier what it was trained on.
        split: Which split; all for all of them together.
        path: Where the source lies, if not in LISTENWELL_DATA.
        part: Which part of a source that has parts, such as edos's mturk.
        out: Folder for scores.json and replies.jsonl; evaluation/SPLIT within a run's folder if that is the system.
        decoding: How to write replies; the system's own way if not given.
        limit: Only the first so many items; 0 for all.
        resamples: Of the bootstrap that gives the intervals; 0 for none.
        json: Print scores.json instead of a table.
    """
    import json as encoder
    from itertools import islice

    from rich.console import Console

    from listenwell import checkpoint, sources
    from listenwell.commands.display import table, tracked
    from listenwell.dialogue import examples
    from listenwell.evaluation.evaluate import evaluate as measure
    from listenwell.evaluation.evaluate import write
    from listenwell.finding import find
    from listenwell.system import Bot

    made = checkpoint.load(find(system))
    wanted = None if split == "all" else split
    options = {} if part is None else {"part": part}
    trained_on = made.meta.get("data", {}).get("source")
    data = data or (None if made.model.talks else trained_on) or "empathetic-dialogues"
    about: dict[str, Any] = {
        "data": data,
        "split": split,
        **options,
        "data hash": sources.data_hash(sources.data_files(data, path, wanted, **options)),
        **{key: made.meta[key] for key in ("commit", "seed", "examples", "seconds", "parameters") if key in made.meta},
    }
    dialogues = sources.read(data, path, wanted, **options)
    if not made.model.talks:
        if decoding is not None:
            raise ValueError(f"{system} labels texts and writes no replies; leave --decoding out")
        if out is None and Path(system).is_dir():
            own = data == trained_on and part is None
            out = Path(system) / "evaluation" / (split if own else "-".join(filter(None, (data, part, split))))
        return _labels(system, made, dialogues, about, out, limit, resamples, json)
    bot = Bot(made)
    if decoding is not None:
        bot.decoding = decoding
    items = (item for dialogue in dialogues for item in examples(dialogue))
    chosen = list(islice(items, limit or None))
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


def _labels(
    system: str, made: Any, dialogues: Any, about: dict, out: Path | None, limit: int, resamples: int, json: bool
) -> None:
    import json as encoder
    from dataclasses import asdict

    from rich.console import Console

    from listenwell.commands.display import table, tracked
    from listenwell.evaluation.labels import evaluate_labels, labelled_turns, write
    from listenwell.labelling import Labeller

    items = labelled_turns(dialogues)[: limit or None]
    with tracked() as progress:
        found = evaluate_labels(Labeller(made), items, about, progress, resamples)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(found, out)
    if json:
        scores = {"scores": [s.to_json() for s in found.scores], "classes": [asdict(one) for one in found.classes]}
        print(encoder.dumps({"system": system, "about": found.about, **scores}))
        return
    console = Console(width=None if Console().is_terminal else 160)
    title = f"{system} on {', '.join(str(about[key]) for key in ('data', 'part', 'split') if key in about)}"
    rows = [(s.name, f"{s.value:.2f}{s.unit and ' ' + s.unit}", _interval(s), str(s.signature)) for s in found.scores]
    columns = ("score", "value", "95 % interval", "signature")
    console.print(table(f"{title}: {found.about['items']:,} turns", columns, rows, right=("value",)))
    each = [
        (c.label, f"{c.gold:,}", f"{c.given:,}", f"{c.precision:.1f}", f"{c.recall:.1f}", f"{c.f1:.1f}")
        for c in found.classes
    ]
    heads = ("label", "gold", "given", "precision %", "recall %", "F1 %")
    console.print(table("Each label", heads, each, right=heads[1:]))
    if out is not None:
        console.print(f"written to {out}: scores.json, labels.jsonl, confusion.png", highlight=False)


def _interval(score) -> str:
    return "" if score.low is None else f"{score.low:.2f} to {score.high:.2f}"
