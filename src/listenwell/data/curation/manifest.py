"""The output folder of a curation: its contents, which folders may be written to, and how to read it.

manifest.json           input, settings, counts, the hash over all records; written last
dialogues/              part-00000.parquet …
matches.parquet         every dialogue that was dropped as a near duplicate or as held out, and what it matches
dropped-samples.jsonl   a few samples of what was dropped, for each reason
problems.jsonl          files that could not be read, and why
work/                   exists only until the curation is finished
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from listenwell.data.curation.atomic import read_json
from listenwell.data.curation.records import CuratedDialogue, RecordsHash, digest, need_pyarrow, read_rows
from listenwell.data.sources.report import SourceError
from listenwell.outputs import Owner

COMMAND = "curate"
MANIFEST = "manifest.json"
WORK = "work"
DIALOGUES = "dialogues"
MATCHES = "matches.parquet"
SAMPLES = "dropped-samples.jsonl"
PROBLEMS = "problems.jsonl"
STATISTICS = ("statistics.json", "statistics.md", "labels.png")
"""Files added by `curate stats`."""
OUTPUTS = (DIALOGUES, MATCHES, SAMPLES, PROBLEMS)
RUN = "run.json"


def _wrote(folder: Path) -> bool:
    if read_json(folder / MANIFEST).get("command") == COMMAND:
        return True
    work = folder / WORK
    if not work.is_dir():
        return False
    # An interruption right at the start leaves an empty folder, or only the unfinished run file.
    names = [entry.name for entry in work.iterdir() if not entry.name.startswith(f".{RUN}.")]
    return not names or read_json(work / RUN).get("command") == COMMAND


OWNER = Owner(COMMAND, frozenset({MANIFEST, WORK, *OUTPUTS, *STATISTICS}), _wrote)


def is_curated(folder: Path) -> bool:
    """Whether a folder contains the finished output of a curation."""
    return folder.is_dir() and read_json(folder / MANIFEST).get("command") == COMMAND


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest. Raises FileNotFoundError if the folder is something else, or not finished."""
    if not is_curated(folder):
        unfinished = (folder / WORK).is_dir()
        hint = "run the same curation again to finish it" if unfinished else "`listenwell curate subtitles` writes one"
        raise FileNotFoundError(f"{folder}: no finished curated corpus (no {MANIFEST}); {hint}")
    return read_json(folder / MANIFEST)


def shard_files(folder: Path) -> list[Path]:
    """The shards in order."""
    need_pyarrow()
    files = [folder / shard["file"] for shard in read_manifest(folder)["shards"]]
    if missing := next((file for file in files if not file.is_file()), None):
        raise FileNotFoundError(f"{missing}: is named in {folder / MANIFEST} but is not there; curate again")
    return files


def read_curated(folder: Path) -> Iterator[CuratedDialogue]:
    """The dialogues of a curated folder, in order."""
    for file in shard_files(folder):
        for row in read_rows(file):
            yield CuratedDialogue.from_row(row)


def verify(folder: Path) -> str:
    """Recompute and return the hash over all records; raises SourceError if it differs from the manifest's."""
    records = RecordsHash()
    for file in shard_files(folder):
        for row in read_rows(file):
            records.add([digest(row)], [row["selected"]])
    actual, expected = records.hexdigest(), read_manifest(folder)["records"]["hash"]
    if actual != expected:
        difference = f"its records have the hash {actual[:16]}, the manifest says {expected[:16]}"
        raise SourceError(f"{folder}: {difference}; curate again")
    return actual
