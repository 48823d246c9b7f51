"""Complete sessions in a browser with the real server and a real store, one for each kind of study."""

# ruff: noqa: F811 (fixtures are imported, and asked for by name)
from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select
from study_pages import CODE, NEXT, begin, next_item, rate_all

from browser_fixtures import browser, open_page, serve_app  # noqa: F401
from listenwell.studies.app import make_app
from listenwell.studies.rating import Ratings
from listenwell.studies.schema import answers
from listenwell.studies.spec import Bonus
from listenwell.studies.store import Store

KINDS: dict[str, dict[str, Any]] = {
    "likert": {"scales": "strategy-memory", "show_reference": True},
    "ab": {},
    "drag": {"systems": ["echo-one", "echo-two", "echo-three"], "bonus": Bonus(per_task=1)},
    "emotion": {},
}
SYSTEMS = ("echo-one", "echo-two", "echo-three", "human")


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_session(kind: str, sqlite_store: Store, make_study: Any, open_page: Any, serve_app: Any) -> None:
    study = make_study(sqlite_store, kind=kind, items=4, task_size=2, practice=True, **KINDS[kind])
    url = serve_app(make_app(sqlite_store, study))
    page = open_page(f"{url}/join/{study.join_code}?rater=worker-7", width=360)
    traffic: list[str] = []
    page.on("response", lambda response: "/api/" in response.url and traffic.append(response.text()))

    begin(page)
    assert page.locator("h1").text_content() == "Practice"
    rate_all(page, [0])
    page.locator(NEXT).click()
    if page.locator(".feedback").count():  # the first press only shows the feedback
        next_item(page)
    page.get_by_role("button", name="Start rating").click()
    for _ in range(2):  # tasks
        for _ in range(2):  # items
            rate_all(page, [1, 0])
            next_item(page)
        if page.locator("h1").text_content() == "One set is finished":
            page.get_by_role("button", name="Continue rating").click()
    code = page.locator(CODE).text_content()

    rater = Ratings(sqlite_store, study).join("worker-7")
    assert code == rater.completion_code
    with sqlite_store.read() as connection:
        own = select(answers).where(answers.c.rater_id == rater.id).order_by(answers.c.number)
        rows = connection.execute(own).mappings().all()
    assert rows[0]["item_id"] == "practice-1"
    assert len({row["item_id"] for row in rows}) == len(rows) == 5
    assert all(row["seconds"] > 0 for row in rows)
    assert traffic
    for told in traffic:
        assert not [name for name in SYSTEMS if f'"{name}"' in told]


def test_a_closed_study_says_so_and_an_unknown_link_too(
    sqlite_store: Store, make_study: Any, open_page: Any, serve_app: Any
) -> None:
    study = make_study(sqlite_store, kind="ab")
    url = serve_app(make_app(sqlite_store, study))
    token = Ratings(sqlite_store, study).join("worker-7").token
    page = open_page(f"{url}/r/{token}")
    begin(page)
    sqlite_store.close_study(study)
    rate_all(page, [0])
    next_item(page)  # started work is still stored
    page.reload()
    page.get_by_role("heading", name="This study is closed").wait_for()
    page.goto(f"{url}/r/{token}x")
    page.get_by_role("heading", name="This link does not work").wait_for()
    with sqlite_store.read() as connection:
        assert len(connection.execute(select(answers.c.item_id)).all()) == 1
