"""`listenwell data unpaired`: unpaired emotional texts for Dual-Emp."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from listenwell.classifiers.unpaired import UnpairedCounts
    from listenwell.data.dialogue import Dialogue

PLACE = "{threshold}"
"""The placeholder for the threshold in a file name that is given for several files."""


def unpaired_data(
    source: str | None,
    split: str | None,
    path: Path | None,
    out: Path | None,
    options: dict[str, Any],
    using: str,
    threshold: Sequence[str] | None,
    json: bool = False,
) -> None:
    """Classify every utterance once, write the confident ones to one file per threshold, and count them."""
    import json as encoder

    from listenwell.classifiers.unpaired import SOURCES, UnpairedCounts, is_sure
    from listenwell.data.sources.jsonl import write

    files = _files(out, threshold or ["0.6"])
    source, counts = source or SOURCES, UnpairedCounts()
    counts.include(*files)
    utterances = _classified((source, path, split), options, using, min(files), counts)
    about = {"command": "data unpaired", "sources": source, "classifier": using, **counts.to_json()}
    for least, file in files.items():
        write((dialogue for dialogue in utterances if is_sure(dialogue.emotion, least)), file)
        _beside(file).write_text(encoder.dumps({**about, "threshold": least}, indent=1) + "\n", encoding="utf-8")
    if json:
        print(encoder.dumps(about))
    else:
        _show(counts, files)


def _files(out: Path | None, thresholds: Iterable[str]) -> dict[float, Path]:
    """The file for each threshold. Raises if any of them may not be written."""
    from listenwell.classifiers.unpaired import check_threshold
    from listenwell.outputs import check_file

    if out is None:
        raise ValueError("data unpaired needs --out FILE.jsonl")
    files: dict[float, Path] = {}
    for text in thresholds:
        try:
            least = float(text)
        except ValueError:
            raise ValueError(f"--threshold is a probability such as 0.6, found {text!r}") from None
        check_threshold(least)
        files[least] = Path(str(out).replace(PLACE, f"{least:.2f}"))
    if len({*files.values()}) < len(files):
        named = out.with_name(f"{out.stem}-{PLACE}{out.suffix}")
        raise ValueError(f"several thresholds need a file each; write the threshold's place: --out '{named}'")
    for file in files.values():
        check_file(file)
        check_file(_beside(file))
    return files


def _beside(file: Path) -> Path:
    """The file with the counts, next to the data."""
    return file.with_name(f"{file.name.removesuffix('.gz').removesuffix('.jsonl')}.counts.json")


def _classified(
    corpus: tuple[str, Path | None, str | None],
    options: dict[str, Any],
    using: str,
    threshold: float,
    counts: UnpairedCounts,
) -> list[Dialogue]:
    from listenwell.classifiers.labeller import Labeller
    from listenwell.classifiers.unpaired import UnpairedCounts, unpaired, utterances
    from listenwell.commands.display import tracked
    from listenwell.data import sources

    labeller = Labeller.load(using)
    try:
        # Read twice, first to count.
        number = sum(1 for _ in utterances(sources.read(*corpus, **options), UnpairedCounts()))
    except FileNotFoundError as problem:
        raise FileNotFoundError(
            f"{problem}. Or name the sources that you have: data unpaired edos+emotionlines"
        ) from None
    with tracked() as progress:
        done = progress("utterances", number)
        return list(unpaired(sources.read(*corpus, **options), labeller, threshold, counts, done))


def _show(counts: UnpairedCounts, files: dict[float, Path]) -> None:
    """Print the counts that start Table 4, then the number of texts of each emotion in each file."""
    from rich.console import Console

    from listenwell.classifiers.unpaired import SIDES
    from listenwell.commands.display import table
    from listenwell.labels.taxonomy import EMOTIONS

    console, sides = Console(), [f"{side}s" for side in SIDES.values()]
    met = {"read": counts.read, "too short": counts.too_short, "repeated": counts.repeated}
    rows = [(name, *(f"{counter[role]:,}" for role in SIDES)) for name, counter in met.items()]
    rows += [
        (f"kept at {s:.2f}", *(f"{counts.number(s, role):,}" for role in SIDES)) for s in sorted(counts.kept_by_side)
    ]
    console.print(table("Unpaired texts", ("", *sides), rows, right=sides))
    columns = [f"{least:.2f}" for least in files]
    emotions = [
        (name, *(" + ".join(f"{counts.kept_by_side[least][role][name]:,}" for role in SIDES) for least in files))
        for name in EMOTIONS
    ]
    console.print(table(f"By emotion: {' + '.join(sides)}", ("emotion", *columns), emotions, right=columns))
    for least, file in files.items():
        number = sum(counts.number(least, role) for role in SIDES)
        console.print(f"{number:,} texts written to {file}, their counts beside it", highlight=False)
