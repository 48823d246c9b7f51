"""The tables of a study store, and the ordered migrations that create them.

A new store runs every migration and an old one those it lacks, so both end up the same. Released migrations are never
changed; a new version appends one. Answers are append-only: nothing here or elsewhere updates or deletes a row of
`answers`.
"""

from __future__ import annotations

import time

from sqlalchemy import Column, Connection, Float, Integer, MetaData, String, Table, Text, inspect, text

metadata = MetaData()

versions = Table("schema_version", metadata, Column("version", Integer, primary_key=True), Column("applied_at", Float))

studies = Table(
    "studies",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String),
    Column("created_at", Float),
    Column("closed_at", Float),
    Column("join_code", String),
    Column("report_key", String),
    Column("spec", Text),  # JSON: StudySpec
    Column("made_from", Text),  # JSON: data hash, systems, versions
    Column("content_hash", String),  # of items, replies and tasks
)

items = Table(
    "items",
    metadata,
    Column("id", String, primary_key=True),  # random, so that it reveals nothing to raters
    Column("study_id", String),
    Column("position", Integer),
    Column("corpus_id", String),
    Column("source", String),
    Column("emotion", String),
    Column("context", Text),  # JSON: list of {speaker, text}
    Column("reference", Text),
    Column("systems", Text),  # JSON: the systems whose replies are judged in this item
    Column("bonus", Integer),
)

replies = Table(
    "replies",
    metadata,
    Column("item_id", String, primary_key=True),
    Column("system", String, primary_key=True),
    Column("text", Text),
    Column("emotion", String),
    Column("label", String),
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", String, primary_key=True),
    Column("study_id", String),
    Column("position", Integer),
    Column("item_ids", Text),  # JSON
    Column("parent_id", String),  # for a tie-break: the task with items on which no two raters agreed
)

slots = Table(
    "slots",
    metadata,
    Column("id", String, primary_key=True),
    Column("study_id", String),
    Column("task_id", String),
    Column("number", Integer),
    Column("machine", Integer),  # machine raters have their own slots, apart from those of people
    Column("layout", Text),  # JSON: items in order, each with its systems in the order of the letters
)

raters = Table(
    "raters",
    metadata,
    Column("id", String, primary_key=True),
    Column("study_id", String),
    Column("external_id", String),
    Column("token", String),
    Column("machine", Integer),
    Column("created_at", Float),
    Column("practised_at", Float),
    Column("completion_code", String),
)

assignments = Table(
    "assignments",
    metadata,
    Column("id", String, primary_key=True),
    Column("study_id", String),
    Column("slot_id", String),
    Column("task_id", String),
    Column("rater_id", String),
    Column("state", String),  # active, done, expired, extra (finished after another rater had taken the slot)
    Column("started_at", Float),
    Column("expires_at", Float),
    Column("done_at", Float),
)

answers = Table(
    "answers",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("study_id", String),
    Column("rater_id", String),
    Column("client_id", String),
    Column("assignment_id", String),  # null for practice
    Column("item_id", String),
    Column("values", Text),  # JSON as sent, by letter
    Column("seconds", Float),
    Column("received_at", Float),
)

