"""No rating is lost: despite cut connections, lost acknowledgements, restarts, reloads, or no network."""

# ruff: noqa: F811 (fixtures are imported, and asked for by name)
from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from fake_study import TOKEN
from study_pages import CODE, NEXT, begin, next_item, rate_all, saved, serve_study  # noqa: F401

from browser_fixtures import accessibility_problems, browser, open_page  # noqa: F401

KEPT = f"Object.keys(localStorage).filter((key) => key.startsWith('listenwell-study:{TOKEN}:answer:')).length"


def failing(page: Any) -> None:
    page.locator("#saved[data-state=failing]").wait_for()


def try_now(page: Any) -> None:
    page.get_by_role("button", name="Try now").click()


@pytest.mark.parametrize("fault", ["cut", "lose-ack", "error"])
def test_an_answer_is_sent_again_under_its_id_until_it_is_acknowledged(
    serve_study: Any, open_page: Any, fault: str
) -> None:
    fake = serve_study("ab", items=1)
    fake.faults.extend([fault, fault])
    page = open_page(fake.url)
    begin(page)
    rate_all(page, [1])
    next_item(page)
    page.locator(CODE).wait_for()
    assert fake.values() == {"i1": {"choice": "right"}}
    assert len({one for delivery in fake.deliveries for one in delivery}) == 1
    assert len(fake.deliveries) == 3


