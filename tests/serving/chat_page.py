"""The chat page in a browser, as tests use it: `chat.open()`, `chat.say("hello")`, `chat.texts`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from fake_api import FakeApi

from browser_fixtures import WAIT, browser, open_page, serve_app

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

__all__ = ["ChatPage", "browser", "chat", "open_page", "serve_app"]


class ChatPage:
    """A page, and the actions of a user on it."""

    page: Page

    def __init__(self, api: FakeApi, url: str, open_page: Callable[..., Page]) -> None:
        self.api = api
        self.url = url
        self._open_page = open_page

    def open(self, ready: bool = True, **options: Any) -> Page:
        """Open the page in a fresh profile and, if it has a connection, wait until it knows the models."""
        self.page = self._open_page(self.url, **options)
        if ready:
            self.wait_until_ready()
        return self.page

    def reload(self) -> None:
        self.page.reload()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        self.page.locator("#model option").first.wait_for(state="attached")

    def wait_for_text(self, selector: str, text: str) -> None:
        """Wait until an element has exactly this text. (Waiting for a function needs eval, which the page forbids.)"""
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_have_text(text, timeout=WAIT)

    def wait_for_value(self, selector: str, value: str) -> None:
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_have_value(value, timeout=WAIT)

    def send(self, text: str) -> None:
        self.page.fill("#message", text)
        self.page.press("#message", "Enter")

    def say(self, text: str) -> str:
        """Send a message and wait for the complete reply."""
        before = len(self.exchanges)
        self.send(text)
        self.wait_for_reply(before + 1)
        return self.last(".text, .care").inner_text()

    def wait_for_reply(self, number: int) -> None:
        self.page.locator(f"#conversation > :nth-child({number})[data-state=done]").wait_for()

    def open_help(self, expected: str) -> None:
        """Open the list of people who can help, and wait until it has an entry."""
        self.page.click("#help")
        self.page.locator("#help-dialog", has_text=expected).wait_for()

    def act(self, name: str) -> None:
        """Press a button under the last exchange: retry, edit, undo or ask."""
        self.last(f"[data-action={name}]").click()

    def last(self, selector: str) -> Locator:
        return self.page.locator("#conversation > :last-child").locator(selector)

    @property
    def exchanges(self) -> list[dict[str, Any]]:
        """The exchanges stored in the browser."""
        stored = self.page.evaluate("localStorage.getItem('listenwell.conversation')")
        return json.loads(stored)["exchanges"] if stored else []

    @property
    def texts(self) -> list[str]:
        """The messages and replies on the page, in order."""
        return self.page.locator(".said, .reply .text, .reply .care").evaluate_all(
            "nodes => nodes.map(node => (node.matches('.said') ? node.lastChild : node).textContent)"
        )

    @property
    def announced(self) -> str:
        """The last text announced to a screen reader."""
        return self.page.locator("#announcer").inner_text()


@pytest.fixture
def chat(serve_app: Callable[[Any], str], open_page: Callable[..., Page]) -> Iterator[ChatPage]:
    """The page, served by the fake API."""
    api = FakeApi()
    yield ChatPage(api, serve_app(api.app), open_page)
    api.release.set()
