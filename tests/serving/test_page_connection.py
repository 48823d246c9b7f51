"""The chat page under bad conditions: cut connections, reloads, no network, a busy server, a key. Nothing gets lost."""

# ruff: noqa: F401, F811 (a fixture is imported, and named by the tests that use it)
from __future__ import annotations

import pytest
from chat_page import ChatPage, browser, chat, open_page, serve_app


def test_a_reload_in_mid_stream_asks_again_and_doubles_nothing(chat: ChatPage) -> None:
    page = chat.open()
    first = chat.say("one")
    chat.api.next.append("hold")
    chat.send("two")
    page.locator(".growing", has_text="I hear you:").wait_for()
    stored = chat.exchanges[1]
    assert (stored["state"], stored["reply"]) == ("pending", None)  # a partial reply is never stored
    page.reload()
    chat.wait_for_reply(2)
    _, before, after = chat.api.asked
    assert after == before  # the same messages and seed give the same reply
    assert chat.texts == ["one", first, "two", f"I hear you: two ({before['seed']})"]


@pytest.mark.parametrize("way", ["cut", "short"])
def test_a_broken_connection_in_mid_stream_asks_again_and_doubles_nothing(chat: ChatPage, way: str) -> None:
    chat.open()
    chat.api.next.append(way)
    chat.send("hello")
    chat.wait_for_reply(1)
    first, second = chat.api.asked
    assert first == second
    assert chat.texts == ["hello", f"I hear you: hello ({first['seed']})"]


