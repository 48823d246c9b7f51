"""The chat page with the real server and a tiny model."""

# ruff: noqa: F401, F811 (a fixture is imported, and named by the tests that use it)
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chat_page import ChatPage, browser, open_page, serve_app
from fake_api import FakeApi

from listenwell.checkpoint import Checkpoint
from listenwell.contract import Model
from listenwell.decoding import Decoding
from listenwell.serving.app import create_app
from listenwell.serving.metrics import Metrics
from listenwell.serving.served import serve_system
from listenwell.serving.settings import Settings
from listenwell.systems.bot import Bot
from listenwell.systems.safety import SafetyWrapper
from listenwell.text import Tokenizer

if TYPE_CHECKING:
    from playwright.sync_api import Page

KEY = "a-key-of-24-characters-or-more"


@pytest.fixture
def real_chat(
    tiny_model: Callable[..., Model],
    tokenizer: Tokenizer,
    tmp_path: Path,
    serve_app: Callable[[Any], str],
    open_page: Callable[..., Page],
) -> ChatPage:
    """The page of the real application, which asks for a key."""
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n", encoding="utf-8")
    keys.chmod(0o600)
    settings = Settings(models=("multi-trs", "mime"), api_key_file=str(keys))
    metrics, served = Metrics(), {}
    for name in settings.models:
        bot = Bot(Checkpoint(name, tiny_model(name), tokenizer, decoding=Decoding(max_length=12, min_length=4)))
        served[name] = serve_system(name, SafetyWrapper(bot), settings, metrics, f"a tiny {name}")
    return ChatPage(FakeApi(), serve_app(create_app(settings, served, metrics)), open_page)


def test_a_conversation_with_the_real_server(real_chat: ChatPage) -> None:
    page = real_chat.open(ready=False)
    page.fill("#key", KEY)
    page.press("#key", "Enter")
    real_chat.wait_until_ready()
    first = real_chat.say("I lost my job today")
    assert first
    real_chat.last(".why summary").click()
    assert "%" in real_chat.last(".why-body").inner_text()
    page.click("#options summary")
    page.select_option("#model", "mime")
    assert "A tiny mime." in page.inner_text("#model-about")
    page.check("#several")
    real_chat.say("and my keys")
    assert real_chat.exchanges[1]["reply"]["model"] == "mime"
    real_chat.act("retry")
    real_chat.wait_for_reply(2)
    real_chat.reload()
    assert real_chat.texts[:2] == ["I lost my job today", first]
    assert len(real_chat.texts) == 4

    card = real_chat.say("I want to kill myself")
    assert "I'm glad you told me" in card
    assert card.count("findahelpline.com") == 1
    real_chat.open_help("your local emergency number")
    page.keyboard.press("Escape")

    real_chat.send("x" * 5000)
    page.locator(".trouble", has_text="too long for the server").wait_for()
    real_chat.act("undo")
    assert len(real_chat.exchanges) == 3
