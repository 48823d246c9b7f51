from __future__ import annotations

from pathlib import Path
from typing import Any

from listenwell.systems.house.options import HouseDecoding


def variety(
    system: str,
    data: str = "empathetic-dialogues",
    split: str = "test",
    path: Path | None = None,
    draws: int = 5,
    limit: int = 200,
    out: Path | None = None,
    decoding: HouseDecoding | None = None,
    resamples: int = 1000,
    json: bool = False,
) -> None:
    """Measure how varied a system's replies to the same message are.

    Each context is answered several times with different noise: in the latent of a system that samples one, such as
    mime, and in the words, if they are sampled. The scores are the number of different replies to a
    context, the share of contexts with more than one, and how varied all replies together are.

    Args:
        system: A trained system by name (`listenwell models`), or the folder of a run.
        data: A source by name (`listenwell data`) or a .jsonl file.
        split: Which split.
        path: Path of the source, if it is not in LISTENWELL_DATA.
        draws: How many replies to each context.
        limit: How many contexts, taken evenly from the split; 0 for all.
        out: Folder for scores.json and replies.jsonl; evaluation/variety within a run's folder if that is the system.
        decoding: How to write replies; options not given keep the system's own values.
        resamples: Bootstrap resamples for the intervals; 0 for no intervals.
        json: Print scores.json instead of a table.
    """
    from listenwell.commands.experiment import study
    from listenwell.commands.numbers import at_least
    from listenwell.evaluation.variety import variety as varied

    at_least(0, limit=limit, resamples=resamples)
    at_least(2, draws=draws)

    def measure(bot: Any, items: list, progress: Any) -> Any:
        return varied(bot, items, progress, draws, resamples)

    study("variety", measure, system, data, split, path, limit, out, decoding, json)
