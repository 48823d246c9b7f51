"""Shows labelled pairs in context, for somebody who judges whether the labels are right.

    python -m listenwell.data.curation.label_check SUBTITLES [--count 150] [--seed 29] [--csv FILE]

Prints `count` pairs of each series with the surrounding sentences, and with the speakers given by the script. The CSV
has ids and labels without text, and an empty column for the judgement.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Sequence
from pathlib import Path

from listenwell.data.curation.labels_from_scripts import SERIES, LabelledFile, labelled_files


def draw(files: dict[str, list[LabelledFile]], count: int, seed: int) -> list[tuple[LabelledFile, int]]:
    """Draw `count` labelled pairs of each series at random; returns them in file order."""
    generator = random.Random(seed)
    drawn = []
    for series in files:
        pool = [(k, i) for k, file in enumerate(files[series]) for i, label in enumerate(file.labels) if label >= 0]
        drawn += [(files[series][k], i) for k, i in sorted(generator.sample(pool, min(count, len(pool))))]
    return drawn


def row(file: LabelledFile, index: int) -> list[str]:
    """A CSV row: series, episode, the two sentences as cue.part, the label."""
    before, after = (f"{cue.number}.{cue.part}" for cue in file.cues[index : index + 2])
    return [file.series, file.episode, before, after, "same" if file.labels[index] else "different"]


def show(file: LabelledFile, index: int) -> None:
    print(*row(file, index))
    for place in range(max(index - 2, 0), min(index + 4, len(file.cues))):
        cue, alignment = file.cues[place], file.alignments[place]
        mark = ">" if place in (index, index + 1) else " "
        print(f"  {mark} {alignment.first or '?':<24.24} {'- ' if cue.dash else ''}{cue.text}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("subtitles", type=Path, help="a folder with subtitles of two series, and scripts/ of them")
    parser.add_argument("--count", type=int, default=150, help="pairs of each series")
    parser.add_argument("--seed", type=int, default=29)
    parser.add_argument("--csv", type=Path, help="write ids and labels here")
    options = parser.parse_args(arguments)
    files = {series: list(labelled_files(options.subtitles, series)) for series in SERIES}
    drawn = draw(files, options.count, options.seed)
    for file, index in drawn:
        show(file, index)
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(["series", "episode", "before", "after", "label", "judgement"])
            writer.writerows([*row(file, index), ""] for file, index in drawn)


if __name__ == "__main__":
    main()
