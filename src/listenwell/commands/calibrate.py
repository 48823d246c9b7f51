from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from listenwell.classifiers.calibration import Calibration, Choice

Shown = tuple[tuple[str, str, str], list[tuple[str, str, str]]]
"""The heads of a table, and its rows."""


def calibrate(
    system: Path, data: str | None = None, split: str = "valid", path: Path | None = None, json: bool = False
) -> None:
    """Fit a classifier's temperature on validation data, so that its confidence is the share of what it gets right.

    No label changes, only how sure the classifier is of it. The checkpoint is written anew with the temperature in it.
    A listener (house-listener) has one for the emotion of a dialogue and one for the label of the reply; house has one
    for the emotion that its writer hears.

    Of meed2 it is the predictor's, of the label of a reply; and it is set how that label is chosen then: so that the
    best F1 is to be expected, weighted by how often each label is right. The likeliest label, to ask or to acknowledge,
    is chosen too often for that. No reply is written for it.

    Args:
        system: The folder of a run or checkpoint.
        data: A source by name (`listenwell data`) or a .jsonl file; what the system was trained on if not given.
        split: Which split: one that it was not trained on.
        path: Where the source lies, if not in LISTENWELL_DATA.
        json: Print JSON instead of a table.
    """
    import json as encoder
    from dataclasses import asdict

    from rich.console import Console

    from listenwell import checkpoint
    from listenwell.classifiers.calibration import Choice, calibrate_choice, calibrate_listener
    from listenwell.classifiers.calibration import calibrate as fit
    from listenwell.classifiers.listener import listens
    from listenwell.commands.display import table, tracked
    from listenwell.data import sources
    from listenwell.data.dialogue import examples
    from listenwell.outputs import check_parent
    from listenwell.systems.house.calibration import calibrate_writer
    from listenwell.weights import find

    if not system.is_dir():
        raise ValueError(f"{system}: no such folder; a run's own checkpoint is calibrated, before it is packed")
    place = find(system)
    if (place / "training.json").is_file():
        raise ValueError(f"{place} is what a run goes on from; give the folder of the run, whose best is calibrated")
    check_parent(place, "copy the run to a place where it can be changed")
    made = checkpoint.load(place)
    trained_on = made.meta.get("data", {})
    chosen = data or trained_on.get("source")
    if chosen is None:
        raise ValueError(f"{place} does not tell what it was trained on; name the data with --data")
    options = {"part": trained_on["part"]} if data is None and "part" in trained_on else {}
    dialogues = sources.read(chosen, path, split, labels=made.model.label_set, **options)
    fitted: dict[str, Any] = {}
    with tracked() as progress:
        if listens(made) or hasattr(made.model, "choose") or hasattr(made.model, "feel"):
            items = [item for dialogue in dialogues for item in examples(dialogue)]
            if listens(made):
                fitted |= calibrate_listener(made, items, progress("reading", len(items)))
            elif hasattr(made.model, "feel"):
                fitted |= calibrate_writer(made, items, progress("reading", len(items)))
            else:
                fitted[""] = calibrate_choice(made, items, progress)
        else:
            turns = [turn for dialogue in dialogues for turn in dialogue.turns]
            fitted[""] = fit(made, turns, progress("reading", len(turns)))
    made.meta["calibration"] |= {"data": chosen, **options, "split": split}
    checkpoint.save(made, place)
    if json:
        told = {name: asdict(one) for name, one in fitted.items()}
        print(encoder.dumps(told.get("", told)))
        return
    console = Console()
    for name, found in fitted.items():
        title = f"{system} on {chosen}, {split}{name and f', {name}'}: {found.items:,} items"
        columns, rows = _choice(found) if isinstance(found, Choice) else _temperature(found)
        console.print(table(title, columns, rows, right=columns[1:]))
    console.print(f"written to {place}", highlight=False)


def _temperature(found: Calibration) -> Shown:
    rows = [
        ("temperature", "1", f"{found.temperature:.3f}"),
        ("calibration error (ECE)", f"{found.ece_before:.2f} %", f"{found.ece_after:.2f} %"),
        ("negative log-likelihood", f"{found.nll_before:.4f}", f"{found.nll_after:.4f}"),
    ]
    return ("", "before", "after"), rows


def _choice(found: Choice) -> Shown:
    rows = [
        ("weighted F1", f"{found.f1_before:.2f} %", f"{found.f1_after:.2f} %"),
        ("accuracy", f"{found.accuracy_before:.2f} %", f"{found.accuracy_after:.2f} %"),
        ("temperature of the predictor", "1", f"{found.temperature:.3f}"),
        ("negative log-likelihood", f"{found.nll_before:.4f}", f"{found.nll_after:.4f}"),
    ]
    return (f"against the labels of {found.labels}", "the likeliest", "chosen"), rows
