"""Labels pairs of consecutive sentences by whether the speaker is the same, using the scripts of the episodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from listenwell.data.curation.alignment import Alignment, Line, align, read_script
from listenwell.data.curation.bilingual import split_by_script
from listenwell.data.curation.cues import Cue, SubtitleError
from listenwell.data.curation.reading import read_cues
from listenwell.data.curation.turns import split_dashes

SERIES = ("friends", "lost")
MIN_FOUND = 0.4
"""If a smaller share of a file's sentences is found, the script is that of another episode."""

_EPISODE = re.compile(r"s(\d\d)e(\d\d)(?:[-_]e?(\d\d)|\.s\d\de(\d\d))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LabelledFile:
    """One episode: its sentences, and whether each two consecutive ones have the same speaker."""

    series: str
    season: int
    episode: str
    cues: list[Cue]
    alignments: list[Alignment]
    labels: np.ndarray
    """(len(cues) - 1,): 1 same, 0 different, -1 unknown."""
    translation: list[Cue]
    """The Chinese sentences of the same cues, if any."""
    language: str = "en"

    def in_language(self, language: str) -> LabelledFile:
        """The same labels for the translation, since a cue and its translation have the same speaker."""
        if language == self.language:
            return self
        labels = _translated_labels(self.translation, self.cues, self.alignments)
        return replace(self, cues=self.translation, alignments=[], labels=labels, language=language)


def labelled_files(data: Path, series: str) -> Iterator[LabelledFile]:
    """All episodes of a series that have a script. `data` is the folder with the subtitles."""
    for path in sorted((data / series).iterdir()):
        match = _EPISODE.search(path.name)
        if match is None:
            continue
        season, first, last = int(match[1]), int(match[2]), int(match[3] or match[4] or match[2])
        script = _script(data / "scripts" / series, series, season, range(first, last + 1))
        if not script:
            continue
        try:
            sides = split_by_script(read_cues(path))
        except SubtitleError:
            continue
        cues, translation = (split_dashes(sides.get(language, [])) for language in ("en", "zh"))
        alignments = align(cues, script)
        share_in_script = np.mean([each.first is not None for each in alignments]) if alignments else 0.0
        if share_in_script >= MIN_FOUND:
            episode = f"S{season:02d}E{first:02d}"
            yield LabelledFile(series, season, episode, cues, alignments, pair_labels(alignments), translation)


def pair_labels(alignments: list[Alignment]) -> np.ndarray:
    """Compares the speaker at the end of each sentence with the one at the beginning of the next."""
    labels = np.full(max(len(alignments) - 1, 0), -1, dtype=np.int64)
    for index, (before, after) in enumerate(pairwise(alignments)):
        if before.last is not None and after.first is not None:
            labels[index] = before.last == after.first
    return labels


def _translated_labels(translation: list[Cue], cues: list[Cue], alignments: list[Alignment]) -> np.ndarray:
    """Between two cues, the labels are those of the original. Within a cue, they are only known if the original has a
    single speaker, or two whose sentences a dash separates."""
    by_cue: dict[int, list[Alignment]] = {}
    for cue, alignment in zip(cues, alignments, strict=True):
        by_cue.setdefault(cue.number, []).append(alignment)
    labels = np.full(max(len(translation) - 1, 0), -1, dtype=np.int64)
    for index, (before, after) in enumerate(pairwise(translation)):
        own, following = by_cue.get(before.number, []), by_cue.get(after.number, [])
        if not own or not following:
            continue
        if before.number == after.number:
            speakers = {name for each in own for name in (each.first, each.last)}
            if len(speakers) == 1 and None not in speakers:
                labels[index] = 1
            elif len(speakers) == len(own) == 2 and None not in speakers and after.dash:
                labels[index] = 0
        elif own[-1].last is not None and following[0].first is not None:
            labels[index] = own[-1].last == following[0].first
    return labels


def _script(folder: Path, series: str, season: int, episodes: range) -> list[Line]:
    lines: list[Line] = []
    for episode in episodes:
        path = folder / f"{series.capitalize()}.Season{season:02d}.Episode{episode:02d}.txt"
        if path.exists():
            lines.extend(read_script(path))
    return lines