def test_rating_goes_on_while_the_server_is_away(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("likert", items=3)
    page = open_page(fake.url, width=360)
    begin(page)
    fake.stop()
    for choice in (0, 1):
        rate_all(page, [choice])
        next_item(page)
    failing(page)
    assert page.locator("#saved").text_content() == "2 answers waiting"
    assert "Your answers are safe on this device" in page.locator("#notice").text_content()
    assert accessibility_problems(page) == []
    rate_all(page, [2])
    page.locator(NEXT).click()
    page.get_by_role("heading", name="Saving your answers").wait_for()
    fake.faults.append("partial")  # at first only one of the three
    fake.start()
    try_now(page)
    page.locator(CODE).wait_for()
    assert [values["A"]["empathy"] for values in fake.values().values()] == [1, 2, 3]
    assert not page.locator("#notice").is_visible()
    assert page.evaluate(KEPT) == 0


def test_a_reload_restores_the_item_the_draft_and_its_time(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("likert", items=2)
    page = open_page(fake.url)
    page.clock.install()
    begin(page)
    rate_all(page, [4])
    next_item(page)
    page.locator("fieldset").nth(1).locator("input").nth(3).check()
    page.clock.run_for(7_000)
    page.reload()
    page.locator(".item").wait_for()
    assert page.locator("h1").text_content() == "Item 2 of 2"
    chosen = page.locator("input:checked")
    assert (chosen.count(), chosen.get_attribute("name"), chosen.input_value()) == (1, "i2/A/relevance", "4")
    rate_all(page, [0])
    next_item(page)
    page.locator(CODE).wait_for()
    assert {answer["item"]: answer["seconds"] >= 7 for answer in fake.answers.values()} == {"i1": False, "i2": True}


def test_a_reload_restores_cards_to_where_they_were_put(serve_study: Any, open_page: Any) -> None:
    page = open_page(serve_study("drag").url)
    begin(page)
    rate_all(page, [2, 0])
    page.reload()
    page.locator(".item").wait_for()
    names = [zone.locator(".card .reply-name").all_text_contents() for zone in page.locator(".zones .zone").all()]
    assert names == [["Reply B", "Reply D"], [], ["Reply A", "Reply C"]]
    assert page.locator("#counter").text_content() == "4 of 4 answered"


def test_answers_that_wait_survive_a_reload_and_are_not_asked_again(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab", items=3)
    page = open_page(fake.url)
    begin(page)
    fake.faults.extend(["error"] * 100)
    rate_all(page, [0])
    next_item(page)
    failing(page)
    page.reload()
    page.locator(".item").wait_for()
    assert page.locator("h1").text_content() == "Item 2 of 3"
    failing(page)
    fake.faults.clear()
    try_now(page)
    saved(page)
    assert fake.values() == {"i1": {"choice": "left"}}
    assert len({one for delivery in fake.deliveries for one in delivery}) == 1


def test_time_counts_only_while_the_page_is_visible(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab", items=1)
    page = open_page(fake.url)
    page.clock.install()
    begin(page)
    show = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.clock.run_for(3_000)
    page.evaluate(show, True)
    page.clock.run_for(600_000)
    page.evaluate(show, False)
    page.clock.run_for(4_000)
    rate_all(page, [0])
    next_item(page)
    page.locator(CODE).wait_for()
    (answer,) = fake.answers.values()
    assert 7 <= answer["seconds"] < 600


def test_offline_is_said_and_the_end_of_it_sends_at_once(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("emotion", items=2)
    page = open_page(fake.url)
    begin(page)
    page.context.set_offline(True)
    page.locator("#notice").wait_for()
    rate_all(page, [0])
    next_item(page)
    failing(page)
    page.context.set_offline(False)
    saved(page)
    assert fake.values() == {"i1": {"A": 1, "B": 1}}
    assert not page.locator("#notice").is_visible()


def test_a_refused_answer_is_kept_and_holds_no_other_back(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab", items=3)
    page = open_page(fake.url)
    begin(page)
    fake.stop()
    for choice in (0, 1):
        rate_all(page, [choice])
        next_item(page)
    failing(page)
    fake.faults.append("refuse")
    fake.start()
    try_now(page)
    refusal = "The server did not accept 1 answer (one of the values is out of range)"
    page.locator("#notice").get_by_text(refusal).wait_for()
    assert fake.values() == {"i2": {"choice": "right"}}
    with page.expect_download() as download:
        page.get_by_role("button", name="Download these answers").click()
    kept = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert [answer["values"] for answer in kept] == [{"choice": "left"}]
    try_now(page)  # the server accepts it now
    saved(page)
    assert fake.values() == {"i1": {"choice": "left"}, "i2": {"choice": "right"}}


def test_a_server_that_lost_acknowledged_answers_gets_them_again(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab", items=2)
    page = open_page(fake.url)
    begin(page)
    rate_all(page, [0])
    next_item(page)
    saved(page)
    fake.answers.clear()  # as after restoring a backup
    rate_all(page, [1])
    next_item(page)
    page.locator(CODE).wait_for()
    assert fake.values() == {"i1": {"choice": "left"}, "i2": {"choice": "right"}}


def test_answers_still_arrive_after_the_study_was_closed(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab", items=2)
    page = open_page(fake.url)
    begin(page)
    fake.faults.extend(["cut"] * 100)
    rate_all(page, [2])
    next_item(page)
    failing(page)
    fake.closed = True
    page.reload()
    page.get_by_role("heading", name="This study is closed").wait_for()
    failing(page)
    fake.faults.clear()
    try_now(page)
    saved(page)
    assert fake.values() == {"i1": {"choice": "tie"}}


def test_the_state_is_asked_for_until_it_comes(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab")
    fake.state_faults.extend(["cut", "error"])
    page = open_page(fake.url)
    page.get_by_role("heading", name=fake.study["title"]).wait_for()
    assert not page.locator("#notice").is_visible()


def test_an_item_answered_in_another_tab_is_not_asked_twice(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab", items=2)
    first = open_page(fake.url)
    begin(first)
    second = first.context.new_page()
    second.goto(fake.url)
    second.locator(".item").wait_for()
    rate_all(second, [0])
    next_item(second)
    first.get_by_role("heading", name="Item 2 of 2").wait_for()
    rate_all(first, [1])
    next_item(first)
    first.locator(CODE).wait_for()
    second.locator(CODE).wait_for()
    assert fake.values() == {"i1": {"choice": "left"}, "i2": {"choice": "right"}}


def test_a_browser_that_stores_nothing_says_so_and_works(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab", items=1)
    page = open_page(fake.url)
    page.add_init_script("Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }")
    page.reload()
    begin(page)
    page.locator("#notice").get_by_text("This browser does not store anything for this page").wait_for()
    rate_all(page, [3])
    page.locator(NEXT).click()
    page.locator(CODE).wait_for()
    assert fake.values() == {"i1": {"choice": "both-bad"}}


def test_leaving_with_unsent_answers_is_asked_about(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab", items=2)
    page = open_page(fake.url)
    begin(page)
    fake.stop()
    rate_all(page, [0])
    next_item(page)
    failing(page)
    with page.expect_event("dialog") as dialog:
        page.close(run_before_unload=True)
    assert dialog.value.type == "beforeunload"
    dialog.value.accept()


def test_back_shows_an_answer_again_and_a_change_is_a_new_one(serve_study: Any, open_page: Any) -> None:
    fake = serve_study("ab", items=3)
    page = open_page(fake.url, width=360)
    begin(page)
    assert not page.locator("#back").is_visible()
    for choice in (0, 1):
        rate_all(page, [choice])
        next_item(page)
    for heading in ("Item 2 of 3", "Item 1 of 3"):
        page.get_by_role("button", name="Back").click()
        assert page.locator("h1").text_content() == heading
    assert page.locator("input:checked").input_value() == "left"
    rate_all(page, [2])
    next_item(page)
    assert page.locator("h1").text_content() == "Item 3 of 3"
    page.get_by_role("button", name="Back").click()
    next_item(page)  # viewed, not changed: nothing new is stored
    rate_all(page, [3])
    next_item(page)
    page.locator(CODE).wait_for()
    given = [(answer["item"], answer["values"]["choice"]) for answer in fake.answers.values()]
    assert given == [("i1", "left"), ("i2", "right"), ("i1", "tie"), ("i3", "both-bad")]


def test_whatever_fails_every_answer_is_stored_once_as_it_was_given(serve_study: Any, open_page: Any) -> None:
    random = Random(7)
    fake = serve_study("ab", items=10)
    page = open_page(fake.url)
    begin(page)
    chosen: dict[str, Any] = {}
    for number in range(1, 11):
        with fake.lock:
            fake.faults.extend(random.choices(["cut", "lose-ack", "error"], k=random.randint(0, 2)))
        choice = random.randrange(4)
        rate_all(page, [choice])
        chosen[f"i{number}"] = {"choice": ["left", "right", "tie", "both-bad"][choice]}
        if random.random() < 0.3:
            page.reload()  # with a draft, and perhaps with an answer in flight
            page.locator(".item").wait_for()
        if random.random() < 0.3:
            fake.stop()
            fake.start()
        page.locator(NEXT).click()
        if number < 10:
            page.get_by_role("heading", name=f"Item {number + 1} of 10").wait_for()
    fake.faults.clear()
    page.locator(CODE).wait_for()
    assert fake.values() == chosen
