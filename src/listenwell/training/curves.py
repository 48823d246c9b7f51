"""Plots the learning curves of a run from its journal."""

from __future__ import annotations

from pathlib import Path

from listenwell.training.display import read_journal


def draw(folder: Path) -> Path | None:
    """Writes curves.png next to log.jsonl, with one panel per loss. Returns None without matplotlib or data."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    records = [record for record in read_journal(folder / "log.jsonl") if record["kind"] in ("train", "valid")]
    apart = {"kind", "update", "stage", "examples", "speed", "seconds"}
    names = [name for name in _names(records) if name not in apart and not name.startswith("rate-")]
    if not names:
        return None
    figure = Figure(figsize=(4.5 * len(names), 3.4), layout="constrained")
    for index, name in enumerate(names):
        axes = figure.add_subplot(1, len(names), index + 1)
        for kind, style in (("train", {"alpha": 0.5, "lw": 1}), ("valid", {"marker": "o", "ms": 3})):
            points = [(r["examples"], r[name]) for r in records if r["kind"] == kind and name in r]
            if points:
                axes.plot(*zip(*points, strict=True), label=kind, **style)
        axes.set_title(f"{name} (nats)" if not name.endswith("accuracy") else name)
        axes.set_xlabel("examples seen")
        axes.grid(alpha=0.3)
        axes.legend()
    target = folder / "curves.png"
    figure.savefig(target, dpi=110)
    return target


def _names(records: list[dict]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record))
