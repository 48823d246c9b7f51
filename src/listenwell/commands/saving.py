"""Save a terminal conversation in a new file that only its owner can read."""

from __future__ import annotations

import gzip
import json
import os
from datetime import datetime
from pathlib import Path

from listenwell.data.sources.jsonl import is_jsonl
from listenwell.systems.conversation import Conversation

MARKDOWN = (".md", ".markdown")


def conversations_folder() -> Path:
    """The folder for saved conversations, in the user's data folder rather than the current one."""
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "listenwell" / "conversations"


def target(name: str, date: datetime) -> Path:
    """The file for a name. One without a folder goes into `conversations_folder()`; an empty one is named by the date.

    A name without a known suffix gets .md.
    """
    default = f"chat-{date:%Y-%m-%d}.md"
    if not name:
        return free(conversations_folder() / default)
    path = Path(name).expanduser()
    if name.endswith(("/", os.sep)) or path.is_dir():
        return free(path / default)
    if not is_jsonl(name) and not name.lower().endswith(MARKDOWN):
        path = path.with_name(f"{path.name}.md")
    # "./mine.md" asks for the current folder, which a Path no longer shows.
    return path if os.path.dirname(name) else conversations_folder() / path


def free(path: Path) -> Path:
    """This path, or the first of NAME-2, NAME-3, … that does not exist."""
    stem, dot, ending = path.name.partition(".") if is_jsonl(path.name) else path.name.rpartition(".")
    number, other = 2, path
    while other.exists():
        other = path.with_name(f"{stem}-{number}{dot}{ending}")
        number += 1
    return other


def save(conversation: Conversation, path: Path, date: datetime) -> None:
    """Save as JSON lines or Markdown, depending on the suffix. Raises FileExistsError if the file exists."""
    if is_jsonl(path):
        record = conversation.to_dialogue(path.name.split(".")[0]).to_json()
        text = json.dumps(record, ensure_ascii=False) + "\n"
    else:
        text = conversation.to_markdown(date)
    data = text.encode("utf-8", "replace")
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, mode=0o700)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(gzip.compress(data) if path.name.lower().endswith(".gz") else data)
