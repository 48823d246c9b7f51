"""The records of a study: items, frozen replies, tasks, and the study itself."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from listenwell.studies.spec import StudySpec


def new_id(bytes_: int = 9) -> str:
    return secrets.token_urlsafe(bytes_)


def new_token() -> str:
    """An unguessable token for links, with 192 bits."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Item:
    """A dialogue and the systems whose replies to it are judged."""

    id: str
    corpus_id: str
    source: str
    emotion: str | None
    context: tuple[Mapping[str, str], ...]
    reference: str | None
    systems: tuple[str, ...]
    bonus: bool = False


@dataclass(frozen=True, slots=True)
class FrozenReply:
    text: str
    emotion: str | None = None
    """The emotion that the system recognized."""
    label: str | None = None
    """The label that the system chose for its reply."""


Layout = list[dict[str, Any]]
"""What one rater of a task sees: [{"item": id, "systems": [systems behind A, B, …]}]."""


@dataclass(frozen=True, slots=True)
class Task:
    id: str
    item_ids: tuple[str, ...]
    layouts: tuple[Layout, ...]
    """One per rater."""
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Design:
    """Everything that is frozen when a study is created."""

    items: tuple[Item, ...]
    replies: Mapping[tuple[str, str], FrozenReply]
    """By item and system."""
    tasks: tuple[Task, ...]
    made_from: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Study:
    """A study as stored."""

    id: str
    name: str
    spec: StudySpec
    made_from: Mapping[str, Any]
    created_at: float
    closed_at: float | None
    join_code: str
    report_key: str
    content_hash: str

    @property
    def title(self) -> str:
        """The title for the researcher; raters see `spec.title`."""
        return self.spec.about or self.spec.title or self.name


def content_hash(design: Design) -> str:
    """A hash of everything that raters see, including the order."""
    content = [
        [[i.id, i.corpus_id, i.source, i.emotion, [dict(t) for t in i.context], i.reference, list(i.systems), i.bonus]
         for i in design.items],
        sorted([item, system, r.text, r.emotion, r.label] for (item, system), r in design.replies.items()),
        [[task.id, list(task.item_ids), list(task.layouts)] for task in design.tasks],
    ]  # fmt: skip
    return hashlib.sha256(as_json(content).encode()).hexdigest()[:32]


def as_json(value: Any) -> str:
    """Canonical JSON, so that equal values have equal texts."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
