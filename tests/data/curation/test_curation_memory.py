"""Memory does not grow with the input."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_subtitles import write_subtitles

FEW, MANY = 16, 1600
"""A chunk of files, and a hundred times as many."""


def peak(source: Path, out: Path) -> int:
    """The most memory that a curation takes, in kilobytes."""
    words = ["curate", "subtitles", str(source), "--out", str(out), "--labeller", "none", "--held-out", "none"]
    process = subprocess.Popen(
        [sys.executable, "-m", "listenwell", *words, "--workers", "1"], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_maxrss


@pytest.mark.skipif(sys.platform != "linux", reason="kilobytes are Linux's unit")
def test_a_hundred_times_the_input_takes_at_most_a_tenth_more_memory(tmp_path):
    few = peak(write_subtitles(tmp_path / "few", FEW, dialogues=2), tmp_path / "out-few")
    many = peak(write_subtitles(tmp_path / "many", MANY, dialogues=2), tmp_path / "out-many")
    assert many <= 1.1 * few
    assert many <= 2 << 20
