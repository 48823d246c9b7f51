from __future__ import annotations

from pathlib import Path


def calibrate(
    system: Path, data: str | None = None, split: str = "valid", path: Path | None = None, json: bool = False
) -> None:
    """Fit a classifier's temperature on validation data, so that its confidence is the share of what it gets right.

    No label changes, only how sure the classifier is of it. The checkpoint is written anew with the temperature in it.

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
    from listenwell.commands.display import table, tracked
    from listenwell.finding import find

    if not system.is_dir():
        raise ValueError(f"{system}: no such folder; a run's own checkpoint is calibrated, before it is packed")
    place = find(system)
    if (place / "training.json").is_file():
        raise ValueError(f"{place} is what a run goes on from; give the folder of the run, whose best is calibrated")
    made = checkpoint.load(place)
    chosen = data or made.meta.get("data", {}).get("source")
    if chosen is None:
        raise ValueError(f"{place} does not tell what it was trained on; name the data with --data")
    turns = [turn for dialogue in sources.read(chosen, path, split) for turn in dialogue.turns]
    with tracked() as progress:
        found = fit(made, turns, progress("reading", len(turns)))
    made.meta["calibration"] |= {"data": chosen, "split": split}
    checkpoint.save(made, place)
    if json:
        print(encoder.dumps(asdict(found)))
        return
    rows = [
        ("temperature", "1", f"{found.temperature:.3f}"),
        ("calibration error (ECE)", f"{found.ece_before:.2f} %", f"{found.ece_after:.2f} %"),
        ("negative log-likelihood", f"{found.nll_before:.4f}", f"{found.nll_after:.4f}"),
    ]
    columns = ("", "before", "after")
    console = Console()
    console.print(table(f"{system} on {chosen}, {split}: {found.items:,} items", columns, rows, right=columns[1:]))
    console.print(f"written to {place}", highlight=False)
