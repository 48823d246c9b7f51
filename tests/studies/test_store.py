"""The store: versions, names, frozen content, one server at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from listenwell.studies import schema
from listenwell.studies.server_lock import LOST_AFTER, ServerLock
from listenwell.studies.spec import Bonus
from listenwell.studies.store import Store, StoreError, Study


def test_a_new_store_has_the_newest_version_and_every_table_that_the_code_reads(store: Store):
    with store.read() as connection:
        assert connection.execute(text("SELECT max(version) FROM schema_version")).scalar() == schema.VERSION
        found = inspect(connection)
        for table in schema.metadata.sorted_tables:
            assert {column["name"] for column in found.get_columns(table.name)} == {c.name for c in table.columns}


def test_a_store_of_version_1_migrates_and_keeps_its_study(store: Store, make_study: Callable[..., Study]):
    study = make_study(store)
    with store.write() as connection:  # back to the state of version 1
        connection.execute(text("DROP TABLE servers"))
        connection.execute(text("DROP INDEX slots_by_study"))
        connection.execute(text("DELETE FROM schema_version WHERE version > 1"))
    with Store(store.url) as again:
        assert again.study(study.name) == study
        ServerLock(again, study).acquire()
        with again.read() as connection:
            versions = connection.execute(text("SELECT version FROM schema_version ORDER BY version")).scalars().all()
    assert versions == list(range(1, schema.VERSION + 1))


def test_a_store_of_version_1_is_made_by_its_own_migration_alone(tmp_path: Path):
    from listenwell.studies.store import _engine

    engine = _engine(f"sqlite:///{tmp_path / 'old.sqlite'}", create=True)
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        assert schema.migrate(connection, to=1) == 0
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        assert schema.migrate(connection) == 1
        assert inspect(connection).has_table("servers")
    engine.dispose()


def test_a_store_of_a_newer_listenwell_is_refused(sqlite_store: Store):
    with sqlite_store.write() as connection:
        connection.execute(text(f"INSERT INTO schema_version VALUES ({schema.VERSION + 1}, 0)"))
    with pytest.raises(ValueError, match="upgrade listenwell"):
        Store(sqlite_store.url)


def test_sqlite_writes_ahead_and_syncs_every_commit(sqlite_store: Store):
    with sqlite_store.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_what_was_frozen_comes_back_as_it_was(store: Store, make_study: Callable[..., Study]):
    study = make_study(store, kind="drag", systems=["echo-one", "echo-two"], bonus=Bonus(per_task=1))
    design = store.design(study)
    assert len(design.items) == 6
    assert all(design.replies[item.id, "echo-one"].text.endswith(item.context[-1]["text"]) for item in design.items)
    store.check_unchanged(study)


def test_changed_texts_are_noticed_before_they_are_served(store: Store, make_study: Callable[..., Study]):
    study = make_study(store)
    with store.write() as connection:
        connection.execute(text("UPDATE replies SET text = 'something else' WHERE system = 'echo-one'"))
    with pytest.raises(StoreError, match="were changed"):
        store.check_unchanged(study)


def test_a_name_is_used_once(store: Store, make_study: Callable[..., Study]):
    study = make_study(store)
    design = store.design(study)
    with pytest.raises(StoreError, match="already"):
        store.add(study.name, study.spec, design)
    assert len(store.studies()) == 1


def test_an_unknown_study_is_named_with_the_near_one(store: Store, make_study: Callable[..., Study]):
    make_study(store)
    with pytest.raises(StoreError, match="did you mean 'study-1'"):
        store.study("study-l")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:///nowhere/at/all.sqlite", "there is no study here"),
        ("mysql://host/x", "SQLite or PostgreSQL"),
        ("not a url", "a store is a URL"),
        ("sqlite://", "a study's store is a file"),
    ],
)
def test_a_store_that_cannot_be_used_says_what_would_do(url: str, message: str):
    with pytest.raises(StoreError, match=message):
        Store(url)


def test_a_password_is_never_shown():
    with pytest.raises(StoreError) as caught:
        Store("postgresql://user:secret-word@127.0.0.1:1/none")
    assert "secret-word" not in str(caught.value)


def test_a_study_is_served_once_per_store(store: Store, make_study: Callable[..., Study]):
    study = make_study(store)
    first = ServerLock(store, study)
    first.acquire()
    with pytest.raises(StoreError, match=f"already being served .* process {os.getpid()}"):
        ServerLock(store, study).acquire()
    first.release()
    ServerLock(store, study).acquire()


def test_the_place_of_a_server_without_a_sign_of_life_is_taken_over(store: Store, make_study: Callable[..., Study]):
    study = make_study(store)
    now = [1000.0]
    first = ServerLock(store, study, clock=lambda: now[0])
    first.acquire()
    now[0] += LOST_AFTER + 1
    second = ServerLock(store, study, clock=lambda: now[0])
    second.acquire()
    assert not first.renew()
    assert first.is_lost
    assert second.renew()


def test_a_server_that_was_killed_on_this_machine_is_replaced_at_once(store: Store, make_study: Callable[..., Study]):
    import subprocess
    import sys

    study = make_study(store)
    lock = ServerLock(store, study)
    lock.acquire()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with store.write() as connection:
        connection.execute(schema.servers.update().values(pid=ended.pid))
    ServerLock(store, study).acquire()
