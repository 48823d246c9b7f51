"""Rows of a table over several seeds, from saved evaluations: python bench/over_seeds.py results/dual-emp

For each system and score, prints the mean over seeds and the values of the seeds, and tests each system against the one
given with --against: items are resampled, the same for both, and the means over seeds compared (paired bootstrap; Holm
over the systems of a column).
"""

from __future__ import annotations

import argparse
import json
import lzma
from pathlib import Path

import numpy as np

from listenwell.evaluation.compare import holm
from listenwell.metrics import Score
from listenwell.metrics.bootstrap import RESAMPLES, SEED, resampled_sums
from listenwell.metrics.sums import COMBINE, Array

COLUMNS = ("perplexity-word", "accuracy@1", "bleu-4", "average-bleu", "distinct-1", "distinct-2", "sorry-to-hear")


def read(folder: Path, names: tuple[str, ...]) -> dict[str, list[dict[str, Score]]]:
    """The scores of each system, seed by seed."""
    systems: dict[str, list[dict[str, Score]]] = {}
    for file in sorted(folder.glob("seed-*/*/items.json.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as stream:
            scores = [Score.from_json(record) for record in json.load(stream)]
        systems.setdefault(file.parent.name, []).append({score.name: score for score in scores if score.name in names})
    return systems


def resampled(scores: list[Score], resamples: int) -> Array:
    """The corpus value, averaged over seeds, with shape (resamples,). Items are the same for every seed and system."""
    values = []
    for score in scores:
        assert score.statistics is not None
        sums = resampled_sums(score.statistics.rows, resamples, SEED)
        values.append(COMBINE[score.statistics.combine](sums))
    return np.mean(values, axis=0)


def p_value(first: list[Score], second: list[Score], resamples: int) -> float:
    seen = np.mean([score.value for score in first]) - np.mean([score.value for score in second])
    differences = resampled(first, resamples) - resampled(second, resamples)
    extreme = np.abs(differences - differences.mean()) >= abs(seen) - 1e-12
    return float((extreme.sum() + 1) / (resamples + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--against", default="multi-trs-cpu")
    parser.add_argument("--scores", nargs="*", default=COLUMNS)
    parser.add_argument("--resamples", type=int, default=RESAMPLES)
    chosen = parser.parse_args()
    systems = read(chosen.folder, tuple(chosen.scores))
    for column in chosen.scores:
        print(column)
        several = [name for name, seeds in systems.items() if len(seeds) > 1 and name != chosen.against]
        tested = [
            name for name in several if chosen.against in systems and systems[name][0][column].statistics is not None
        ]
        raw = [
            p_value(
                [seed[column] for seed in systems[name]],
                [seed[column] for seed in systems[chosen.against]],
                chosen.resamples,
            )
            for name in tested
        ]
        adjusted = dict(zip(tested, holm(raw), strict=True))
        for name, seeds in systems.items():
            values = [seed[column].value for seed in seeds]
            line = f"  {name:<22} {np.mean(values):7.2f}   ({', '.join(f'{value:.2f}' for value in values)})"
            print(line + (f"   p = {adjusted[name]:.3g}" if name in adjusted else ""))


if __name__ == "__main__":
    main()
