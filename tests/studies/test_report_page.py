"""The report in a real browser: served with its key, and as a self-contained file."""

# ruff: noqa: F811 (fixtures are imported, and asked for by name)
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")
from study_raters import do_task

from browser_fixtures import accessibility_problems, browser, open_page, overflows, serve_app  # noqa: F401
from listenwell.studies.app import make_app
from listenwell.studies.rating import Ratings
from listenwell.studies.report import make_report, report_page, write_report
from listenwell.studies.spec import Bonus
from listenwell.studies.store import Store, Study


@pytest.mark.parametrize(("width", "dark"), [(360, False), (1280, True)])
def test_the_report_is_readable_at_any_width_and_by_everybody(
    sqlite_store: Store,
    make_study: Callable[..., Study],
    open_page: Any,
    serve_app: Any,
    tmp_path: Path,
    width: int,
    dark: bool,
) -> None:
    study = make_study(
        sqlite_store,
        kind="drag",
        items=10,
        task_size=10,
        bonus=Bonus(per_task=3),
        published=["meed2/5"],
        title="<b>Study</b>",
    )
    ratings = Ratings(sqlite_store, study)
    for name in ("anna", "ben", "<i>cora</i>"):
        do_task(ratings, ratings.join(name))
    app = make_app(sqlite_store, study, report=lambda: report_page(sqlite_store, study))
    page = open_page(f"{serve_app(app)}/report?key={study.report_key}", width=width, dark=dark)
    assert page.locator("h1").text_content() == "<b>Study</b>"
    assert page.locator("figure img").evaluate("image => image.naturalWidth") > 500
    assert not overflows(page)
    assert not accessibility_problems(page)
    write_report(make_report(sqlite_store, study), tmp_path / "report")
    alone = open_page((tmp_path / "report" / "report.html").as_uri(), width=width, dark=dark)
    assert alone.locator("table").count() == page.locator("table").count()
    assert alone.locator("body").evaluate("body => getComputedStyle(body).margin") == "0px", "its own style applies"
