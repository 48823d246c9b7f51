"""Writes the output as Parquet files with a fixed number of dialogues each."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from listenwell.data.curation.atomic import sync
from listenwell.data.curation.records import schema

if TYPE_CHECKING:
    import pyarrow as pa

SHARD_SIZE = 50_000
ROW_GROUP = 5_000


def shard_schema() -> pa.Schema:
    import pyarrow as pa

    return schema(("selected", pa.bool_()))


class ShardWriter:
    """Writes tables in sequence; every shard but the last has exactly `size` dialogues."""

    def __init__(self, folder: Path, size: int = SHARD_SIZE) -> None:
        folder.mkdir(parents=True)
        self._folder, self._size = folder, size
        self._writer: Any = None
        self._rows = 0
        self.shards: list[dict[str, Any]] = []

    def write(self, table: pa.Table) -> None:
        while table.num_rows:
            part = table.slice(0, self._size - self._rows)
            self._open().write_table(part, row_group_size=ROW_GROUP)
            self._rows += part.num_rows
            table = table.slice(part.num_rows)
            if self._rows == self._size:
                self._finish()

    def close(self) -> list[dict[str, Any]]:
        """Finish, and return the shards: file, number of dialogues and hash. There is at least one, even if empty."""
        if self._rows or not self.shards:
            self._open()
            self._finish()
        sync(self._folder)
        return self.shards

    def _open(self) -> Any:
        import pyarrow.parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path(), shard_schema(), compression="zstd")
        return self._writer

    def _path(self) -> Path:
        return self._folder / f"part-{len(self.shards):05}.parquet"

    def _finish(self) -> None:
        path = self._path()
        self._writer.close()
        sync(path)
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        self.shards.append({"file": f"{self._folder.name}/{path.name}", "dialogues": self._rows, "sha256": content})
        self._writer, self._rows = None, 0
