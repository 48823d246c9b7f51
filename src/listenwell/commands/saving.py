"""Where a conversation of the terminal is saved: a new file, readable by its owner alone."""

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
    """In the user's data folder, not in whatever folder the program was started from."""
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "listenwell" / "conversations"


def target(name: str, date: datetime) -> Path:
    """The file that a name stands for; one without a folder is in `conversations_folder()`, none is named by the date.

    A name that does not say which form it has gets .md.
    """
    default = f"chat-{date:%Y-%m-%d}.md"
    if not name:
        return free(conversations_folder() / default)
    path = Path(name).expanduser()
    if name.endswith(("/", os.sep)) or path.is_dir():
        return free(path / default)
    if not is_jsonl(name) and not name.lower().endswith(MARKDOWN):
        path = path.with_name(f"{path.name}.md")
    # "./mine.md" asks for the current folder, though a Path no longer shows it.
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
    """As JSON lines or Markdown, by its ending. FileExistsError if there is a file already."""
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
