from __future__ import annotations

from pathlib import Path


def embeddings(systems: list[str], out: Path | None = None, json: bool = False) -> None:
    """Tell how far the positive and the negative emotions' embeddings of trained systems lie apart; draw them.

    The silhouette of the two polarities is measured among all dimensions, by angle, and in the plane of the first two
    principal components, by distance. The picture shows these planes side by side, as Figure 3 of MIME does.

    Args:
        systems: Trained systems by name (`listenwell models`), or the folders of runs.
        out: The picture to draw (PNG, PDF or SVG).
        json: Print JSON instead of a table.
    """
    import json as encoder

    from rich.console import Console

    from listenwell.commands.display import table
    from listenwell.evaluation.embeddings import draw, read
    from listenwell.outputs import check_picture

    if out is not None:
        check_picture(out, "embeddings")
    found = [read(system) for system in systems]
    if out is not None:
        draw(found, out)
    if json:
        print(encoder.dumps([{"system": one.name, **one.scores()} for one in found]))
        return
    columns = tuple(found[0].scores())
    rows = [(one.name, *(f"{value:.3f}" for value in one.scores().values())) for one in found]
    console = Console()
    console.print(table("Positive and negative emotions", ("system", *columns), rows, right=columns))
    if out is not None:
        console.print(f"drawn: {out}", highlight=False)
