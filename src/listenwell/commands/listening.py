"""What `listenwell evaluate` does with a listener."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from listenwell.checkpoint import Checkpoint
    from listenwell.dialogue import Dialogue
    from listenwell.metrics import Score


def evaluate_listener(
    system: str,
    made: Checkpoint,
    dialogues: Iterable[Dialogue],
    about: dict[str, Any],
    out: Path | None,
    limit: int,
    resamples: int,
    json: bool,
) -> None:
    """Scores what is heard before every listener turn, writes it to `out`, and prints the scores."""
    import json as encoder
    from itertools import islice

    from rich.console import Console

    from listenwell.commands.display import table, tracked
    from listenwell.dialogue import examples
    from listenwell.evaluation.listening import evaluate_listening, write
    from listenwell.house.listening import Listening

    items = list(islice((item for dialogue in dialogues for item in examples(dialogue)), limit or None))
    with tracked() as progress:
        found = evaluate_listening(Listening(made), items, about, progress, resamples)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(found, out)
    if json:
        print(encoder.dumps({"system": system, "about": found.about, "scores": [s.to_json() for s in found.scores]}))
        return
    console = Console(width=None if Console().is_terminal else 160)
    title = f"{system} on {', '.join(str(about[key]) for key in ('data', 'part', 'split') if key in about)}"
    rows = [(s.name, f"{s.value:.2f}{s.unit and ' ' + s.unit}", _interval(s), str(s.signature)) for s in found.scores]
    columns = ("score", "value", "95 % interval", "signature")
    console.print(table(f"{title}: {len(items):,} contexts", columns, rows, right=("value",)))
    if out is not None:
        console.print(f"written to {out}: scores.json, heard.jsonl, confusion.png", highlight=False)


def _interval(score: Score) -> str:
    return "" if score.low is None else f"{score.low:.2f} to {score.high:.2f}"
