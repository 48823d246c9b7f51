"""Trains the same-speaker classifier and prints how well it does on the series that it did not learn from.

    python -m listenwell.data.curation.training SUBTITLES [--write]

SUBTITLES is a folder with subtitles of two series and their `scripts/` (docs/curation.md). Each series is the test set
of a model trained on the other one; the shipped model (`--write`) is trained on both. The regularization strength is
chosen by cross-validation over seasons of the training series.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from listenwell.data.curation.labels_from_scripts import SERIES, LabelledFile, labelled_files
from listenwell.data.curation.same_speaker import LANGUAGES, WEIGHTS, SameSpeakerModel, feature_codes
from listenwell.data.curation.speaker_features import TEMPLATES

MIN_COUNT = 20
"""Minimum number of pairs in which a feature must occur, to keep the model small and rare phrases out of it."""
STRENGTHS = (0.0005, 0.002, 0.008)
FOLDS = 3


@dataclass(frozen=True, slots=True)
class Pairs:
    """All labelled pairs of a series."""

    codes: np.ndarray
    """(pairs, templates)"""
    same: np.ndarray
    within: np.ndarray
    """Whether both sentences are in one cue."""
    season: np.ndarray
    far: np.ndarray
    """Whether the pause between them is longer than five seconds: dialogues are always split there."""

    def __len__(self) -> int:
        return len(self.same)

    def select(self, rows: np.ndarray) -> Pairs:
        return Pairs(*(getattr(self, name)[rows] for name in self.__slots__))

    @classmethod
    def join(cls, several: Sequence[Pairs]) -> Pairs:
        return cls(*(np.concatenate([getattr(each, name) for each in several]) for name in cls.__slots__))


def pairs_of(file: LabelledFile) -> Pairs:
    known = file.labels >= 0
    number = np.array([cue.number for cue in file.cues])
    start = np.array([np.nan if cue.start is None else cue.start for cue in file.cues])
    end = np.array([np.nan if cue.end is None else cue.end for cue in file.cues])
    return Pairs(
        np.stack(feature_codes(file.cues, file.language), axis=1)[known],
        file.labels[known],
        (number[1:] == number[:-1])[known],
        np.full(int(known.sum()), file.season),
        (start[1:] - end[:-1] > 5)[known],
    )


def train(pairs: Pairs, strength: float) -> SameSpeakerModel:
    values, counts = np.unique(pairs.codes, return_counts=True)
    known = values[counts >= MIN_COUNT]
    svm = LinearSVC(C=strength, tol=5e-3, random_state=0)
    svm.fit(_matrix(pairs.codes, known), pairs.same, sample_weight=_weights(pairs))
    used = np.abs(svm.coef_[0]) > 1e-4
    return SameSpeakerModel(known[used], svm.coef_[0][used].astype(np.float16), float(svm.intercept_[0]))


def _matrix(codes: np.ndarray, known: np.ndarray) -> csr_matrix:
    place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    is_known = known[place] == codes
    rows = np.repeat(np.arange(len(codes)), is_known.sum(axis=1))
    return csr_matrix((np.ones(len(rows)), (rows, place[is_known])), shape=(len(codes), len(known)))


def _weights(pairs: Pairs) -> np.ndarray:
    """Sample weights that balance same and different between cues, since their ratio depends on the series."""
    weights = np.ones(len(pairs))
    for same in (0, 1):
        rows = ~pairs.within & (pairs.same == same)
        weights[rows] = 0.5 * np.sum(~pairs.within) / max(int(rows.sum()), 1)
    return weights


def scores(model: SameSpeakerModel, pairs: Pairs) -> np.ndarray:
    place = np.minimum(np.searchsorted(model.codes, pairs.codes), len(model.codes) - 1)
    is_known = model.codes[place] == pairs.codes
    return model.bias + np.where(is_known, model.weights.astype(np.float64)[place], 0.0).sum(axis=1)


def choose_strength(pairs: Pairs) -> float:
    """Choose the regularization strength by cross-validation over groups of seasons of the training series."""
    results = {}
    for strength in STRENGTHS:
        right = 0
        for fold in range(FOLDS):
            held = pairs.season % FOLDS == fold
            if held.any() and not held.all():
                test = pairs.select(held)
                right += int(np.sum((scores(train(pairs.select(~held), strength), test) > 0) == test.same))
        results[strength] = right / len(pairs)
    best = max(results, key=lambda strength: results[strength])
    print("  within the training series: " + ", ".join(f"C={c:g} {100 * r:.2f} %" for c, r in results.items()))
    return best


def report(model: SameSpeakerModel, test: Pairs) -> None:
    right = (scores(model, test) > 0) == test.same
    rows = {
        "all pairs of sentences": np.ones(len(test), dtype=bool),
        "of two cues": ~test.within,
        "within a cue": test.within,
        "of two cues, at most 5 s apart": ~test.within & ~test.far,
    }
    for name, chosen in rows.items():
        same = test.same[chosen].mean()
        low, high = _interval(int(right[chosen].sum()), int(chosen.sum()))
        print(
            f"  {name:<32} {chosen.sum():>7,}  accuracy {100 * right[chosen].mean():.2f} % "
            f"[{100 * low:.2f}, {100 * high:.2f}]  majority {100 * max(same, 1 - same):.2f} %"
        )


def _interval(right: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval."""
    share = right / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    spread = z * np.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return middle - spread, middle + spread


def write(models: dict[str, SameSpeakerModel], path: Path = WEIGHTS) -> None:
    tensors = {}
    for language, model in models.items():
        tensors[f"{language}.codes"], tensors[f"{language}.weights"] = model.codes, model.weights
    about = {"templates": list(TEMPLATES), "bias": {name: model.bias for name, model in models.items()}}
    save_file(tensors, path, metadata={"about": json.dumps(about, sort_keys=True)})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("subtitles", type=Path, help="a folder with subtitles of two series, and scripts/ of them")
    parser.add_argument("--write", action="store_true", help=f"write {WEIGHTS.name}, trained on both series")
    options = parser.parse_args(arguments)
    models = {}
    files = {series: list(labelled_files(options.subtitles, series)) for series in SERIES}
    for language in LANGUAGES:
        pairs = {
            series: Pairs.join([pairs_of(each.in_language(language)) for each in files[series]]) for series in SERIES
        }
        strengths = []
        for learned, tested in (SERIES, SERIES[::-1]):
            print(f"{language}: learned from {learned} ({len(pairs[learned]):,} pairs), tested on {tested}")
            strengths.append(choose_strength(pairs[learned]))
            report(train(pairs[learned], strengths[-1]), pairs[tested])
        if options.write:
            models[language] = train(Pairs.join(list(pairs.values())), min(strengths))
    if options.write:
        write(models)
        print(f"wrote {WEIGHTS} ({WEIGHTS.stat().st_size:,} bytes)")


if __name__ == "__main__":
    main()
