"""Each kind of question in a real browser: by mouse, by touch, by keyboard alone, and for screen readers."""

# ruff: noqa: F811 (fixtures are imported, and asked for by name)
from __future__ import annotations

from typing import Any

import pytest
from fake_study import TEMPLATES, FakeStudy
from study_examples import CHINESE_CONTEXT, CHINESE_REPLIES, STUDIES, item, study
from study_pages import CODE, NEXT, announced, begin, group, next_item, rate_all, serve_study  # noqa: F401

from browser_fixtures import accessibility_problems, browser, open_page, overflows  # noqa: F401

EXPECTED = {"A": ["good", "okay"], "B": ["bad"], "C": ["good", "okay"], "D": ["good", "okay"]}


def test_a_likert_study_from_welcome_to_code(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("likert")
    page = open_page(fake.url)
    assert page.locator("h1").text_content() == fake.study["title"]
    begin(page)
    assert page.locator("h1").text_content() == "Item 1 of 2"
    assert page.locator(".turn").count() == 3
    assert page.locator(".anchors").first.inner_text().split() == ["none", "best"]
    for place, point in enumerate([4, 3, 2, 1, 0, 4]):
        page.locator("fieldset").nth(place).locator("input").nth(point).check()
    next_item(page)
    assert page.locator("#progress-text").text_content() == "1 of 2 done"
    rate_all(page, [0])
    next_item(page)
    assert page.locator(CODE).text_content() == fake.completion_code
    assert fake.values() == {
        "i1": {
            "A": {"empathy": 5, "relevance": 4, "fluency": 3},
            "B": {"empathy": 2, "relevance": 1, "fluency": 5},
        },
        "i2": dict.fromkeys("AB", dict.fromkeys(["empathy", "relevance", "fluency"], 1)),
    }


def test_of_two_replies_one_is_better_or_none(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab", items=4)
    page = open_page(fake.url, width=360)
    begin(page)
    choices = ["left", "right", "tie", "both-bad"]
    for choice in choices:
        page.locator(f"input[value={choice}]").check()
        next_item(page)
    page.locator(CODE).wait_for()
    assert [values["choice"] for values in fake.values().values()] == choices


def test_a_study_may_leave_out_both_bad(serve_study: Any, open_page: Any) -> None:
    page = open_page(serve_study("ab", choices=["left", "right", "tie"]).url)
    begin(page)
    assert [one.get_attribute("value") for one in page.locator(".item input").all()] == ["left", "right", "tie"]


def test_the_emotion_fits_or_not(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("emotion", items=1)
    page = open_page(fake.url)
    begin(page)
    assert page.locator(".emotion-name b").first.text_content() == "disappointed"
    page.locator("fieldset").nth(0).get_by_role("radio", name="Yes").check()
    page.locator("fieldset").nth(1).get_by_role("radio", name="No").check()
    next_item(page)
    assert fake.values() == {"i1": {"A": 1, "B": 0}}


def test_an_emotion_can_be_picked_by_name(open_page: Any) -> None:
    picking = item(1, 2, emotion_choices=["afraid", "joyful", "sad"])
    fake = FakeStudy(study("emotion"), [[picking]]).start()
    page = open_page(fake.url)
    begin(page)
    rate_all(page, [1, 2])
    next_item(page)
    fake.close()
    assert fake.values() == {"i1": {"A": "joyful", "B": "sad"}}


def drag(page: Any, card: int, place: str, release: bool = True) -> None:
    card_at = page.locator(".card").nth(card).bounding_box()
    zone_at = page.locator(f".zones [data-place={place}]").bounding_box()
    page.mouse.move(card_at["x"] + 40, card_at["y"] + 20)
    page.mouse.down()
    page.mouse.move(zone_at["x"] + 60, zone_at["y"] + 30, steps=4)
    if release:
        page.mouse.up()


def test_replies_are_dragged_by_mouse_and_an_escape_cancels(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("drag", items=1)
    page = open_page(fake.url, width=1440, height=900)
    begin(page)
    drag(page, 1, "okay", release=False)
    assert page.locator(".zone.over").get_attribute("data-place") == "okay"
    page.keyboard.press("Escape")
    page.mouse.up()
    assert page.locator(".tray .card").count() == 4
    drag(page, 0, "good")
    assert announced(page) == "Reply A is now in Good. 3 replies left to sort."
    for place in ("okay", "bad", "bad"):
        drag(page, 0, place)  # the first one still in the tray
    assert announced(page) == "Reply D is now in Bad. All replies are sorted."
    assert page.locator(".is-bad .card").count() == 2
    next_item(page)
    assert fake.values() == {"i1": {"A": "good", "B": "okay", "C": "bad", "D": "bad"}}


def test_a_finger_drags_at_the_handle_onto_targets_that_appear(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("drag", items=1)
    page = open_page(fake.url, width=360, height=740, has_touch=True, is_mobile=True)
    begin(page)
    page.locator(".card").nth(0).scroll_into_view_if_needed()
    handle = page.locator(".card .handle").nth(0).bounding_box()
    start = {"x": handle["x"] + 20, "y": handle["y"] + 20}
    touch = page.context.new_cdp_session(page)

    def send(kind: str, *points: dict[str, float]) -> None:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    send("touchStart", start)
    send("touchMove", {"x": start["x"] - 30, "y": start["y"] + 30})
    dock = page.locator(".dock [data-place=bad]").bounding_box()
    send("touchMove", {"x": dock["x"] + dock["width"] / 2, "y": dock["y"] + dock["height"] / 2})
    assert page.locator(".dock .over").get_attribute("data-place") == "bad"
    send("touchEnd")
    assert page.locator(".zones .is-bad .card").count() == 1
    assert page.locator(".dock").count() == 0
    for _ in range(3):
        page.locator(".tray .to-good").first.tap()  # a tap works too
    next_item(page)
    assert fake.values() == {"i1": {"A": "bad", "B": "good", "C": "good", "D": "good"}}


KEYS = {
    "likert": (["5", "Tab", "ArrowRight", "Tab", "2", "Tab", "3", "Tab", "4", "Tab", "1", "Tab"], {
        "A": {"empathy": 5, "relevance": 2, "fluency": 2},
        "B": {"empathy": 3, "relevance": 4, "fluency": 1},
    }),
    "ab": (["ArrowDown", "ArrowDown", "Tab"], {"choice": "tie"}),
    "drag": (["3", "ArrowLeft", "Tab"], {"A": "okay"}),
    "emotion": (["Space", "Tab", "0", "Tab"], {"A": 1, "B": 0}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_the_keyboard_alone_is_enough(serve_study: Any, open_page: Any, kind: str) -> None:
    fake = serve_study(kind, items=1)
    if kind == "drag":
        del fake.tasks[0]["items"][0]["replies"][1:]
    page = open_page(fake.url)
    page.locator("#main .button").wait_for()
    press = page.keyboard.press
    for _ in ("welcome", "instructions"):
        press("Tab")
        press("Enter")
    page.locator(".item").wait_for()
    press("Tab")
    keys, values = KEYS[kind]
    for key in keys:
        press(key)
    assert page.evaluate("document.activeElement.id") == "next"
    press("Enter")
    page.locator(CODE).wait_for()
    assert fake.values() == {"i1": values}


def test_a_card_keeps_the_focus_while_the_keyboard_moves_it(serve_study: Any, open_page: Any) -> None:
    page = open_page(serve_study("drag").url)
    begin(page)
    page.keyboard.press("Tab")
    for key, place in [("ArrowRight", "good"), ("ArrowRight", "okay"), ("ArrowRight", "bad"), ("ArrowRight", "bad")]:
        page.keyboard.press(key)
        focused = page.evaluate("document.activeElement.closest('[data-place]').dataset.place")
        assert focused == page.evaluate("document.activeElement.value") == place
    assert announced(page) == "Reply A is now in Bad. 3 replies left to sort."
    assert "That emptiness" in page.locator(".is-bad legend").text_content()


@pytest.mark.parametrize("name", STUDIES)
def test_every_form_is_accessible_on_a_phone_in_light_and_dark(serve_study: Any, open_page: Any, name: str) -> None:
    page = open_page(serve_study(name).url, width=360, height=740)
    begin(page)
    rate_all(page, [0])
    page.locator("input").first.focus()
    assert not overflows(page)
    assert accessibility_problems(page) == []
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("axe.run({ runOnly: ['color-contrast'] }).then((found) => found.violations)") == []


def test_the_pages_around_the_items_are_accessible(serve_study: Any, open_page: Any) -> None:
    page = open_page(serve_study("likert-long", items=1).url, width=360)
    page.locator("#main .button").wait_for()
    assert accessibility_problems(page) == []
    page.locator("#main .button").click()
    assert accessibility_problems(page) == []
    page.locator("#main .button").click()
    page.get_by_role("button", name="Instructions").click()
    assert accessibility_problems(page) == []
    page.keyboard.press("Escape")
    page.locator(NEXT).click()  # nothing is selected: every question is marked
    assert page.locator(".missing").count() == 6
    assert accessibility_problems(page) == []
    rate_all(page, [2])
    next_item(page)
    page.locator(CODE).wait_for()
    assert accessibility_problems(page) == []
    assert not overflows(page)


def test_what_is_missing_is_pointed_out_and_nothing_is_sent(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("likert")
    page = open_page(fake.url, width=360)
    begin(page)
    page.locator("fieldset").nth(0).locator("input").nth(2).check()
    page.locator(NEXT).click()
    assert page.locator(".missing").count() == 5
    assert announced(page) == "Still open: 5 ratings."
    assert page.evaluate("document.activeElement.name") == "i1/A/relevance"
    page.keyboard.press("4")
    assert page.locator(".missing").count() == 4
    assert fake.deliveries == []


def test_long_anchors_stand_once_per_scale_and_are_heard_with_each_number(serve_study: Any, open_page: Any) -> None:
    page = open_page(serve_study("likert-long").url)
    begin(page)
    assert page.locator(".scale-card").count() == 3
    assert page.locator(".scale-card .meanings").first.locator("dd").count() == 5
    assert page.get_by_role("radio", name="3 – A valid response that only satisfies").count() == 2


def test_a_practice_item_gives_feedback_and_counts_for_nothing(serve_study: Any, open_page: Any) -> None:
    practice = item(9, 4, id="practice-1", expected=EXPECTED)
    fake = serve_study("drag", items=1, practice=practice)
    page = open_page(fake.url)
    page.locator("#main .button").click()
    assert page.locator("#main .button").text_content() == "Try a practice item"
    page.locator("#main .button").click()
    rate_all(page, [0])
    page.locator(NEXT).click()
    assert page.locator(".feedback.right").count() == 3
    assert page.locator(".card", has=page.locator(".feedback.wrong")).locator(".reply-name").text_content() == "Reply B"
    group(page, "Reply B").locator("input").nth(2).check()
    next_item(page)
    assert page.locator("h1").text_content() == "That was the practice"
    page.locator("#main .button").click()
    assert page.locator("h1").text_content() == "Item 1 of 1"
    assert fake.values() == {"practice-1": {"A": "good", "B": "bad", "C": "good", "D": "good"}}


def test_between_two_sets_there_is_a_pause_with_the_code(open_page: Any) -> None:
    fake = FakeStudy(STUDIES["ab"][0], [[item(1, 2)], [item(2, 2)]]).start()
    fake.code_after_each_task = True
    page = open_page(fake.url)
    begin(page)
    rate_all(page, [0])
    next_item(page)
    assert page.locator("h1").text_content() == "One set is finished"
    assert page.locator(CODE).text_content() == fake.completion_code
    page.get_by_role("button", name="Continue rating").click()
    rate_all(page, [1])
    next_item(page)
    assert page.locator("h1").text_content() == "Thank you"
    fake.close()
    assert fake.values() == {"i1": {"choice": "left"}, "i2": {"choice": "right"}}


def test_a_chinese_study_has_a_chinese_interface(open_page: Any) -> None:
    chinese = STUDIES["drag"][0] | {"language": "zh-CN", "title": "谁更会倾听？", "welcome": ["感谢您的参与。"]}
    fake = FakeStudy(chinese, [[item(1, 2, (CHINESE_CONTEXT, CHINESE_REPLIES))]]).start()
    page = open_page(fake.url, width=360)
    begin(page)
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    assert page.locator(".zones h2").all_text_contents() == ["好 ", "一般 ", "差 "]
    rate_all(page, [0])
    assert announced(page) == "回复 B：已归入“好”。所有回复均已归类。"
    assert not overflows(page)
    next_item(page)
    page.locator(CODE).wait_for()
    fake.close()


def test_the_code_can_be_copied_or_is_at_least_selected(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab", items=1)
    page = open_page(fake.url)
    begin(page)
    rate_all(page, [0])
    next_item(page)
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')) }")
    page.get_by_role("button", name="Copy").click()
    assert page.evaluate("getSelection().toString()") == fake.completion_code
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { globalThis.copied = text } }")
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("globalThis.copied") == fake.completion_code


def test_both_languages_say_everything(serve_study: Any, open_page: Any) -> None:
    page = open_page(serve_study("ab").url)
    shapes = page.evaluate("""async () => {
        const { LANGUAGES } = await import("/static/strings.js");
        const shape = (value) => typeof value === "object" ? Object.keys(value).sort() : typeof value;
        return Object.values(LANGUAGES).map((all) => Object.keys(all).sort().map((key) => [key, shape(all[key])]));
    }""")
    assert shapes[0] == shapes[1]


def test_no_text_becomes_markup(open_page: Any) -> None:
    def bomb(place: str) -> str:
        return f"<img src=x onerror=alert(1)> {place} <script>alert(2)</script>"

    scale = {"key": "k", "name": bomb("name"), "question": bomb("question"), "min": 1, "max": 3}
    hostile = study("likert", title=bomb("title"), welcome=[bomb("welcome")], instructions=[bomb("instructions")])
    hostile["scales"] = [scale | {"anchors": {"1": bomb("one"), "3": "best"}}]
    fake = FakeStudy(hostile, [[item(1, 1, ([bomb("turn")], [bomb("reply")]), reference=bomb("reference"))]]).start()
    fake.completion_code = bomb("code")
    page = open_page(fake.url)
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    page.locator("h1", has_text="title").wait_for()
    assert page.locator("h1").text_content() == bomb("title")
    begin(page)
    assert page.locator(".bubble").text_content() == bomb("turn")
    assert page.locator(".reference blockquote").text_content() == bomb("reference")
    rate_all(page, [0])
    next_item(page)
    assert page.locator(CODE).text_content() == bomb("code")
    assert page.locator("img, body script").count() == 0
    fake.close()


def test_a_link_that_leads_nowhere_says_so(serve_study: Any, open_page: Any) -> None:
    folder = serve_study("ab").url.rsplit("/", 1)[0]
    page = open_page(f"{folder}/unknown", width=360)
    assert page.locator("h1").text_content() == "This link does not work"
    assert accessibility_problems(page) == []
    for message, title in {"closed": "This study is closed", "used-up": "This link has been used"}.items():
        page.goto(f"{folder}/{message}")
        assert page.locator("h1").text_content() == title


def test_such_a_page_speaks_the_language_of_the_study_and_may_show_the_code() -> None:
    message = TEMPLATES.get_template("message.html")
    page = message.render(message="used-up", language="zh-CN", completion_code="<b>WARM</b>")
    assert '<html lang="zh">' in page
    assert "此链接已用完" in page
    assert "&lt;b&gt;WARM&lt;/b&gt;" in page


def test_a_long_conversation_scrolls_beside_the_replies_and_the_keyboard_reaches_it(open_page: Any) -> None:
    turns = [f"Turn {number}: and then something else happened that I want to tell you about." for number in range(14)]
    fake = FakeStudy(STUDIES["ab"][0], [[item(1, 2, (turns, ["Oh.", "Tell me more."]))]]).start()
    page = open_page(fake.url, width=1440, height=700)
    begin(page)
    page.keyboard.press("Tab")
    assert "conversation" in page.evaluate("document.activeElement.className")
    assert page.locator(".side").first.is_visible()
    assert accessibility_problems(page) == []
    page.set_viewport_size({"width": 700, "height": 700})  # one column: the page itself scrolls
    page.locator(".conversation:not([tabindex])").wait_for()
    fake.close()
