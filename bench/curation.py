"""How curation scales, and what all of OpenSubtitles would cost: python bench/curation.py FOLDER [--workers 2]

Curates growing parts of a folder of subtitle files, without labels, each in a separate process; prints the wall time,
CPU time and peak memory of each; fits a straight line to CPU time over cues; and extrapolates to OpenSubtitles
(447 thousand English files, 441 million sentences). The projection is checked on a sample ten times as large as the
folder, made by copying: in each copy, every other English word of three or more letters gets a suffix of its own, so
that copies share hardly any word trigram and near-duplicate removal keeps as much as in the original. `--labels N` adds
the speed of labelling N dialogues, next to that of the classifier alone on the same texts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

FILES, SENTENCES = 447_000, 441_000_000
"""The English part of OpenSubtitles2018, as MEED2 counts it (§ 3.1)."""
TURNS = 18_849_440
"""Turns left after cleaning in MEED2 (Table 1)."""
SHARES = (0.1, 0.2, 0.5, 1.0)
COPIES = 10
"""The largest input is a hundred times the smallest."""
_WORD = re.compile(r"[A-Za-z]{3,}")
ENDINGS = "bdgklmnpt"


@dataclass
class Measured:
    """One run."""

    name: str
    files: int
    cues: int
    dialogues: int
    wall: float
    cpu: float
    """CPU seconds of all processes together."""
    memory: int
    """Megabytes of the largest process."""
    seconds: dict[str, float]

    def row(self) -> str:
        speed = f"{self.files / self.wall:8.1f}{self.cues / self.cpu:12,.0f}"
        return (
            f"{self.name:12}{self.files:8,}{self.cues:12,}{self.dialogues:11,}{self.wall:9.1f}{self.cpu:9.1f}{speed}"
            f"{self.memory:9,}"
        )


def curate(name: str, source: Path, out: Path, workers: int) -> Measured:
    words = ["curate", "subtitles", str(source), "--out", str(out), "--labeller", "none", "--json"]
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "listenwell", *words, "--workers", str(workers)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - began
    if process.returncode:
        raise SystemExit(process.returncode)
    content = json.loads(said)
    return Measured(
        name,
        content["counts"]["files"]["in"],
        content["counts"]["cues"]["in"],
        content["records"]["dialogues"],
        wall,
        used.ru_utime + used.ru_stime,
        used.ru_maxrss // 1024,
        content["seconds"],
    )


def link_share(files: list[Path], share: float, folder: Path) -> Path:
    """Make a folder with links to an evenly spaced share of the files."""
    chosen = files[:: round(1 / share)]
    for number, file in enumerate(chosen):
        place = folder / f"{number:06}{file.suffix}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(file)
    return folder


def write_copies(files: list[Path], folder: Path) -> Path:
    """Write ten versions of each file: the original and nine with altered words."""
    from listenwell.data.curation.cues import SubtitleError
    from listenwell.data.curation.reading import read_cues

    for number, file in enumerate(files):
        data = file.read_bytes()
        try:
            encoding = read_cues(file.name, data).encoding
            text = data.decode(encoding)
        except (SubtitleError, UnicodeError, LookupError):
            text = None
        for copy in range(COPIES):
            place = folder / f"copy-{copy}" / f"{number:06}{file.suffix}"
            place.parent.mkdir(parents=True, exist_ok=True)
            altered = text is not None and copy
            place.write_bytes(alter(text, copy).encode(encoding) if altered else data)
    return folder


def alter(text: str, copy: int) -> str:
    """The same file with every other English word of its texts altered."""
    return "".join(_alter_line(line, ENDINGS[copy - 1]) for line in text.splitlines(keepends=True))


def _alter_line(line: str, ending: str) -> str:
    if "-->" in line or line.startswith(("[", "Style:", "Format:", "<")) or line.strip().isdigit():
        return line
    head, text = "", line
    if line.startswith("Dialogue:"):
        fields = line.split(",", 9)
        head, text = ",".join(fields[:9]) + ",", fields[-1]
    count = 0

    def changed(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return match[0] + ending * 2 if count % 2 else match[0]

    return head + _WORD.sub(changed, text)


def labelling_speed(corpus: Path, number: int) -> None:
    """Print turns per second of the pipeline's own function and of the classifier alone."""
    from itertools import islice

    import torch

    from listenwell.classifiers.corpus_labels import label_texts
    from listenwell.classifiers.labeller import Labeller
    from listenwell.data.curation.manifest import read_curated

    torch.set_num_threads(1)
    labeller = Labeller.load()
    dialogues = [[turn.text for turn in one.turns] for one in islice(read_curated(corpus), number)]
    texts = [text for dialogue in dialogues for text in dialogue]
    labeller.distribution(texts[:64])
    began = time.process_time()
    label_texts(labeller, dialogues)
    ours = time.process_time() - began
    began = time.process_time()
    labeller.distribution(texts)
    alone = time.process_time() - began
    print(f"\nlabelling {len(texts):,} turns: {len(texts) / ours:,.0f} turns/s on one core, the classifier alone "
          f"{len(texts) / alone:,.0f} turns/s")  # fmt: skip
    print(f"all of OpenSubtitles after cleaning ({TURNS / 1e6:.1f} million turns, MEED2's Table 1): "
          f"{TURNS / (len(texts) / ours) / 3600:,.0f} core hours")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--price", type=float, default=0.04, help="of a core for an hour, in dollars")
    parser.add_argument("--labels", type=int, default=0, help="measure labelling on so many dialogues")
    chosen = parser.parse_args()
    endings = (".srt", ".ass", ".vtt", ".xml")
    files = sorted(file.resolve() for file in chosen.folder.rglob("*") if file.suffix.lower() in endings)
    columns = ("files", "cues", "dialogues", "wall s", "cpu s", "files/s", "cues/cpu s", "peak MB")
    print(f"{chosen.workers} workers\n{'':12}" + "".join(
        f"{name:>{width}}" for name, width in zip(columns, (8, 12, 11, 9, 9, 8, 12, 9), strict=True)))  # fmt: skip
    with TemporaryDirectory(prefix="listenwell-bench-") as place:
        root = Path(place)
        runs = []
        for share in SHARES:
            source = link_share(files, share, root / f"share-{share}")
            runs.append(curate(f"{share:.3g} of all", source, root / f"out-{share}", chosen.workers))
            print(runs[-1].row(), flush=True)
        slope, start = np.polyfit([run.cues for run in runs], [run.cpu for run in runs], 1)
        source = write_copies(files, root / "copies")
        large = curate(f"{COPIES} times", source, root / "out-copies", chosen.workers)
        print(large.row(), flush=True)
        expected = start + slope * large.cues
        print(f"\nexpected for {COPIES} times: {expected:.1f} cpu s, measured {large.cpu:.1f}: "
              f"{100 * (large.cpu / expected - 1):+.1f} %")  # fmt: skip
        print(f"peak memory, {COPIES / SHARES[0]:.0f} times the input: {large.memory / runs[0].memory:.2f} times")
        hours = (start + slope * SENTENCES) / 3600
        print(f"all of OpenSubtitles ({FILES:,} files, {SENTENCES / 1e6:.0f} million cues), all but the labels:")
        print(f"{hours:,.1f} core hours, {hours * chosen.price:,.2f} dollars at {chosen.price} per core hour")
        if chosen.labels:
            labelling_speed(root / "out-1.0", chosen.labels)
        shutil.rmtree(root / "copies")


if __name__ == "__main__":
    main()
