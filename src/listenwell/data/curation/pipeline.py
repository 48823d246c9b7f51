"""The curation pipeline from raw files to a curated corpus, on any engine; it can be stopped and resumed anywhere.

    chunks of files ─ extract ─▶ dialogues, cleaned ─ near duplicates ─▶ what remains ─ label ─▶ selection ─▶ shards

Extraction and labelling run in parallel, chunk by chunk; their results are files in OUT/work, named by a hash of what
they depend on. The other steps read these files, and only hold a few numbers per record in memory.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.data.curation import held_out, manifest
from listenwell.data.curation.atomic import read_json, sync, write_json
from listenwell.data.curation.chunks import (
    DUPLICATE,
    NEAR_DUPLICATE,
    about_chunk,
    chunk_path,
    extract_chunk,
    finish_chunk,
    finished_path,
)
from listenwell.data.curation.counts import Counts
from listenwell.data.curation.engines import Engine, Job
from listenwell.data.curation.inputs import Inputs
from listenwell.data.curation.near_duplicates import BANDS, Match, NearDuplicates
from listenwell.data.curation.records import RecordsHash, need_pyarrow, read_table, use_little_memory
from listenwell.data.curation.selection import MostEmotional
from listenwell.data.curation.settings import Labelling, Settings, code_fingerprint
from listenwell.data.curation.shards import SHARD_SIZE, ShardWriter, shard_schema
from listenwell.outputs import OutputError, check_folder, resolved

Begin = Callable[[str, str, int], Callable[[int], None]]
"""Called with the name of a step, its unit and the total; returns a function to call with the number of newly done
items."""


@dataclass(frozen=True)
class Curation:
    """A curation: its input, output and settings."""

    inputs: Inputs
    out: Path
    language: str
    held_out: str | None = None
    """The source whose test split must not be in the output."""
    labelling: Labelling | None = None
    most_emotional: int | None = None
    shard_size: int = SHARD_SIZE

    def fingerprint(self) -> dict[str, Any]:
        """Everything that determines the output, besides the input."""
        labelling = None if self.labelling is None else self.labelling.fingerprint
        return {
            "kind": self.inputs.kind,
            "language": self.language,
            "held_out": self.held_out,
            "labeller": labelling,
            "most_emotional": self.most_emotional,
            "shard_size": self.shard_size,
            "code": code_fingerprint(),
        }


def curate(curation: Curation, engine: Engine, begin: Begin | None = None) -> dict[str, Any]:
    """Run a curation, or the rest of an interrupted one, and return the manifest. A finished one is left unchanged."""
    need_pyarrow()
    use_little_memory()
    out = resolved(curation.out)
    check_folder(curation.out, manifest.OWNER)
    files, size, stamp = curation.inputs.summary()
    if not files:
        raise FileNotFoundError(f"no {curation.inputs.kind} in {', '.join(path for _, path in curation.inputs.roots)}")
    wanted = {"settings": curation.fingerprint(), "stamp": stamp}
    done = read_json(out / manifest.MANIFEST)
    work = out / manifest.WORK
    if done and {"settings": done["settings"], "stamp": done["input"]["stamp"]} == wanted:
        shutil.rmtree(work, ignore_errors=True)
        return done
    work.mkdir(parents=True, exist_ok=True)
    write_json(work / manifest.RUN, {"command": manifest.COMMAND, **wanted})
    with _alone(work, curation.out):
        run = _Run(curation, engine, begin or (lambda name, unit, total: lambda more: None), work)
        content = run.content(files, size, stamp)
        _put_in_place(work / "output", out, content)
    shutil.rmtree(work, ignore_errors=True)
    return content


@dataclass
class _Chunk:
    """The state of a chunk: the keys of its files in the work folder, and its number of rows."""

    key: str
    rows: int
    finished: str = ""


@dataclass
class _Run:
    """One run of a curation, from the first file to the last shard."""

    curation: Curation
    engine: Engine
    begin: Begin
    work: Path
    counts: Counts = field(default_factory=Counts)
    seconds: dict[str, float] = field(default_factory=dict)

    def content(self, files: int, size: int, stamp: str) -> dict[str, Any]:
        """Run all steps and return the manifest."""
        output = self.work / "output"
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir()
        about_held_out = None
        if self.curation.held_out is not None:
            about_held_out = held_out.prepare(self.curation.held_out, self.work)
        settings = Settings(
            self.curation.inputs.kind,
            self.curation.language,
            None if about_held_out is None else about_held_out["hash"],
        )
        chunks = self._extract(settings, files)
        index, contents = NearDuplicates(self.work / "near-duplicates"), hashlib.sha256()
        try:
            self._find_duplicates(chunks, index)
            self._finish(chunks, self._jobs(chunks, index, contents, output), index.remaining())
        finally:
            index.close()
        with self._timed("shards"):
            records, shards = self._write(chunks, output)
        self.counts.check()
        _write_lines(output / manifest.SAMPLES, self.counts.all_samples())
        books = self.counts.to_json()
        return {
            "command": manifest.COMMAND,
            "settings": self.curation.fingerprint(),
            "input": {"files": files, "bytes": size, "hash": contents.hexdigest(), "stamp": stamp},
            "held_out": about_held_out,
            "labeller": None if self.curation.labelling is None else self.curation.labelling.name,
            "counts": books["units"],
            "changed": books["changed"],
            "records": records,
            "shards": shards,
            "engine": self.engine.name,
            "workers": self.engine.workers,
            "seconds": {name: round(value, 2) for name, value in self.seconds.items()},
        }

    def _extract(self, settings: Settings, files: int) -> list[_Chunk]:
        done = self.begin("reading", "files", files)
        jobs = (
            {
                "index": index,
                "work": str(self.work),
                "settings": settings.to_json(),
                "files": [file.to_json() for file in chunk],
            }
            for index, chunk in enumerate(self.curation.inputs.chunks())
        )
        by_index: dict[int, _Chunk] = {}
        with self._timed("extraction"):
            for result in self.engine.run(extract_chunk, jobs):
                by_index[result["index"]] = _Chunk(result["key"], result["rows"])
                done(result["files"])
        return [by_index[index] for index in range(len(by_index))]

    def _find_duplicates(self, chunks: list[_Chunk], index: NearDuplicates) -> None:
        done = self.begin("near duplicates", "dialogues", sum(chunk.rows for chunk in chunks))
        with self._timed("near duplicates"):
            for chunk in chunks:
                table = read_table(chunk_path(self.work, chunk.key), columns=["id", "marks", "bands"])
                bands = np.frombuffer(b"".join(table["bands"].to_pylist()), dtype="<u8").reshape(-1, BANDS)
                index.add(table["id"].to_pylist(), table["marks"].to_pylist(), bands)
                done(chunk.rows)
            index.find()

    def _jobs(self, chunks: list[_Chunk], index: NearDuplicates, contents: Any, output: Path) -> Iterator[Job]:
        """The jobs of the last parallel step: what to drop from each chunk. Also writes what the first step found."""
        begin = 0
        with _Lines(output / manifest.PROBLEMS) as problems, _Matches(output / manifest.MATCHES) as matches:
            for number, chunk in enumerate(chunks):
                about = about_chunk(chunk_path(self.work, chunk.key))
                contents.update(json.dumps(about["contents"]).encode())
                self.counts.merge(Counts.from_json(about["counts"]))
                problems.write(about["problems"])
                reasons_of_matches = [(match, _reason(match)) for match in index.matches(begin, begin + chunk.rows)]
                matches.write(about["matches"])
                matches.write([{**match._asdict(), "reason": reason} for match, reason in reasons_of_matches])
                dropped = [[match.row - begin, reason] for match, reason in reasons_of_matches]
                yield {"index": number, "key": chunk.key, "work": str(self.work), "dropped": dropped}
                begin += chunk.rows

    def _finish(self, chunks: list[_Chunk], jobs: Iterator[Job], left: int) -> None:
        """Labels the remaining dialogues."""
        labelling = self.curation.labelling
        name = "finishing" if labelling is None else "labelling"
        done = self.begin(name, "dialogues", left)
        with self._timed(name):
            for result in self.engine.run(partial(finish_chunk, labelling=labelling), jobs):
                chunk = chunks[result["index"]]
                chunk.finished = result["key"]
                done(result["rows"])

    def _write(self, chunks: list[_Chunk], output: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Writes the shards; returns their totals, and the shards."""
        import pyarrow as pa

        number = self.curation.most_emotional
        selection = None if number is None else MostEmotional(lambda: self._emotionality(chunks), number)
        writer, records = ShardWriter(output / manifest.DIALOGUES, self.curation.shard_size), RecordsHash()
        rows = selected = 0
        for chunk in chunks:
            path = finished_path(self.work, chunk.finished)
            self.counts.merge(Counts.from_json(about_chunk(path)["counts"]))
            table = read_table(path)
            values = np.asarray(table["emotionality"].to_numpy(), dtype=float)
            chosen = np.zeros(len(table), dtype=bool) if selection is None else selection.chosen(values, rows)
            records.add(table["digest"].to_pylist(), chosen.tolist())
            writer.write(table.drop_columns("digest").append_column("selected", pa.array(chosen)).cast(shard_schema()))
            rows, selected = rows + len(table), selected + int(chosen.sum())
        count = self.counts.units
        about = {"dialogues": rows, "turns": count["turns"].kept, "selected": selected, "hash": records.hexdigest()}
        return about, writer.close()

    def _emotionality(self, chunks: list[_Chunk]) -> Iterator[np.ndarray]:
        for chunk in chunks:
            table = read_table(finished_path(self.work, chunk.finished), columns=["emotionality"])
            yield np.asarray(table["emotionality"].to_numpy(), dtype=float)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - started


