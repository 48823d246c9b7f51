from __future__ import annotations

from pathlib import Path
from typing import Any

from listenwell.systems.house.options import HouseDecoding


def consensus(
    system: str,
    data: str = "empathetic-dialogues",
    split: str = "test",
    path: Path | None = None,
    limit: int = 0,
    contexts: int = 5,
    values: int = 5,
    out: Path | None = None,
    decoding: HouseDecoding | None = None,
    resamples: int = 1000,
    json: bool = False,
) -> None:
    """Measure whether a discrete latent, such as dual-emp's consensus, is used.

    The scores are the information in nats that the latent carries about a context, how many of its values are used, and
    how much the perplexity rises when it is inferred from another context. A table shows replies to the same contexts
    under several values.

    Args:
        system: A trained system by name (`listenwell models`), or the folder of a run.
        data: A source by name (`listenwell data`) or a .jsonl file.
        split: Which split.
        path: Path of the source, if it is not in LISTENWELL_DATA.
        limit: How many items, taken evenly from the split; 0 for all.
        contexts: How many contexts to show replies to.
        values: How many values of the latent to show replies under: the most common ones.
        out: Folder for scores.json and replies.jsonl; evaluation/consensus within a run's folder if that is the system.
        decoding: How to write replies; the system's own settings where not given.
        resamples: Bootstrap resamples for the intervals; 0 for no intervals.
        json: Print scores.json instead of tables.
    """
    from listenwell.commands.experiment import study
    from listenwell.commands.numbers import at_least
    from listenwell.evaluation.consensus import consensus as measured

    at_least(0, limit=limit, resamples=resamples)
    at_least(1, contexts=contexts, values=values)
    shown: list[dict[str, Any]] = []

    def measure(bot: Any, items: list, progress: Any) -> Any:
        result = measured(bot, items, progress, contexts, values, resamples)
        shown.extend(result.records)
        return result

    study("consensus", measure, system, data, split, path, limit, out, decoding, json)
    if not json:
        _show(shown)


def _show(records: list[dict[str, Any]]) -> None:
    from listenwell.commands.display import report, table

    console = report()
    for record in records:
        rows = [
            (
                f"chosen: {reply.get('consensus')}" if name == "chosen" else name,
                ", ".join(reply.get("stands for", {})),
                reply["text"],
            )
            for name, reply in record["replies"].items()
        ]
        console.print(table(f"“{record['context'][-1]}”", ("value", "stands for", "reply"), rows))
