from __future__ import annotations

from pathlib import Path


def calibrate(
    system: Path, data: str | None = None, split: str = "valid", path: Path | None = None, json: bool = False
) -> None:
    """Fit a classifier's temperature on validation data, so that its confidence is the share of what it gets right.

    No label changes, only how sure the classifier is of it. The checkpoint is written anew with the temperature in it.
    A listener (house-listener) has one for the emotion of a dialogue and one for the label of the reply.

    Args:
        system: The folder of a run or checkpoint.
        data: A source by name (`listenwell data`) or a .jsonl file; what the classifier was trained on if not given.
        split: Which split: one that it was not trained on.
        path: Where the source lies, if not in LISTENWELL_DATA.
        json: Print JSON instead of a table.
    """
    import json as encoder
    from dataclasses import asdict

    from rich.console import Console

    from listenwell import checkpoint, sources
    from listenwell.calibration import calibrate as fit
    from listenwell.calibration import calibrate_listener
    from listenwell.commands.display import table, tracked
    from listenwell.dialogue import examples
    from listenwell.finding import find
    from listenwell.house.listening import listens

    if not system.is_dir():
        raise ValueError(f"{system}: no such folder; a run's own checkpoint is calibrated, before it is packed")
    place = find(system)
    if (place / "training.json").is_file():
        raise ValueError(f"{place} is what a run goes on from; give the folder of the run, whose best is calibrated")
    made = checkpoint.load(place)
    trained_on = made.meta.get("data", {})
    chosen = data or trained_on.get("source")
    if chosen is None:
        raise ValueError(f"{place} does not tell what it was trained on; name the data with --data")
    options = {"part": trained_on["part"]} if data is None and "part" in trained_on else {}
    dialogues = sources.read(chosen, path, split, labels=made.model.label_set, **options)
    with tracked() as progress:
        if listens(made):
            items = [item for dialogue in dialogues for item in examples(dialogue)]
            fitted = calibrate_listener(made, items, progress("reading", len(items)))
            told = {name: asdict(one) for name, one in fitted.items()}
        else:
            turns = [turn for dialogue in dialogues for turn in dialogue.turns]
            fitted = {"": fit(made, turns, progress("reading", len(turns)))}
            told = asdict(fitted[""])
    made.meta["calibration"] |= {"data": chosen, **options, "split": split}
    checkpoint.save(made, place)
    if json:
        print(encoder.dumps(told))
        return
    console = Console()
    columns = ("", "before", "after")
    for name, found in fitted.items():
        rows = [
            ("temperature", "1", f"{found.temperature:.3f}"),
            ("calibration error (ECE)", f"{found.ece_before:.2f} %", f"{found.ece_after:.2f} %"),
            ("negative log-likelihood", f"{found.nll_before:.4f}", f"{found.nll_after:.4f}"),
        ]
        title = f"{system} on {chosen}, {split}{name and f', {name}'}: {found.items:,} items"
        console.print(table(title, columns, rows, right=columns[1:]))
    console.print(f"written to {place}", highlight=False)
