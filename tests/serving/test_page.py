"""The chat page in a real browser: a conversation, and every control."""

# ruff: noqa: F401, F811 (a fixture is imported, and named by the tests that use it)
from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_page import ChatPage, browser, chat, open_page, serve_app
from fake_api import PAGE, STATIC, model

from browser_fixtures import accessibility_problems, overflows
from listenwell.data.sources import jsonl


def test_a_whole_conversation(chat: ChatPage) -> None:
    chat.open()
    assert "not with a person" in chat.page.inner_text("#welcome")
    first = chat.say("I moved to a new city")
    second = chat.say("and I know nobody")
    assert first.startswith("I hear you: I moved to a new city (")
    assert chat.texts == ["I moved to a new city", first, "and I know nobody", second]
    assert chat.api.asked[1]["messages"] == [
        {"role": "user", "content": "I moved to a new city"},
        {"role": "assistant", "content": first},
        {"role": "user", "content": "and I know nobody"},
    ]
    assert chat.api.asked[1]["model"] == "house"
    assert chat.api.asked[1]["listenwell"] == {"explain": True}
    assert not chat.page.is_visible("#welcome")
    assert "is a program, not a person" in chat.page.inner_text(".disclosure")
    assert chat.page.evaluate("document.activeElement.id") == "message"


