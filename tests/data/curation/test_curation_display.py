"""The progress display shows files per second and the estimated time left."""

from __future__ import annotations

import io

from rich.console import Console

from listenwell.commands.curate_display import rates


def shown(terminal: bool) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120, color_system=None)
    with rates(console) as begin:
        done = begin("reading", "files", 40)
        for _ in range(4):
            done(5)
    return console.file.getvalue()


def test_a_bar_tells_the_rate_and_the_time_left():
    text = shown(terminal=True)
    assert "reading" in text
    assert "20/40" in text
    assert "files/s" in text
    assert "ETA 0:00:0" in text


def test_nothing_is_shown_where_no_one_looks():
    assert not shown(terminal=False)
