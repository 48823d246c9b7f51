from __future__ import annotations

from listenwell.systems.house.options import Rerank


def rerank(
    run: str,
    split: str = "valid",
    weights: Rerank | None = None,
    judge: str | None = None,
    ses: bool = True,
    json: bool = False,
) -> None:
    """Measure what each term contributes to a system's choice among its candidates.

    Takes the candidates that `listenwell evaluate` saved and chooses again: by all terms, without each of them, by each
    alone, and at random. No reply is generated, so it takes only seconds. Use it on the valid split to find weights for
    the recipe (decoding.rerank), and on the test split to report their effect.

    Args:
        run: The folder of a run that was evaluated, or a folder that `evaluate --out` wrote.
        split: Which split of the run's evaluation.
        weights: The weight of each term, such as --weights.plan 1.5, with 0 for all others; the evaluation's weights if
            none is given.
        judge: A polarity classifier, by name or folder; the trained system called judge if there is one.
        ses: Whether to also measure sentence embedding similarity, which takes longest.
        json: Print the scores as JSON instead of a table.
    """
    import json as encoder
    from dataclasses import asdict

    from rich.console import Console

    from listenwell.classifiers.sentence_encoder import sentence_encoder
    from listenwell.commands.display import table, tracked
    from listenwell.commands.evaluate_replies import reading
    from listenwell.evaluation.rerank_ablation import reranked
    from listenwell.evaluation.store import read

    evaluation = read(run, split)
    with tracked() as progress:
        choices = reranked(
            evaluation, weights, progress, reading(judge, "judge", "polarity"), sentence_encoder() if ses else None
        )
    if json:
        report = [
            {
                "choice": one.name,
                "weights": None if one.weights is None else asdict(one.weights),
                "changed": one.changed,
                "scores": {name: score.value for name, score in one.scores.items()},
            }
            for one in choices
        ]
        print(encoder.dumps(report))
        return
    shown = {
        "bleu-4": ("BLEU", 2),
        "distinct-1": ("Distinct-1", 2),
        "distinct-2": ("Distinct-2", 2),
        "unique-count": ("unique", 0),
        "sorry-to-hear": ("sorry %", 1),
        "bland": ("bland %", 1),
        "length": ("words", 1),
        "positivity": ("positivity", 3),
        "vader": ("VADER", 3),
        "ses": ("SES", 3),
    }
    names = [name for name in shown if name in choices[0].scores]
    rows = [
        (
            one.name,
            f"{one.changed:.0f} %",
            *(f"{one.scores[name].value:,.{shown[name][1]}f}" for name in names),
        )
        for one in choices
    ]
    columns = ("chosen by", "changed", *(shown[name][0] for name in names))
    by = choices[0].weights
    run_split = evaluation.about.get("split") or split  # an evaluation's folder may be of another split
    title = f"{evaluation.name}, {run_split}: {len(evaluation.records):,} items; all: {by.signature() if by else ''}"
    console = Console(width=None if Console().is_terminal else 160)
    console.print(table(title, columns, rows, right=columns[1:]))
