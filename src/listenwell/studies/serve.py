"""`study serve`: a store, a lock and an HTTP server around one study."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection

from listenwell.studies.server_lock import ServerLock
from listenwell.studies.store import Store, StoreError


def serve(
    store: Store,
    name: str,
    host: str = "127.0.0.1",
    port: int = 8200,
    hosts: Collection[str] = (),
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a study until stopped. `ready` is called with the address as soon as it is known."""
    import uvicorn

    from listenwell.studies.app import make_app

    study = store.study(name)
    store.check_unchanged(study)
    lock = ServerLock(store, study)
    lock.acquire()
    try:
        listener = _listen(host, port)
        app = make_app(store, study, lock, lambda: _report(store, name), hosts)
        if ready is not None:
            ready(address(host, listener.getsockname()[1], hosts))
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=5)
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        lock.release()


def address(host: str, port: int, hosts: Collection[str] = ()) -> str:
    """The URL at which raters reach the server: by its first host name, or else by its address."""
    if hosts:
        return f"http://{next(iter(hosts))}:{port}"
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def _report(store: Store, name: str) -> tuple[str, str]:
    # Statistics are imported for the first report, so that raters need not wait for them.
    from listenwell.studies.create import data_notice
    from listenwell.studies.report import report_page

    study = store.study(name)
    notice = data_notice(study)
    return report_page(store, study, (notice,) if notice else ())


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        raise StoreError(
            f"cannot listen on {host} port {port} ({problem.strerror}); choose another with --port, 0 for any free one"
        ) from problem
    listener.listen(256)
    return listener
