"""Where a study and its answers are stored: SQLite by default, PostgreSQL by URL.

Everything a study shows is frozen in the store when the study is created, so a report made years later uses the texts
that raters read.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, create_engine, event, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError

from listenwell.labels.taxonomy import unknown_name
from listenwell.studies import schema
from listenwell.studies.records import (
    Design,
    FrozenReply,
    Item,
    Layout,
    Study,
    Task,
    as_json,
    content_hash,
    new_id,
    new_token,
)
from listenwell.studies.spec import StudySpec, check_name

STORE_VARIABLE = "LISTENWELL_STORE"
FOLDER = Path("studies")
"""Where studies without an explicit store are kept, one folder each."""


class StoreError(ValueError):
    """A store, or a study in it, cannot be used."""


def default_url(name: str, folder: Path = FOLDER) -> str:
    return f"sqlite:///{folder / name / 'study.sqlite'}"


def store_url(name: str, url: str | None) -> str:
    """The store given by flag or environment, or else the study's own file."""
    return url or os.environ.get(STORE_VARIABLE) or default_url(check_name(name))


class Store:
    """An open store. Write transactions are serialized on SQLite and lock the study's row on PostgreSQL."""

    def __init__(self, url: str, create: bool = False) -> None:
        self.url = url
        self.engine = _engine(url, create)
        try:
            with self.write() as connection:
                schema.migrate(connection)
        except OperationalError as problem:
            self.engine.dispose()
            raise StoreError(f"{_shown(url)}: the store cannot be opened ({_first_line(problem)})") from problem

    @property
    def shown(self) -> str:
        """The store's location, without a password."""
        return _shown(self.url)

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with self.engine.connect().execution_options(writes=True) as connection, connection.begin():
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self.engine.connect() as connection, connection.begin():
            yield connection

    def studies(self) -> list[Study]:
        with self.read() as connection:
            rows = connection.execute(select(schema.studies).order_by(schema.studies.c.created_at)).mappings().all()
        return [_study(row) for row in rows]

    def study(self, name: str) -> Study:
        with self.read() as connection:
            row = connection.execute(select(schema.studies).where(schema.studies.c.name == name)).mappings().first()
        if row is None:
            known = [one.name for one in self.studies()]
            message = unknown_name("study", name, known) if known else f"there is no study in {_shown(self.url)} yet"
            raise StoreError(f"{message}; make one with `listenwell study create NAME`")
        return _study(row)

    def check_free(self, name: str) -> None:
        """Raise StoreError if the name is taken, before any work is done."""
        if name in [one.name for one in self.studies()]:
            raise StoreError(
                f"there is a study {name!r} already in {_shown(self.url)}, and it stays; choose another name"
            )

    def add(self, name: str, spec: StudySpec, design: Design) -> Study:
        """Write a study in one transaction, completely or not at all."""
        check_name(name)
        row = {
            "id": new_id(),
            "name": name,
            "created_at": time.time(),
            "closed_at": None,
            "join_code": new_token(),
            "report_key": new_token(),
            "spec": as_json(spec.to_json()),
            "made_from": as_json(design.made_from),
            "content_hash": content_hash(design),
        }
        try:
            with self.write() as connection:
                connection.execute(schema.studies.insert().values(row))
                _add_items(connection, row["id"], design)
                for position, task in enumerate(design.tasks):
                    add_task(connection, str(row["id"]), position, task)
        except IntegrityError as problem:
            self.check_free(name)
            raise StoreError(f"{name}: the study cannot be stored ({_first_line(problem)})") from problem
        return self.study(name)

    def design(self, study: Study) -> Design:
        """The frozen design, including tie-break tasks added later."""
        with self.read() as connection:
            return read_design(connection, study)

    def check_unchanged(self, study: Study) -> None:
        """Raise StoreError if the study's texts or tasks have changed since it was created."""
        design = self.design(study)
        first = Design(design.items, design.replies, tuple(task for task in design.tasks if task.parent is None))
        if content_hash(first) != study.content_hash:
            raise StoreError(
                f"the items, replies or tasks of {study.name!r} were changed in {_shown(self.url)} after it was made, "
                "so new ratings would not be of the same texts. It is not served; `study report` and `study export` "
                "still give all that was answered. Make a new study with `listenwell study create`"
            )

    def close_study(self, study: Study) -> None:
        with self.write() as connection:
            connection.execute(
                schema.studies.update()
                .where(schema.studies.c.id == study.id, schema.studies.c.closed_at.is_(None))
                .values(closed_at=time.time())
            )

    def reopen_study(self, study: Study) -> None:
        with self.write() as connection:
            connection.execute(schema.studies.update().where(schema.studies.c.id == study.id).values(closed_at=None))


def is_there(url: str) -> bool:
    """Whether the store exists; a database server always counts as existing."""
    if not url.startswith("sqlite:"):
        return True
    return Path(make_url(url).database or "").expanduser().is_file()


