"""What `listenwell evaluate` does with a listener."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from listenwell.checkpoint import Checkpoint
    from listenwell.data.dialogue import Dialogue


def evaluate_listener(
    system: str,
    ckpt: Checkpoint,
    dialogues: Iterable[Dialogue],
    about: dict[str, Any],
    out: Path | None,
    limit: int,
    resamples: int,
    json: bool,
) -> None:
    """Scores the predictions before every listener turn, writes them to `out`, and prints the scores."""
    import json as encoder
    from itertools import islice

    from listenwell.classifiers.listener import ListenerClassifier
    from listenwell.commands.display import report, scores_table, tracked
    from listenwell.data.dialogue import examples
    from listenwell.evaluation.listener_scores import evaluate_listening, write

    items = list(islice((item for dialogue in dialogues for item in examples(dialogue)), limit or None))
    with tracked() as progress:
        evaluation = evaluate_listening(ListenerClassifier(ckpt), items, about, progress, resamples)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(evaluation, out)
    if json:
        print(
            encoder.dumps(
                {"system": system, "about": evaluation.about, "scores": [s.to_json() for s in evaluation.scores]}
            )
        )
        return
    console = report()
    title = f"{system} on {', '.join(str(about[key]) for key in ('data', 'part', 'split') if key in about)}"
    console.print(scores_table(f"{title}: {len(items):,} contexts", evaluation.scores))
    if out is not None:
        console.print(f"written to {out}: scores.json, heard.jsonl, confusion.png", highlight=False)
