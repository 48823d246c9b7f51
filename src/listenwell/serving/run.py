"""Starting and stopping the server. Anything that can be wrong is reported before the first request could arrive."""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from listenwell.serving.settings import ENVIRONMENT, Settings

BACKLOG = 2048
"""Connections that may wait to be accepted, in a burst or while the systems are loading."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where and how a server listens."""

    host: str
    port: int
    workers: int = 1
    """Processes; each loads its own copy of the systems."""
    grace: int = 30
    """Seconds that replies in progress have to finish once the server is told to stop."""
    access_log: bool = False


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check(settings: Settings, address: Address) -> None:
    """Raise if the server could not start, or would be open to other machines without a key."""
    from listenwell.web.keys import Keys
    from listenwell.weights import find, is_remote

    if address.workers < 1:
        raise ValueError(f"--workers is {address.workers}, expected at least 1")
    if settings.api_key_file is not None:
        Keys.load(settings.api_key_file)
    elif not is_loopback(address.host):
        raise ValueError(
            f"{address.host} can be reached from other machines, and no key is named: add --api-key-file FILE, or "
            "leave --host out to serve this machine alone"
        )
    for name in settings.models:
        if not is_remote(name):
            find(name)


def listen(address: Address) -> socket.socket:
    """Return a socket that is bound to the address and listening."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address.host, address.port))
        bound.listen(BACKLOG)  # right away: two programs can bind the same port as long as neither listens
    except OSError as problem:
        bound.close()
        raise ValueError(_bind_problem(problem, address)) from problem
    except OverflowError as problem:
        bound.close()
        raise ValueError(f"--port is {address.port}, expected a number from 0 to 65535") from problem
    bound.set_inheritable(True)
    return bound


def _bind_problem(problem: OSError, address: Address) -> str:
    place = f"{address.host}:{address.port}"
    if problem.errno == errno.EADDRINUSE:
        return f"{place} is in use by another program; choose another port, such as --port {address.port + 1}"
    if problem.errno == errno.EACCES:
        return f"{place}: ports below 1024 are the system's; choose another port, such as --port 8000"
    return f"{place} cannot be listened at: {problem.strerror or problem}; choose another --host"


def url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"


def run(settings: Settings, address: Address, bound: socket.socket) -> None:
    """Serve until stopped by SIGTERM or Ctrl-C."""
    import uvicorn

    options: dict[str, Any] = {
        "log_level": "warning",
        "backlog": BACKLOG,
        "access_log": address.access_log,
        "timeout_graceful_shutdown": address.grace,
        "timeout_keep_alive": 30,
        "server_header": False,
        "h11_max_incomplete_event_size": 64 * 1024,
        "date_header": False,
    }
    logging.basicConfig(level=logging.INFO if address.access_log else logging.WARNING, format="%(message)s")
    if address.access_log:
        options["log_level"] = "info"
    if address.workers == 1:
        _run_one(settings, bound, options)
        return
    with _shared_numbers():
        os.environ[ENVIRONMENT] = settings.to_json()
        config = uvicorn.Config(
            "listenwell.serving.app:from_environment",
            factory=True,
            workers=address.workers,
            timeout_worker_healthcheck=15,  # a worker that is loading its systems answers late but is not hung
            **options,
        )
        from uvicorn.supervisors import Multiprocess

        Multiprocess(config, sockets=[bound]).run()


def _run_one(settings: Settings, bound: socket.socket, options: dict[str, Any]) -> None:
    import uvicorn

    from listenwell.serving.app import create_app
    from listenwell.serving.metrics import Metrics
    from listenwell.serving.served import load_served

    metrics = Metrics()
    served = load_served(settings, metrics)
    server = uvicorn.Server(uvicorn.Config(create_app(settings, served, metrics), **options))
    print(f"listenwell serves {', '.join(settings.models)} at {url(bound)}", file=sys.stderr, flush=True)
    server.run(sockets=[bound])


@contextmanager
def _shared_numbers() -> Iterator[None]:
    """A temporary folder in which the worker processes share their counters."""
    from listenwell.serving.metrics import MULTIPROCESS

    with TemporaryDirectory(prefix="listenwell-metrics-") as folder:
        os.environ[MULTIPROCESS] = str(Path(folder))
        try:
            yield
        finally:
            del os.environ[MULTIPROCESS]
