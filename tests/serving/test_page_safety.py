"""The chat page in a crisis, and against texts that try to be code."""

# ruff: noqa: F401, F811 (a fixture is imported, and named by the tests that use it)
from __future__ import annotations

from chat_page import ChatPage, browser, chat, open_page, serve_app
from fake_api import CARD, model

ATTACKS = (
    "<img src=x onerror=window.hacked=1>",
    "<script>window.hacked=1</script>",
    '"><svg onload=window.hacked=1>',
    "javascript:window.hacked=1",
    "[click](javascript:window.hacked=1)",
    "<a href='javascript:window.hacked=1'>988 evil.com</a>",
    "__proto__",
    "constructor",
)
ATTACK = " ".join(ATTACKS)


def hacked(chat: ChatPage) -> bool:
    """Whether any of it ran, or became an element or link that could."""
    return chat.page.evaluate(
        "window.hacked !== undefined || document.querySelector('#conversation img, #conversation script, "
        "#conversation svg, [onerror], [onload], a[href^=javascript], #resources img, #model img') !== null"
    )


def test_no_text_becomes_code_whatever_field_it_comes_in(chat: ChatPage) -> None:
    api = chat.api
    api.reply = "{said}" + ATTACK
    api.models = [
        model(name, languages=[name], takes_intent=True, intents=[*ATTACKS], takes_positivity=True, about=name)
        for name in ATTACKS
    ]
    api.details = {
        "emotion": {"name": ATTACK, "probability": 0.5},
        "emotions": dict.fromkeys(ATTACKS[:4], 0.2) | {"__proto__": 0.9, "x": ATTACK, "y": 7},
        "label": {"name": "constructor", "probability": ATTACK},
        "candidates": [*ATTACKS, {"text": ATTACK}, None, 3],
        "reasons": dict.fromkeys(ATTACKS, ATTACK) | {"list": [*ATTACKS, {"deep": {ATTACK: ATTACK}}]},
    }
    line = {"name": ATTACK, "contact": ATTACK, "note": ATTACK}
    api.resources = {key: {"emergency": ATTACK, "resources": [line, {"name": 3}, None]} for key in ("en", "zh")}
    page = chat.open()
    assert ATTACK in chat.say(ATTACK)
    chat.last(".why summary").click()
    chat.last(".why-body button").click()
    chat.last(".others").wait_for()
    assert ATTACKS[0] in chat.last(".why-body").inner_text()
    page.click("#options summary")
    for name in ATTACKS:
        page.select_option("#model", name)
        page.select_option("#intent", name)
    chat.say("crisis")
    chat.open_help(ATTACKS[0])
    assert page.locator("#resources a").evaluate_all("all => all.every(a => /^(https|tel):/.test(a.href))")
    page.keyboard.press("Escape")
    api.refusal = ATTACK
    api.next.append("refused")
    chat.send("x")
    page.locator(".trouble").wait_for()
    assert page.inner_text(".trouble") == ATTACK
    page.click("#language")
    assert not hacked(chat)
    chat.reload()
    assert not hacked(chat)
    assert len(chat.exchanges) == 3


def test_a_crisis_card_shows_who_can_help(chat: ChatPage) -> None:
    page = chat.open(width=360)
    chat.say("crisis")
    card = chat.last(".care")
    shown = card.inner_text()
    assert shown.startswith(CARD[:40])
    assert shown.count("988 Suicide & Crisis Lifeline") == 1  # in its place, not in addition
    assert shown.index("988") < shown.index("findahelpline.com") < shown.index("I am a program")
    assert card.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))") == [
        "tel:911",
        "tel:988",
        "https://findahelpline.com",
    ]
    assert chat.last("[data-action=retry]").count() == 0  # the text is fixed
    chat.last(".why summary").click()
    assert "no model wrote them" in chat.last(".why-body").inner_text()
    assert chat.announced.startswith("listenwell: I'm glad you told me")
    assert page.evaluate("document.querySelector('.care').getBoundingClientRect().top < innerHeight / 2")


def test_a_question_of_care_offers_everybody_who_can_help(chat: ChatPage) -> None:
    page = chat.open()
    chat.say("hint")
    assert "findahelpline" not in chat.last(".care").inner_text()
    chat.last(".care button").click()
    page.locator("#help-dialog", has_text="findahelpline.com").wait_for()


def test_a_sentence_about_languages_looks_like_any_other_reply(chat: ChatPage) -> None:
    chat.open()
    assert chat.say("bonjour") == "I understand English only."
    assert chat.last(".care").count() == 0


def test_help_is_one_click_away_from_the_start_even_without_a_server(chat: ChatPage) -> None:
    page = chat.open()
    chat.open_help("911")
    dialog = page.locator("#help-dialog")
    assert "call or text 988" in dialog.inner_text()
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert page.evaluate("document.activeElement.id") == "help"
    page.route("**/v1/**", lambda route: route.abort())
    page.evaluate("localStorage.clear()")
    page.reload()
    chat.open_help("your local emergency number")
