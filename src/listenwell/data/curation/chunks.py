"""The two tasks on a chunk, run by any engine: extract its dialogues, then deduplicate and label them.

The result is a Parquet file, named by a hash of everything it depends on. It is written atomically: if the file exists,
the chunk is done; otherwise it is processed again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from listenwell.data.curation import held_out
from listenwell.data.curation.atomic import written_whole
from listenwell.data.curation.counts import Counts
from listenwell.data.curation.engines import Job
from listenwell.data.curation.extraction import Extractor
from listenwell.data.curation.inputs import InputFile
from listenwell.data.curation.near_duplicates import BANDS, band_keys, plain_words, shingles
from listenwell.data.curation.records import CuratedDialogue, digest, read_rows, schema, use_little_memory
from listenwell.data.curation.settings import Label, Labelling, Settings

ROWS = 128
"""Number of records to buffer before writing."""
LABEL_ROWS = 1024
"""Number of records to label together: enough for batches of similar length."""
ABOUT = b"listenwell"
DUPLICATE, NEAR_DUPLICATE = "duplicate", "near duplicate"


def extract_chunk(job: Job) -> dict[str, Any]:
    """Extract and clean the dialogues of a chunk of input files; returns the key of the output file and its counts."""
    use_little_memory()
    work, settings = Path(job["work"]), Settings(**job["settings"])
    files = [InputFile(**file) for file in job["files"]]
    key, contents = _key(files, settings)
    path = chunk_path(work, key)
    if not path.exists():
        reference = None if settings.held_out is None else work / f"held-out-{settings.held_out}.json"
        extractor = Extractor(settings, None if reference is None else held_out.load(reference))
        rows = (_extracted_row(*extracted) for file in files for extracted in extractor.dialogues(file))

        def about() -> dict[str, Any]:
            return {
                "counts": extractor.counts.to_json(),
                "problems": extractor.problems,
                "matches": extractor.matches,
                "contents": contents,
            }

        _write(path, rows, _extracted_schema(), about)
    return {"index": job["index"], "key": key, "rows": row_count(path), "files": sum(file.is_first for file in files)}


def finish_chunk(job: Job, labelling: Labelling | None) -> dict[str, Any]:
    """Drop the near duplicates of a chunk, and label the rest if there is a classifier."""
    use_little_memory()
    work, dropped = Path(job["work"]), dict(job["dropped"])
    depends = [job["key"], job["dropped"], None if labelling is None else labelling.fingerprint]
    key = hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()[:32]
    path = finished_path(work, key)
    if not path.exists():
        counts = Counts()
        rows = _survivors(chunk_path(work, job["key"]), dropped, counts)
        label = None if labelling is None else _loaded(labelling)
        finished = (_finished_row(row) for row in _labelled(rows, label))
        _write(path, finished, _finished_schema(), lambda: {"counts": counts.to_json()})
    return {"index": job["index"], "key": key, "rows": row_count(path)}


def chunk_path(work: Path, key: str) -> Path:
    return work / "extracted" / f"{key}.parquet"


def finished_path(work: Path, key: str) -> Path:
    return work / "finished" / f"{key}.parquet"


def about_chunk(path: Path) -> dict[str, Any]:
    """The metadata of a chunk's file."""
    import pyarrow.parquet as pq

    return json.loads(pq.read_metadata(path).metadata[ABOUT])


def row_count(path: Path) -> int:
    import pyarrow.parquet as pq

    return pq.read_metadata(path).num_rows


def _key(files: list[InputFile], settings: Settings) -> tuple[str, list[list[Any]]]:
    """A hash of the settings and of the files' names and bytes; also the hash of each file."""
    whole = hashlib.sha256(settings.fingerprint().encode())
    contents: list[list[Any]] = []
    for file in files:
        digest = _content_hash(file)
        contents.append([file.name, file.begin, digest])
        whole.update(json.dumps([file.name, file.begin, file.first_line, digest]).encode())
    return whole.hexdigest()[:32], contents


def _content_hash(file: InputFile) -> str:
    sha = hashlib.sha256()
    try:
        with open(file.path, "rb") as stream:
            stream.seek(file.begin)
            rest = (file.size if file.end is None else file.end) - file.begin
            while rest > 0 and (block := stream.read(min(rest, 1 << 20))):
                sha.update(block)
                rest -= len(block)
    except OSError as problem:
        return f"unreadable: {problem.errno}"
    return sha.hexdigest()


def _extracted_row(dialogue: CuratedDialogue, cues: int) -> dict[str, Any]:
    marks = shingles([word for turn in dialogue.turns for word in plain_words(turn.text)])
    return {**dialogue.to_row(), "marks": marks.tobytes(), "bands": band_keys(marks).tobytes(), "own_cues": cues}


def _extracted_schema() -> Any:
    import pyarrow as pa

    return schema(("marks", pa.binary()), ("bands", pa.binary(8 * BANDS)), ("own_cues", pa.int32()))


def _survivors(path: Path, dropped: dict[int, str], counts: Counts) -> Iterator[dict[str, Any]]:
    names = schema().names
    for number, row in enumerate(read_rows(path, [*names, "own_cues"])):
        if (reason := dropped.get(number)) is None:
            yield {name: row[name] for name in names}
            continue
        for unit, size in (("dialogues", 1), ("turns", len(row["turns"])), ("cues", row["own_cues"])):
            counts.drop_kept(unit, reason, size)
        counts.sample(f"dialogue: {reason}", row["id"], " / ".join(turn["text"] for turn in row["turns"]))


def _labelled(rows: Iterable[dict[str, Any]], label: Label | None) -> Iterator[dict[str, Any]]:
    if label is None:
        yield from rows
        return
    rest = iter(rows)
    while block := [CuratedDialogue.from_row(row) for row in islice(rest, LABEL_ROWS)]:
        labelled_dialogues = label([[turn.text for turn in dialogue.turns] for dialogue in block])
        for dialogue, labels in zip(block, labelled_dialogues, strict=True):
            triples = zip(dialogue.turns, labels.labels, labels.confidences, strict=True)
            turns = tuple(replace(turn, label=name, confidence=chance) for turn, name, chance in triples)
            yield replace(dialogue, turns=turns, emotionality=labels.emotionality).to_row()


@lru_cache(maxsize=1)
def _loaded(labelling: Labelling) -> Label:
    """Load the classifier once per process."""
    return labelling.load()


def _finished_row(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "digest": digest(row)}


def _finished_schema() -> Any:
    import pyarrow as pa

    return schema(("digest", pa.binary(32)))


def _write(path: Path, rows: Iterable[dict[str, Any]], columns: Any, about: Any) -> None:
    """Writes rows as they come, and finally the metadata returned by `about`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    rest = iter(rows)
    with written_whole(path) as unfinished, pq.ParquetWriter(unfinished, columns, compression="zstd") as writer:
        while block := list(islice(rest, ROWS)):
            writer.write_table(pa.Table.from_pylist(block, schema=columns))
        writer.add_key_value_metadata({ABOUT: json.dumps(about(), ensure_ascii=False).encode()})
