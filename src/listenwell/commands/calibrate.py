from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from listenwell.classifiers.calibration import Calibration, Choice

TableData = tuple[tuple[str, str, str], list[tuple[str, str, str]]]
"""The column headings of a table, and its rows."""


def calibrate(
    system: Path, data: str | None = None, split: str = "valid", path: Path | None = None, json: bool = False
) -> None:
    """Fit a classifier's temperature on validation data, so that its confidence matches its accuracy.

    No label changes, only its confidence. The checkpoint is rewritten with the temperature in it.
    A listener (house-listener) has one for the emotion of a dialogue and one for the label of the reply; house has one
    for the emotion that its writer predicts; epitome has one for each of the three kinds of empathy.

    For meed2, this fits the temperature of the predictor of the reply's label, and also how that label is then chosen:
    for the best expected F1, weighted by how often each label is right. The most likely labels, questioning and
    acknowledging, would otherwise be chosen too often. No replies are written for this.

    Args:
        system: The folder of a run or checkpoint.
        data: A source by name (`listenwell data`) or a .jsonl file; what the system was trained on if not given.
        split: Which split; it must not be one that the system was trained on.
        path: Path of the source, if it is not in LISTENWELL_DATA.
        json: Print JSON instead of a table.
    """
    import json as encoder
    from dataclasses import asdict

    from rich.console import Console

    from listenwell import checkpoint
    from listenwell.classifiers.calibration import Choice, calibrate_choice, calibrate_listener
    from listenwell.classifiers.calibration import calibrate as fit
    from listenwell.classifiers.empathy import calibrate_empathy
    from listenwell.commands.display import table, tracked
    from listenwell.commands.evaluation_input import as_trained
    from listenwell.data import sources
    from listenwell.data.dialogue import examples
    from listenwell.outputs import check_parent
    from listenwell.systems.house.calibration import calibrate_writer
    from listenwell.weights import find

    if not system.is_dir():
        raise ValueError(f"{system}: no such folder; a run's own checkpoint is calibrated, before it is packed")
    place = find(system)
    if (place / "training.json").is_file():
        raise ValueError(
            f"{place} is the state a run resumes from; give the folder of the run, whose best checkpoint is calibrated"
        )
    check_parent(place, "copy the run to a place where it can be changed")
    ckpt = checkpoint.load(place)
    trained_on = ckpt.meta.get("data", {})
    chosen = data or trained_on.get("source")
    if chosen is None:
        raise ValueError(f"{place} does not say what it was trained on; name the data with --data")
    options = {"part": trained_on["part"]} if data is None and "part" in trained_on else {}
    dialogues = as_trained(sources.read(chosen, path, split, labels=ckpt.model.label_set, **options), ckpt.meta)
    fitted: dict[str, Any] = {}
    with tracked() as progress:
        if ckpt.model.calibration in ("", "text"):  # raises if there is nothing to fit
            turns = [turn for dialogue in dialogues for turn in dialogue.turns]
            fitted[""] = fit(ckpt, turns, progress("reading", len(turns)))
        else:
            items = [item for dialogue in dialogues for item in examples(dialogue)]
            if ckpt.model.calibration == "dialogue":
                fitted |= calibrate_listener(ckpt, items, progress("reading", len(items)))
            elif ckpt.model.calibration == "empathy":
                fitted |= calibrate_empathy(ckpt, items, progress("reading", len(items)))
            elif ckpt.model.calibration == "emotion":
                fitted |= calibrate_writer(ckpt, items, progress("reading", len(items)))
            else:
                fitted[""] = calibrate_choice(ckpt, items, progress)
    ckpt.meta["calibration"] |= {"data": chosen, **options, "split": split}
    checkpoint.save(ckpt, place)
    if json:
        report = {name: asdict(one) for name, one in fitted.items()}
        print(encoder.dumps(report.get("", report)))
        return
    console = Console()
    for name, calibration in fitted.items():
        title = f"{system} on {chosen}, {split}{name and f', {name}'}: {calibration.items:,} items"
        columns, rows = _choice(calibration) if isinstance(calibration, Choice) else _temperature(calibration)
        console.print(table(title, columns, rows, right=columns[1:]))
    console.print(f"written to {place}", highlight=False)


def _temperature(calibration: Calibration) -> TableData:
    rows = [
        ("temperature", "1", f"{calibration.temperature:.3f}"),
        ("calibration error (ECE)", f"{calibration.ece_before:.2f} %", f"{calibration.ece_after:.2f} %"),
        ("negative log-likelihood", f"{calibration.nll_before:.4f}", f"{calibration.nll_after:.4f}"),
    ]
    return ("", "before", "after"), rows


def _choice(choice: Choice) -> TableData:
    rows = [
        ("weighted F1", f"{choice.f1_before:.2f} %", f"{choice.f1_after:.2f} %"),
        ("accuracy", f"{choice.accuracy_before:.2f} %", f"{choice.accuracy_after:.2f} %"),
        ("temperature of the predictor", "1", f"{choice.temperature:.3f}"),
        ("negative log-likelihood", f"{choice.nll_before:.4f}", f"{choice.nll_after:.4f}"),
    ]
    return (f"against the labels of {choice.labels}", "the likeliest", "chosen"), rows
