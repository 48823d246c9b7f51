"""Fixtures for tests in a real browser: Debian's Chromium, driven by Playwright.

A test module imports what it uses: `from browser_fixtures import browser, open_page, serve_app`. Pytest finds fixtures
by name, so such a module starts with `# ruff: noqa: F401, F811`; a conftest.py that imports them saves that.

The browser lives as long as one test module. Playwright's synchronous interface keeps an event loop in the thread that
started it, so a module with a browser cannot call `asyncio.run` itself; modules after it can.
"""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MISSING = "these tests need a browser: apt-get install chromium (or pip install playwright, if that is what is missing)"
WAIT = 10_000
"""Milliseconds that Playwright waits for something to appear before a test fails."""


def browser_path() -> str | None:
    """The browser's path; None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def report_missing() -> None:
    """Skip the test, or fail in continuous integration, where a missing browser would hide a broken page."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(MISSING)
    pytest.skip(MISSING)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One headless browser shared by the tests of a module."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        report_missing()
    path = browser_path()
    if path is None:
        report_missing()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens an address in a fresh profile: `open_page(url, width=360, dark=True, locale="zh-CN")`.

    What the page does is watched. A script error, a violation of its Content-Security-Policy or a request to any other
    host fails the test at its end.
    """
    problems: list[str] = []
    with ExitStack() as contexts:

        def make(url: str, width: int = 1024, height: int = 800, dark: bool = False, **options: Any) -> Page:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if dark else "light",
                reduced_motion="reduce",
                **{"locale": "en-US", **options},
            )
            contexts.callback(context.close)
            context.set_default_timeout(WAIT)
            watch(context, urlsplit(url).netloc, problems)
            page = context.new_page()
            page.goto(url)
            return page

        yield make
    assert not problems, "\n".join(problems)


def watch(context: BrowserContext, host: str, problems: list[str]) -> None:
    """Record everything that our pages must not do."""

    def on_request(request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != host:
            problems.append(f"a request to another host: {request.url}")

    def on_console(message: Any) -> None:
        if "Content Security Policy" in message.text or "Content-Security-Policy" in message.text:
            problems.append(message.text)

    context.on("request", on_request)
    context.on("console", on_console)
    context.on("weberror", lambda error: problems.append(f"script error: {error.error}"))


def accessibility_problems(page: Page) -> list[str]:
    """Problems that axe rates serious or critical, one line per rule, with the elements."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    return [
        f"{rule['impact']} {rule['id']}: {rule['help']}: {'; '.join(node['html'][:200] for node in rule['nodes'])}"
        for rule in violations
        if rule["impact"] in ("serious", "critical")
    ]


def overflows(page: Page) -> bool:
    """Whether the page is wider than its window, so that one would have to scroll sideways."""
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The URL of an ASGI application that a thread of this process serves on a free loopback port."""
    import uvicorn

    ready = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready.set()

    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        assert ready.wait(60), "the server did not start"
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


@pytest.fixture
def serve_app() -> Iterator[Callable[[Any], str]]:
    """Serve an ASGI application until the test ends; returns its URL."""
    with ExitStack() as servers:
        yield lambda app: servers.enter_context(serving(app))
