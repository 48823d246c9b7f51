"""What a study consists of: items, frozen replies, tasks, and the study itself."""

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
    """For links: 192 bits that nobody guesses."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Item:
    """A dialogue with the systems whose replies to it are judged."""

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
    """What the system heard."""
    label: str | None = None
    """What the system chose to do."""


Layout = list[dict[str, Any]]
"""What one rater of a task sees: [{"item": id, "systems": [those of A, B, …]}]."""


@dataclass(frozen=True, slots=True)
class Task:
    id: str
    item_ids: tuple[str, ...]
    layouts: tuple[Layout, ...]
    """One for each rater."""
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Design:
    """All that is frozen when a study is made."""

    items: tuple[Item, ...]
    replies: Mapping[tuple[str, str], FrozenReply]
    """By item and system."""
    tasks: tuple[Task, ...]
    made_from: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Study:
    """A study as the store has it."""

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
        """For the researcher; raters see the spec's own title."""
        return self.spec.about or self.spec.title or self.name


def content_hash(design: Design) -> str:
    """Over everything that raters see and in which order."""
    content = [
        [[i.id, i.corpus_id, i.source, i.emotion, [dict(t) for t in i.context], i.reference, list(i.systems), i.bonus]
         for i in design.items],
        sorted([item, system, r.text, r.emotion, r.label] for (item, system), r in design.replies.items()),
        [[task.id, list(task.item_ids), list(task.layouts)] for task in design.tasks],
    ]  # fmt: skip
    return hashlib.sha256(as_json(content).encode()).hexdigest()[:32]


def as_json(value: Any) -> str:
    """In one form only, so that equal values have equal texts."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
