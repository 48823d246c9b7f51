"""A lock that allows one server per study and store: a row that the server renews while it runs."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import select

from listenwell.studies.records import Study, new_id
from listenwell.studies.schema import servers
from listenwell.studies.store import Store, StoreError, lock_study

HEARTBEAT = 5.0
"""Seconds between renewals."""
LOST_AFTER = 30.0
"""Seconds without a renewal after which a server counts as gone."""


class ServerLock:
    """Held while a study is served. The lock of a killed server is taken over: immediately on the same machine, after
    half a minute from another one."""

    def __init__(self, store: Store, study: Study, clock: Callable[[], float] = time.time) -> None:
        self.store, self.study, self.clock = store, study, clock
        self.owner = new_id()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_lost = False

    def acquire(self) -> None:
        with self.store.write() as connection:
            lock_study(connection, self.study.id)
            own = servers.c.study_id == self.study.id
            row = connection.execute(select(servers).where(own)).mappings().first()
            if row is not None and self._is_alive(row):
                raise StoreError(
                    f"{self.study.name!r} is already being served from this store, by process {row['pid']} on "
                    f"{row['host']}; stop that one first, or let raters use it"
                )
            values = {
                "owner": self.owner,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "heartbeat_at": self.clock(),
            }
            if row is None:
                connection.execute(servers.insert().values(study_id=self.study.id, **values))
            else:
                connection.execute(servers.update().where(own).values(**values))

    def _is_alive(self, row: Any) -> bool:
        if self.clock() - row["heartbeat_at"] > LOST_AFTER:
            return False
        if row["host"] != socket.gethostname() or row["pid"] == os.getpid():
            return True
        try:
            os.kill(row["pid"], 0)
        except ProcessLookupError:
            return False
        except OSError:  # somebody else's process
            return True
        return True

    def renew(self) -> bool:
        """Renew the lock. Returns False if another server has taken over."""
        own = (servers.c.study_id == self.study.id, servers.c.owner == self.owner)
        with self.store.write() as connection:
            changed = connection.execute(servers.update().where(*own).values(heartbeat_at=self.clock())).rowcount
        self.is_lost = not changed
        return not self.is_lost

    def release(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self.store.write() as connection:
            connection.execute(servers.delete().where(servers.c.owner == self.owner))

    def keep_alive(self) -> None:
        """Renew the lock from a thread until it is released."""
        self._thread = threading.Thread(target=self._run, name="study-heartbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(HEARTBEAT) and not self.is_lost:
            try:
                self.renew()
            except Exception:  # the database is away for a moment; the next heartbeat tries again
                continue