def test_a_reply_is_shown_while_it_is_written_and_told_to_a_screen_reader_once(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.next.append("hold")
    # Everything announced to a screen reader, in order.
    page.evaluate(
        "window.told = []; new MutationObserver(() => told.push(document.querySelector('#announcer').textContent))"
        ".observe(document.querySelector('#announcer'), {childList: true, characterData: true, subtree: true})"
    )
    chat.send("hello")
    chat.wait_for_text(".growing", "I hear you:")
    assert page.is_visible("#stop")
    assert not page.is_visible("#send")
    assert page.locator(".reply").get_attribute("aria-busy") == "true"
    chat.api.release.set()
    chat.wait_for_reply(1)
    reply = chat.texts[1]
    assert page.evaluate("told") == ["listenwell is writing.", f"listenwell: {reply}"]


def test_what_stands_behind_a_reply_is_there_on_demand(chat: ChatPage) -> None:
    chat.open()
    chat.say("nobody called")
    summary = chat.last(".why summary")
    assert summary.inner_text() == "heard: lonely · plan: consoling"
    assert not chat.last(".why-body").is_visible()
    summary.click()
    chat.last(".why-body button").click()  # a streamed reply had no other candidates
    chat.last(".others").wait_for()
    assert chat.page.evaluate("document.activeElement === document.querySelector('.why summary')")
    first, second = chat.api.asked
    assert second == {**first, "listenwell": {"mode": "rerank", "explain": True}}
    shown = chat.last(".why-body").inner_text()
    for part in (
        "62 %",
        "consoling (48 %) — comforts you",
        "questioning\n31 %",
        "Tell me more about it.",
        "How nice! (cheers at bad news)",
        "lonely → … → sad",
        "consoles where somebody is alone",
        "Written by house",
    ):
        assert part in shown
    assert "proud" not in shown  # the four most likely are enough
    assert shown.count("How nice!") == 1


def test_intent_and_positivity_are_asked_of_a_model_that_takes_them(chat: ChatPage) -> None:
    page = chat.open()
    page.click("#options summary")
    page.select_option("#intent", "consoling")
    assert page.inner_text("#intent-about") == "comforts you, and hopes for better"
    page.check("#positivity-on")
    page.locator("#positivity").fill("0.8")
    assert page.inner_text("#options-summary") == "house · consoling · bright side 80 %"
    chat.say("hello")
    assert chat.api.asked[-1]["listenwell"] == {"intent": "consoling", "positivity": 0.8, "explain": True}
    assert not page.is_visible(".options")  # it is collapsed again
    chat.reload()
    chat.say("hello again")
    assert chat.api.asked[-1]["listenwell"]["intent"] == "consoling"
    page.click("#options summary")
    page.uncheck("#positivity-on")
    page.select_option("#intent", "")
    chat.say("and now")
    assert chat.api.asked[-1]["listenwell"] == {"explain": True}


def test_the_best_of_several_replies_can_be_asked_for(chat: ChatPage) -> None:
    page = chat.open()
    page.click("#options summary")
    page.check("#several")
    assert page.inner_text("#options-summary") == "house · best of several"
    chat.say("hello")
    assert chat.api.asked[-1]["listenwell"] == {"mode": "rerank", "explain": True}
    chat.last(".why summary").click()
    assert "Tell me more about it." in chat.last(".why-body").inner_text()


def test_another_model_replies_and_is_asked_only_for_what_it_takes(chat: ChatPage) -> None:
    page = chat.open()
    page.click("#options summary")
    page.select_option("#intent", "wishing")
    page.select_option("#model", "mime")
    assert "Mimics your emotion. Speaks English." in page.inner_text("#model-about")
    assert not page.is_visible("#intent")
    assert not page.is_visible("#positivity")
    chat.say("hello")
    assert (chat.api.asked[-1]["model"], chat.api.asked[-1]["listenwell"]) == ("mime", {"explain": True})
    chat.reload()
    assert page.input_value("#model") == "mime"


def test_another_reply_replaces_the_last_and_keeps_it_at_hand(chat: ChatPage) -> None:
    chat.open()
    first = chat.say("hello")
    chat.act("retry")
    seed = chat.api.asked[0]["seed"] + 1
    chat.wait_for_text(".reply .text", f"I hear you: hello ({seed})")
    chat.wait_for_reply(1)
    assert chat.api.asked[1]["seed"] == seed
    assert len(chat.texts) == 2
    chat.last(".why summary").click()
    assert first in chat.last(".why-body").inner_text()


def test_where_a_model_has_no_other_words_the_reply_stays(chat: ChatPage) -> None:
    chat.open()
    chat.api.reply = "always the same"
    chat.say("hello")
    chat.act("retry")
    chat.page.get_by_text("It found no other words").wait_for()
    assert chat.texts == ["hello", "always the same"]
    assert [body.get("temperature") for body in chat.api.asked] == [None, None, 0.9]
    assert chat.exchanges[0]["earlier"] == []


def test_the_last_message_can_be_edited_and_the_editing_given_up(chat: ChatPage) -> None:
    page = chat.open()
    chat.say("I feel find")
    page.fill("#message", "a new thought")
    chat.act("edit")
    assert page.input_value("#message") == "I feel find"
    page.keyboard.press("Escape")
    assert page.input_value("#message") == "a new thought"
    chat.act("edit")
    chat.send("I feel fine")
    page.locator(".reply .text", has_text="I feel fine").wait_for()
    chat.wait_for_reply(1)
    assert [exchange["text"] for exchange in chat.exchanges] == ["I feel fine"]
    assert page.input_value("#message") == "a new thought"


def test_the_last_exchange_can_be_taken_back_and_put_back(chat: ChatPage) -> None:
    chat.open()
    chat.say("one")
    reply = chat.say("two")
    chat.act("undo")
    assert len(chat.texts) == 2
    chat.page.get_by_role("button", name="Put back").click()
    assert chat.texts[2:] == ["two", reply]
    assert chat.page.evaluate("document.activeElement.id") == "message"


def test_stop_keeps_what_was_said_so_far(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.next.append("hold")
    chat.send("hello")
    chat.wait_for_text(".growing", "I hear you:")
    page.keyboard.press("Escape")
    chat.wait_for_reply(1)
    assert chat.texts == ["hello", "I hear you:"]
    assert "You stopped this reply." in chat.last(".reply").inner_text()
    assert page.is_visible("#send")


def test_stop_before_the_first_word_gives_the_message_back(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.next.append("silent")
    chat.send("hello")
    page.click("#stop")
    chat.wait_for_value("#message", "hello")
    assert chat.exchanges == []
    assert page.is_visible("#welcome")


def test_enter_sends_and_shift_enter_begins_a_line(chat: ChatPage) -> None:
    page = chat.open()
    page.press("#message", "Enter")  # nothing to send
    page.locator("#message").press_sequentially("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.insert_text("two")
    # The Enter that ends the composition of a Chinese word must not send.
    page.evaluate(
        "document.querySelector('#message').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true}))"
    )
    assert chat.api.asked == []
    page.keyboard.press("Enter")
    chat.wait_for_reply(1)
    assert chat.api.said == ["one\ntwo"]


def test_the_keyboard_alone_reaches_everything(chat: ChatPage) -> None:
    page = chat.open()
    chat.say("hello")
    page.evaluate("document.querySelector('.skip').focus()")
    reached = ["skip"]
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("(e => e.id || e.dataset.action || e.className || e.tagName)(document.activeElement)")
        )
    wanted = ["help", "language", "theme", "menu-button", "retry", "edit", "undo", "message", "send"]
    assert [name for name in reached if name in wanted][: len(wanted)] == wanted
    page.focus("#menu-button")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "save-markdown"
    page.keyboard.press("Escape")
    assert not page.is_visible("#menu")


def test_the_conversation_can_be_saved(chat: ChatPage, tmp_path: Path) -> None:
    page = chat.open()
    chat.say("*hello*\n# there")
    files = {}
    for button in ("save-markdown", "save-json"):
        page.click("#menu-button")
        with page.expect_download() as download:
            page.click(f"#{button}")
        files[button] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[button])
    text = files["save-markdown"].read_text(encoding="utf-8")
    assert "> \\*hello\\*  \n> \\# there" in text
    assert "heard: lonely (62 %) · plan: consoling (48 %)" in text
    (dialogue,) = jsonl.read(files["save-json"])
    assert [turn.text for turn in dialogue.turns] == chat.texts
    assert dialogue.turns[1].label is not None
    assert dialogue.turns[1].label.name == "consoling"
    assert dialogue.source == "chat with house"
    details = json.loads(files["save-json"].read_text(encoding="utf-8"))["turns"][1]["details"]
    assert details["emotions"] == chat.api.details["emotions"]


def test_the_conversation_can_be_deleted_after_a_question(chat: ChatPage) -> None:
    page = chat.open()
    chat.say("hello")
    page.click("#menu-button")
    page.click("#delete")
    page.get_by_role("button", name="Keep it").click()
    assert len(chat.texts) == 2
    page.click("#menu-button")
    page.click("#delete")
    page.click("#delete-confirm")
    assert chat.exchanges == []
    assert page.is_visible("#welcome")
    assert page.evaluate("Object.values(localStorage).some(value => value.includes('hello'))") is False
    chat.reload()
    assert chat.texts == []


def test_a_conversation_deleted_in_mid_stream_does_not_come_back(chat: ChatPage) -> None:
    page = chat.open()
    chat.api.next.append("hold")
    chat.send("hello")
    chat.wait_for_text(".growing", "I hear you:")
    page.click("#menu-button")
    page.click("#delete")
    page.click("#delete-confirm")
    page.locator("#send").wait_for()
    assert chat.exchanges == []
    assert page.input_value("#message") == ""
    assert chat.texts == []


def test_a_draft_outlives_a_reload_and_a_starter_begins_one(chat: ChatPage) -> None:
    page = chat.open()
    page.get_by_role("button", name="I miss somebody").click()
    assert page.input_value("#message") == "I miss somebody"
    page.locator("#message").press_sequentially(", my")
    chat.reload()
    assert page.input_value("#message") == "I miss somebody, my"


def test_colours_follow_the_system_until_somebody_chooses(chat: ChatPage) -> None:
    page = chat.open(dark=True)
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.click("#theme")
    light = page.evaluate(background)
    assert light != dark
    chat.reload()
    assert page.evaluate(background) == light
    page.click("#theme")
    assert page.evaluate(background) == dark
    page.emulate_media(color_scheme="light")
    assert page.evaluate(background) == dark
    page.click("#theme")
    assert page.evaluate(background) == light


def test_the_page_speaks_chinese_where_the_browser_does(chat: ChatPage) -> None:
    page = chat.open(locale="zh-CN")
    assert page.inner_text("#welcome-title") == "今天想聊些什么？"
    assert page.get_attribute("html", "lang") == "zh-Hans"
    assert page.input_value("#model") == "strategy-memory"  # the one that speaks this language
    chat.say("你好")
    assert chat.last(".why summary").inner_text() == "听到：孤独 · 打算：安慰"
    chat.open_help("12356")
    page.keyboard.press("Escape")
    page.click("#language")
    assert chat.last(".why summary").inner_text() == "heard: lonely · plan: consoling"
    assert page.input_value("#model") == "strategy-memory"  # no other system takes over in the middle
    chat.reload()
    assert page.inner_text("#send") == "Send"


def test_who_cannot_read_the_language_of_the_page_says_so(chat: ChatPage) -> None:
    chat.api.models = [model("house")]
    page = chat.open(locale="zh-TW")
    assert page.inner_text("#speaks") == "house 只听得懂英语。"
    page.click("#language")
    assert not page.is_visible("#speaks")


def test_every_text_is_there_in_both_languages(chat: ChatPage) -> None:
    page = chat.open()
    used = page.evaluate(
        """async () => {
            const {t, setLanguage} = await import('/static/i18n.js');
            const loaded = performance.getEntriesByType('resource').map(entry => entry.name);
            const scripts = loaded.filter(name => name.endsWith('.js') && !name.endsWith('/i18n.js'));
            const code = (await Promise.all(scripts.map(async name => (await fetch(name)).text()))).join('\\n');
            const keys = [...code.matchAll(/\\bt\\("(\\w+)"/g)].map(match => match[1]);
            for (const name of ['text', 'label', 'placeholder'])
                for (const node of document.querySelectorAll(`[data-${name}]`)) keys.push(node.dataset[name]);
            const texts = {};
            for (const language of ['en', 'zh']) {
                setLanguage(language);
                texts[language] = Object.fromEntries(keys.map(key => [key, t(key)]));
            }
            return texts;
        }"""
    )
    assert len(used["en"]) > 60
    for key, english in used["en"].items():
        assert english is not None, key
        assert json.dumps(used["zh"][key]) != json.dumps(english), key


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_the_page_fits_and_axe_finds_nothing_serious(chat: ChatPage, width: int) -> None:
    chat.api.models.append(model("a-model-with-a-name-" + "long" * 20, about="word " * 60))
    page = chat.open(width=width, dark=width == 768)
    assert accessibility_problems(page) == []
    chat.say("hello " + "x" * 300)
    chat.last(".why summary").click()
    page.click("#options summary")
    page.check("#positivity-on")
    assert accessibility_problems(page) == []
    assert not overflows(page)
    page.keyboard.press("Escape")
    chat.say("crisis")
    assert not overflows(page)
    page.click("#help")
    assert accessibility_problems(page) == []
    page.keyboard.press("Escape")
    page.click("#language")
    assert accessibility_problems(page) == []
    assert not overflows(page)


def test_all_that_the_page_loads_is_under_100_kb(chat: ChatPage) -> None:
    page = chat.open()
    loaded = page.evaluate("performance.getEntriesByType('resource').map(entry => [entry.name, entry.decodedBodySize])")
    sizes = {name.rpartition("/static/")[2]: size for name, size in loaded if "/static/" in name}
    own = {path.name for path in STATIC[0].iterdir()}
    assert own | {"base.css", "theme.js"} <= set(sizes) | {"icon.svg"}  # nothing is shown that is not needed
    assert all(sizes.values())
    assert sum(sizes.values()) + PAGE.stat().st_size + (STATIC[0] / "icon.svg").stat().st_size < 100_000


def test_the_page_has_no_inline_code_and_makes_no_markup_of_text() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "style=" not in page
    assert "onclick" not in page
    for path in STATIC[0].glob("*.js"):
        script = path.read_text(encoding="utf-8")
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert forbidden not in script, path.name