servers = Table(
    "servers",
    metadata,
    Column("study_id", String, primary_key=True),
    Column("owner", String),
    Column("host", String),
    Column("pid", Integer),
    Column("heartbeat_at", Float),
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE studies (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at {float} NOT NULL, "
        "closed_at {float}, join_code TEXT NOT NULL UNIQUE, report_key TEXT NOT NULL, spec TEXT NOT NULL, "
        "made_from TEXT NOT NULL, content_hash TEXT NOT NULL)",
        "CREATE TABLE items (id TEXT PRIMARY KEY, study_id TEXT NOT NULL REFERENCES studies(id), "
        "position INTEGER NOT NULL, corpus_id TEXT NOT NULL, source TEXT NOT NULL, emotion TEXT, "
        "context TEXT NOT NULL, reference TEXT, systems TEXT NOT NULL, bonus INTEGER NOT NULL)",
        "CREATE TABLE replies (item_id TEXT NOT NULL REFERENCES items(id), system TEXT NOT NULL, text TEXT NOT NULL, "
        "emotion TEXT, label TEXT, PRIMARY KEY (item_id, system))",
        "CREATE TABLE tasks (id TEXT PRIMARY KEY, study_id TEXT NOT NULL REFERENCES studies(id), "
        "position INTEGER NOT NULL, item_ids TEXT NOT NULL, parent_id TEXT)",
        "CREATE TABLE slots (id TEXT PRIMARY KEY, study_id TEXT NOT NULL REFERENCES studies(id), "
        "task_id TEXT NOT NULL REFERENCES tasks(id), number INTEGER NOT NULL, machine INTEGER NOT NULL, "
        "layout TEXT NOT NULL, UNIQUE (task_id, number))",
        "CREATE TABLE raters (id TEXT PRIMARY KEY, study_id TEXT NOT NULL REFERENCES studies(id), "
        "external_id TEXT NOT NULL, token TEXT NOT NULL UNIQUE, machine INTEGER NOT NULL, created_at {float} NOT NULL, "
        "practised_at {float}, completion_code TEXT NOT NULL, UNIQUE (study_id, external_id))",
        "CREATE TABLE assignments (id TEXT PRIMARY KEY, study_id TEXT NOT NULL REFERENCES studies(id), "
        "slot_id TEXT NOT NULL REFERENCES slots(id), task_id TEXT NOT NULL REFERENCES tasks(id), "
        "rater_id TEXT NOT NULL REFERENCES raters(id), state TEXT NOT NULL, started_at {float} NOT NULL, "
        "expires_at {float} NOT NULL, done_at {float}, UNIQUE (task_id, rater_id))",
        # Enforces that a slot is held or done by at most one rater, whatever the application code does.
        "CREATE UNIQUE INDEX one_rater_per_slot ON assignments (slot_id) WHERE state IN ('active', 'done')",
        "CREATE INDEX assignments_by_rater ON assignments (rater_id)",
        "CREATE TABLE answers (number {serial}, study_id TEXT NOT NULL REFERENCES studies(id), "
        "rater_id TEXT NOT NULL REFERENCES raters(id), client_id TEXT NOT NULL, "
        'assignment_id TEXT REFERENCES assignments(id), item_id TEXT NOT NULL, "values" TEXT NOT NULL, '
        "seconds {float} NOT NULL, received_at {float} NOT NULL, UNIQUE (rater_id, client_id))",
        "CREATE INDEX answers_by_assignment ON answers (assignment_id)",
    ),
    (
        "CREATE TABLE servers (study_id TEXT PRIMARY KEY REFERENCES studies(id), owner TEXT NOT NULL, "
        "host TEXT NOT NULL, pid INTEGER NOT NULL, heartbeat_at {float} NOT NULL)",
        "CREATE INDEX slots_by_study ON slots (study_id, machine)",
    ),
)

VERSION = len(MIGRATIONS)

TYPES = {
    "sqlite": {"serial": "INTEGER PRIMARY KEY AUTOINCREMENT", "float": "REAL"},
    "postgresql": {"serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "float": "DOUBLE PRECISION"},
}


def migrate(connection: Connection, to: int = VERSION) -> int:
    """Migrate the store of an open transaction to a version. Returns the version it had; refuses a newer store."""
    dialect = connection.dialect.name
    if dialect == "postgresql":  # two processes may open a new store at once
        connection.execute(text("SELECT pg_advisory_xact_lock(727001)"))
    if inspect(connection).has_table(versions.name):
        current = connection.execute(text("SELECT max(version) FROM schema_version")).scalar() or 0
    else:
        number = TYPES[dialect]["float"]
        connection.execute(
            text(f"CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at {number} NOT NULL)")
        )
        current = 0
    if current > VERSION:
        raise ValueError(
            f"the store has schema version {current}, and this listenwell knows versions up to {VERSION}; "
            "upgrade listenwell (pip install -U listenwell)"
        )
    for version in range(current + 1, to + 1):
        for statement in MIGRATIONS[version - 1]:
            connection.execute(text(statement.format(**TYPES[dialect])))
        connection.execute(versions.insert().values(version=version, applied_at=time.time()))
    return current
