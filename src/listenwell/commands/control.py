from __future__ import annotations

from pathlib import Path
from typing import Any

from listenwell.systems.house.options import HouseDecoding


def control(
    system: str,
    data: str = "empathetic-dialogues",
    split: str = "test",
    path: Path | None = None,
    limit: int = 200,
    labeller: str | None = None,
    out: Path | None = None,
    decoding: HouseDecoding | None = None,
    resamples: int = 1000,
    json: bool = False,
) -> None:
    """Measure whether a system replies with the requested intent.

    Each context is answered once for each of the eight intents. A score is the share of replies in which the
    classifier finds the requested intent; the first two scores are the mean over all intents and the lowest.

    Args:
        system: A trained system by name (`listenwell models`), or the folder of a run.
        data: A source by name (`listenwell data`) or a .jsonl file.
        split: Which split.
        path: Path of the source, if it is not in LISTENWELL_DATA.
        limit: How many contexts, taken evenly from the split; 0 for all.
        labeller: The classifier that recognises intents, by name or folder; the system's own if not given.
        out: Folder for scores.json and replies.jsonl; evaluation/control within a run's folder if that is the system.
        decoding: How to write replies; options not given keep the system's own values.
        resamples: Bootstrap resamples for the intervals; 0 for no intervals.
        json: Print scores.json instead of a table.
    """
    from listenwell import checkpoint
    from listenwell.classifiers.label_cache import load_labeller
    from listenwell.commands.experiment import study
    from listenwell.commands.numbers import at_least
    from listenwell.evaluation.control import check_takes_intent
    from listenwell.evaluation.control import control as controlled
    from listenwell.weights import find

    at_least(0, limit=limit, resamples=resamples)

    def measure(bot: Any, items: list, progress: Any) -> Any:
        check_takes_intent(bot)  # before asking for a classifier that would not help
        recogniser = bot.labeller if labeller is None else load_labeller(checkpoint.load(find(labeller)))
        if recogniser is None:
            raise ValueError(f"{system} has no classifier that recognises intents; name one with --labeller")
        return controlled(bot, items, recogniser, progress, resamples=resamples)

    study("control", measure, system, data, split, path, limit, out, decoding, json)
