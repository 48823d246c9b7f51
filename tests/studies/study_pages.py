"""A rater's actions on the pages, for tests that drive a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fake_study import FakeStudy
from study_examples import STUDIES, item

from browser_fixtures import WAIT

CODE = "output"
NEXT = "#next"


@pytest.fixture
def serve_study() -> Iterator[Any]:
    """Serve a study: `serve_study("likert", items=3)`, with a practice item, other texts or another language."""
    running: list[FakeStudy] = []

    def make(name: str, items: int = 2, practice: dict[str, Any] | None = None, **changes: Any) -> FakeStudy:
        description, replies = STUDIES[name]
        emotion = "disappointed" if name == "emotion" else None
        tasks = [[item(number, replies, emotion=emotion) for number in range(1, items + 1)]]
        running.append(FakeStudy(description | changes, tasks, practice).start())
        return running[-1]

    yield make
    for study in running:
        study.close()


def begin(page: Any) -> None:
    """Go from the welcome page to the first item."""
    page.locator("#main .button").click()  # welcome
    page.locator("#main .button").click()  # instructions
    page.locator(".item").wait_for()


def group(page: Any, *words: str) -> Any:
    """The question whose legend has this text."""
    found = page.locator("fieldset")
    for word in words:
        found = found.filter(has_text=word)
    return found


def rate_all(page: Any, choices: list[int]) -> None:
    """Chooses, in every question of the item, the option at this place; starts over when the list ends.

    All in one call to the browser, for the tests that are about something else.
    """
    # By name, since cards move as they are sorted.
    page.evaluate(
        """choices => {
            const names = new Set([...document.querySelectorAll(".item input")].map((input) => input.name));
            [...names].forEach((name, place) => {
                document.querySelectorAll(`input[name="${name}"]`)[choices[place % choices.length]].click();
            });
        }""",
        choices,
    )


def next_item(page: Any) -> None:
    """Press Next, and wait for the next item or page."""
    from playwright.sync_api import expect

    heading = page.locator("h1").text_content()
    page.locator(NEXT).click()
    passing = re.compile(f"{re.escape(heading)}|Saving your answers|正在保存您的回答")
    expect(page.locator("h1")).not_to_have_text(passing, timeout=WAIT)


def saved(page: Any) -> None:
    page.locator("#saved[data-state=saved]").wait_for(state="attached")


def announced(page: Any) -> str:
    return page.locator("#announcer").text_content()
