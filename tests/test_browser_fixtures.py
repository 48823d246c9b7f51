"""A missing browser is reported with a way to install it, and fails where nobody would notice a skipped test."""

from __future__ import annotations

import pytest

import browser_fixtures


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_a_missing_browser(monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CI", ci)
    assert browser_fixtures.browser_path() is None
    with pytest.raises(outcome, match="apt-get install chromium"):
        browser_fixtures.report_missing()
