"""Files that appear whole or not at all, whatever stops the program."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary name to write to; what was written is synced and renamed to `path` at the end."""
    # Beside the file, since a rename is atomic only within one file system; two processes may write the same file.
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield unfinished
        sync(unfinished)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync(path.parent)


def write_json(path: Path, content: Any) -> None:
    with written_whole(path) as unfinished:
        unfinished.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; empty where there is no such file or it is something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def sync(path: Path) -> None:
    """Makes a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
