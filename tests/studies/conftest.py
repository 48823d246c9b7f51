"""Fixtures for the tests of studies: systems that echo, small studies, SQLite and a real PostgreSQL."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

from study_raters import Echo

from listenwell.data.sources import shipped
from listenwell.studies.create import create
from listenwell.studies.spec import StudySpec
from listenwell.studies.store import Store, Study


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    pgserver = pytest.importorskip("pgserver", reason="the wheel pgserver brings the PostgreSQL of these tests")
    pytest.importorskip("psycopg", reason="the PostgreSQL driver")
    # Not in pytest's own folders: they belong to the user, and PostgreSQL refuses to run as root.
    folder = Path(tempfile.mkdtemp(prefix="listenwell-postgres-"))
    server = pgserver.get_server(folder, cleanup_mode="stop")
    # The tests check that an answer is acknowledged after the commit, not the disk under PostgreSQL.
    server.psql("ALTER SYSTEM SET fsync = off;")
    server.psql("SELECT pg_reload_conf();")
    yield server
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: Any) -> str:
    """A new schema on a real server: as isolated as a database, and created instantly."""
    name = f"study_{uuid.uuid4().hex[:12]}"
    postgres_server.psql(f"CREATE SCHEMA {name};")
    uri = postgres_server.get_uri()
    return f"{uri}{'&' if '?' in uri else '?'}options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'study.sqlite'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with Store(store_url, create=True) as opened:
        yield opened


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'study.sqlite'}", create=True) as opened:
        yield opened


@pytest.fixture
def make_study() -> Callable[..., Study]:
    """Make a study of the shipped corpus in a store; fields of its spec can be given."""
    numbers = count(1)

    def make(store: Store, **fields: Any) -> Study:
        defaults: dict[str, Any] = {
            "kind": "likert",
            "systems": ["echo-one", "echo-two"],
            "data": "shipped",
            "split": "train",
            "items": 6,
            "task_size": 3,
        }
        return create(store, f"study-{next(numbers)}", StudySpec(**{**defaults, **fields}), load=Echo)

    return make


@pytest.fixture(scope="session")
def shipped_dialogues() -> list[Any]:
    return list(shipped.read("train"))