def test_a_server_that_fails_is_said_and_can_be_asked_again(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.next.extend(["broken", "broken"])
    chat.send("hello")
    page.locator(".trouble", has_text="Something went wrong on the server").wait_for()
    assert chat.exchanges[0]["state"] == "failed"
    chat.reload()
    chat.act("ask")
    chat.wait_for_reply(1)
    assert len({body["seed"] for body in chat.api.asked}) == 1
    assert len(chat.texts) == 2


def test_what_the_server_refuses_is_told_and_does_not_spoil_what_follows(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.next.append("refused")
    chat.send("much too long")
    page.locator(".trouble", has_text=chat.api.refusal).wait_for()
    chat.say("short")
    assert chat.api.asked[-1]["messages"] == [{"role": "user", "content": "short"}]


def test_a_message_without_a_reply_is_read_with_the_next_one(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.next.extend(["broken", "broken"])
    chat.send("one")
    page.locator(".trouble").wait_for()
    chat.send("two")
    chat.wait_for_reply(2)
    assert chat.api.asked[-1]["messages"] == [{"role": "user", "content": "one\ntwo"}]


def test_a_busy_server_is_waited_for(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.next.append("busy")
    chat.send("hello")
    page.locator(".waiting", has_text="Trying again in 1 s").wait_for()
    chat.wait_for_reply(1)
    assert len(chat.api.asked) == 2
    assert len(chat.texts) == 2


def test_waiting_for_a_busy_server_can_be_stopped(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.next.append("busy")
    chat.send("hello")
    page.locator(".waiting").wait_for()
    page.keyboard.press("Escape")
    chat.wait_for_value("#message", "hello")
    assert chat.exchanges == []


def test_another_reply_that_does_not_come_leaves_the_first(chat: ChatPage) -> None:
    page = chat.open()
    first = chat.say("hello")
    chat.api.next.extend(["broken", "broken"])
    chat.act("retry")
    page.locator("#notice", has_text="the earlier one stays").wait_for()
    assert chat.texts == ["hello", first]


def test_candidates_that_cannot_be_found_can_be_asked_for_again(chat: ChatPage) -> None:
    page = chat.open()
    chat.say("hello")
    chat.last(".why summary").click()
    chat.api.next.append("broken")
    chat.last(".why-body button").click()
    page.locator("#notice", has_text="could not be found out").wait_for()
    chat.last(".why-body button").click()
    chat.last(".others").filter(has_text="That must be hard.").wait_for()


def test_without_a_network_a_message_waits_and_is_sent_once_when_it_is_back(chat: ChatPage) -> None:
    page = chat.open()
    chat.open_help("988")  # from now on the browser knows the files
    page.keyboard.press("Escape")
    page.context.set_offline(True)
    page.locator("#notice", has_text="You are offline").wait_for()
    chat.send("hello")
    page.locator(".waiting", has_text="will be sent as soon as you are back").wait_for()
    chat.open_help("988")
    page.keyboard.press("Escape")
    page.context.set_offline(False)
    chat.wait_for_reply(1)
    assert chat.api.said == ["hello"]
    assert not page.is_visible("#notice")


def test_the_page_asks_for_the_key_and_tells_a_wrong_one(chat: ChatPage) -> None:
    chat.api.key = "sesame"
    page = chat.open(ready=False)
    page.locator("#key-dialog").wait_for()
    for key in ("wrong", "schlüssel"):  # the second cannot even be sent
        page.fill("#key", key)
        page.press("#key", "Enter")
        page.locator("#key-problem").wait_for()
        assert page.input_value("#key") == ""
    page.fill("#key", "sesame")
    page.press("#key", "Enter")
    chat.wait_until_ready()
    assert not page.is_visible("#key-dialog")
    chat.say("hello")
    chat.reload()  # the tab still remembers it
    assert not page.is_visible("#key-dialog")
    assert page.evaluate("Object.values(localStorage).some(value => value.includes('sesame'))") is False


def test_a_key_that_is_needed_later_is_asked_for_and_the_message_kept(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.key = "sesame"
    chat.send("hello")
    page.locator("#key-dialog").wait_for()
    page.locator("#key-dialog [data-close]").click()
    page.locator(".trouble", has_text="needs a key").wait_for()
    chat.act("ask")
    page.fill("#key", "sesame")
    page.press("#key", "Enter")
    chat.wait_for_reply(1)
    assert chat.api.said == ["hello"]


def test_two_tabs_share_one_conversation_and_ask_once(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.next.append("hold")
    chat.send("hello")
    page.locator(".growing", has_text="I hear you:").wait_for()
    other = page.context.new_page()
    other.goto(chat.url)
    other.locator(".waiting", has_text="another tab").wait_for()
    chat.api.release.set()
    chat.wait_for_reply(1)
    other.locator("[data-state=done]").wait_for()
    assert other.locator(".reply .text").inner_text() == chat.texts[1]
    assert len(chat.api.asked) == 1
    other.fill("#message", "and again")
    other.press("#message", "Enter")
    chat.wait_for_reply(2)  # in the first tab
    assert len(chat.exchanges) == 2


LATE = """
const read = Storage.prototype.getItem, shown = {};
Storage.prototype.getItem = function (key) {
  const value = read.call(this, key), last = shown[key];
  if (!last || last.value === value) { shown[key] = { value }; return value; }
  last.since ??= performance.now();
  if (performance.now() - last.since < 200) return last.value;
  shown[key] = { value };
  return value;
};
"""
"""What is stored elsewhere is seen 200 milliseconds after it was first looked for."""


def test_a_tab_that_sees_late_what_another_one_stored_does_not_ask_again(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.next.append("hold")
    chat.send("hello")
    page.locator(".growing", has_text="I hear you:").wait_for()
    other = page.context.new_page()
    other.add_init_script(LATE)
    other.goto(chat.url)
    other.locator(".waiting", has_text="another tab").wait_for()
    chat.api.release.set()
    chat.wait_for_reply(1)
    other.locator("[data-state=done]").wait_for()
    assert len(chat.api.asked) == 1


def test_a_stored_conversation_that_cannot_be_read_is_put_aside(chat: ChatPage) -> None:
    page = chat.open()
    page.evaluate("localStorage.setItem('listenwell.conversation', '{\"version\": 99}')")
    chat.reload()
    chat.say("hello")
    assert page.evaluate("localStorage.getItem('listenwell.conversation.unreadable')") == '{"version": 99}'


def test_a_browser_that_stores_nothing_can_talk_too(chat: ChatPage) -> None:
    page = chat.open()
    page.add_init_script("Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError') }")
    chat.reload()
    chat.send("hello")
    chat.wait_for_reply(1)
    chat.send("again")
    chat.wait_for_reply(2)
    assert len(chat.api.asked[-1]["messages"]) == 3
    assert "ends when you close the tab" in page.inner_text("#notice")


def test_a_server_that_is_away_at_the_start_is_said(chat: ChatPage) -> None:
    page = chat.open()
    page.route("**/v1/models", lambda route: route.abort())
    page.reload()
    page.locator("#notice", has_text="cannot be reached").wait_for()
    page.unroute("**/v1/models")
    page.locator("#notice button").click()
    chat.wait_until_ready()
    chat.say("hello")
