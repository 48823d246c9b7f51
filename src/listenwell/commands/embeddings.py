from __future__ import annotations

from pathlib import Path


def embeddings(systems: list[str], out: Path | None = None, json: bool = False) -> None:
    """Show how far apart the embeddings of positive and negative emotions are in trained systems; plot them.

    The silhouette of the two polarities is computed in all dimensions by angle, and in the plane of the first two
    principal components by distance. The picture shows these planes side by side, like Figure 3 of MIME.

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
    spaces = [read(system) for system in systems]
    if out is not None:
        draw(spaces, out)
    if json:
        print(encoder.dumps([{"system": one.name, **one.scores()} for one in spaces]))
        return
    columns = tuple(spaces[0].scores())
    rows = [(one.name, *(f"{value:.3f}" for value in one.scores().values())) for one in spaces]
    console = Console()
    console.print(table("Positive and negative emotions", ("system", *columns), rows, right=columns))
    if out is not None:
        console.print(f"drawn: {out}", highlight=False)