def _engine(url: str, create: bool) -> Engine:
    if url.startswith(("postgres://", "postgresql://")):
        url = "postgresql+psycopg://" + url.split("://", 1)[1]
    try:
        parsed = make_url(url)
    except ArgumentError as problem:
        raise StoreError(
            f"a store is a URL such as sqlite:///studies/first.sqlite or postgresql://user@host/database, found {url!r}"
        ) from problem
    dialect = parsed.get_backend_name()
    if dialect == "sqlite":
        return _sqlite(parsed, create)
    if dialect == "postgresql":
        try:
            return create_engine(parsed, pool_size=20, max_overflow=20, pool_pre_ping=True)
        except ModuleNotFoundError as problem:
            raise StoreError("PostgreSQL needs its driver: pip install 'psycopg[binary]'") from problem
    raise StoreError(f"a store is SQLite or PostgreSQL, found {dialect!r}")


def _sqlite(url: Any, create: bool) -> Engine:
    if not url.database or url.database == ":memory:":
        raise StoreError("a study's store is a file: sqlite:///studies/first.sqlite")
    path = Path(url.database).expanduser()
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    elif not path.is_file():
        raise StoreError(f"{path}: there is no study here; make one with `listenwell study create NAME`")
    engine = create_engine(
        url.set(database=str(path)),
        connect_args={"timeout": 60, "check_same_thread": False},
        pool_size=16,
        max_overflow=64,  # more than the server's threads, so that none waits for a connection
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=60000"):
            connection.execute(f"PRAGMA {pragma}").fetchall()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads and then writes fails if another one wrote in between, so writers wait their turn.
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def lock_study(connection: Connection, study_id: str) -> RowMapping:
    """Lock and return the study's row until the transaction ends, so that slots are handed out one at a time."""
    statement = select(schema.studies).where(schema.studies.c.id == study_id).with_for_update()
    return connection.execute(statement).mappings().one()


def add_task(connection: Connection, study_id: str, position: int, task: Task) -> None:
    connection.execute(
        schema.tasks.insert().values(
            id=task.id, study_id=study_id, position=position, item_ids=as_json(task.item_ids), parent_id=task.parent
        )
    )
    for number, layout in enumerate(task.layouts):
        add_slot(connection, study_id, task.id, number, layout)


def add_slot(
    connection: Connection, study_id: str, task_id: str, number: int, layout: Layout, machine: bool = False
) -> str:
    slot_id = new_id()
    connection.execute(
        schema.slots.insert().values(
            id=slot_id,
            study_id=study_id,
            task_id=task_id,
            number=number,
            machine=int(machine),
            layout=as_json(layout),
        )
    )
    return slot_id


def _add_items(connection: Connection, study_id: Any, design: Design) -> None:
    rows = [
        {
            "id": item.id,
            "study_id": study_id,
            "position": position,
            "corpus_id": item.corpus_id,
            "source": item.source,
            "emotion": item.emotion,
            "context": as_json([dict(turn) for turn in item.context]),
            "reference": item.reference,
            "systems": as_json(item.systems),
            "bonus": int(item.bonus),
        }
        for position, item in enumerate(design.items)
    ]
    connection.execute(schema.items.insert(), rows)
    said = [
        {"item_id": item, "system": system, "text": reply.text, "emotion": reply.emotion, "label": reply.label}
        for (item, system), reply in design.replies.items()
    ]
    connection.execute(schema.replies.insert(), said)


def read_design(connection: Connection, study: Study) -> Design:
    rows = _rows(connection, select(schema.items).where(schema.items.c.study_id == study.id).order_by("position"))
    items = tuple(
        Item(
            row["id"],
            row["corpus_id"],
            row["source"],
            row["emotion"],
            tuple(json.loads(row["context"])),
            row["reference"],
            tuple(json.loads(row["systems"])),
            bool(row["bonus"]),
        )
        for row in rows
    )
    join = schema.replies.join(schema.items, schema.replies.c.item_id == schema.items.c.id)
    said = _rows(connection, select(schema.replies).select_from(join).where(schema.items.c.study_id == study.id))
    replies = {(r["item_id"], r["system"]): FrozenReply(r["text"], r["emotion"], r["label"]) for r in said}
    layouts: dict[str, list[Layout]] = {}
    own = (schema.slots.c.study_id == study.id, schema.slots.c.machine == 0)
    for row in _rows(connection, select(schema.slots).where(*own).order_by("task_id", "number")):
        layouts.setdefault(row["task_id"], []).append(json.loads(row["layout"]))
    tasks = tuple(
        Task(row["id"], tuple(json.loads(row["item_ids"])), tuple(layouts[row["id"]]), row["parent_id"])
        for row in _rows(
            connection, select(schema.tasks).where(schema.tasks.c.study_id == study.id).order_by("position")
        )
    )
    return Design(items, replies, tasks, study.made_from)


def _rows(connection: Connection, statement: Any) -> Sequence[RowMapping]:
    return connection.execute(statement).mappings().all()


def _study(row: Mapping[Any, Any]) -> Study:
    return Study(
        row["id"],
        row["name"],
        StudySpec.from_json(json.loads(row["spec"])),
        json.loads(row["made_from"]),
        row["created_at"],
        row["closed_at"],
        row["join_code"],
        row["report_key"],
        row["content_hash"],
    )


def _shown(url: str) -> str:
    """A URL without its password."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        return "the store"
    return (
        str(parsed.database) if parsed.get_backend_name() == "sqlite" else parsed.render_as_string(hide_password=True)
    )


def _first_line(problem: Exception) -> str:
    return str(getattr(problem, "orig", problem)).strip().splitlines()[0]