def _reason(match: Match) -> str:
    return DUPLICATE if match.similarity == 1 else NEAR_DUPLICATE


class _Lines:
    """A JSON lines file, written incrementally."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def __enter__(self) -> _Lines:
        return self

    def write(self, records: list[dict[str, Any]]) -> None:
        self._file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)

    def __exit__(self, *problem: object) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


class _Matches:
    """A Parquet file of the dialogues that were dropped because they match another text, and which one."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        text, number = pa.string(), pa.int32()
        columns = [("id", text), ("reason", text), ("match", text), ("similarity", pa.float64()), ("turn", number)]
        self._path, self._schema = path, pa.schema(columns)
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def __enter__(self) -> _Matches:
        return self

    def write(self, records: list[dict[str, Any]]) -> None:
        import pyarrow as pa

        if records:
            self._writer.write_table(pa.Table.from_pylist(records, schema=self._schema))

    def __exit__(self, *problem: object) -> None:
        self._writer.close()
        sync(self._path)


def _write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    with _Lines(path) as lines:
        lines.write(records)


@contextmanager
def _alone(work: Path, shown: Path) -> Iterator[None]:
    """Locks the folder against other runs. The lock is released when the process ends, however it ends."""
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                f"{shown} is being written by another run; wait for it, or name another folder with --out"
            ) from None
        yield


def _put_in_place(output: Path, out: Path, content: dict[str, Any]) -> None:
    """Moves the finished files into place and writes the manifest last, so that its presence means completeness."""
    (out / manifest.MANIFEST).unlink(missing_ok=True)
    for name in (*manifest.OUTPUTS, *manifest.STATISTICS):
        old = out / name
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
        if (output / name).exists():
            os.rename(output / name, old)
    sync(out)
    # Written elsewhere first, so that an interruption does not leave a partial file in the output folder.
    write_json(output / manifest.MANIFEST, content)
    os.rename(output / manifest.MANIFEST, out / manifest.MANIFEST)
    sync(out)
