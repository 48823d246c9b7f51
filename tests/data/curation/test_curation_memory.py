"""Memory use does not grow with the input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_subtitles import write_subtitles

CURATE = """
import sys
from listenwell.cli import main

if __name__ == "__main__":
    main(sys.argv[1:])
    import pyarrow as pa

    own = {"mimalloc": "mimalloc_memory_pool", "jemalloc": "jemalloc_memory_pool"}
    built_in = [name for name in own if name in pa.supported_memory_backends()]
    print([getattr(pa, own[name])().max_memory() for name in built_in])
"""
"""A curation that says at the end how much it took from the allocators that Arrow brings."""

FEW, MANY = 16, 1600
"""A chunk of files, and a hundred times as many."""


def peak(source: Path, out: Path) -> int:
    """The peak memory of a curation, in kilobytes."""
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


def test_parquet_files_are_read_and_written_without_the_allocators_that_keep_what_is_freed(tmp_path):
    source = write_subtitles(tmp_path / "subs", FEW, dialogues=2)
    words = ["curate", "subtitles", str(source), "--out", str(tmp_path / "out"), "--labeller", "none"]
    command = [sys.executable, "-c", CURATE, *words, "--held-out", "none", "--workers", "1", "--json"]
    plain = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    said = subprocess.run(command, env=plain, capture_output=True, text=True, check=True).stdout
    assert not any(json.loads(said.splitlines()[-1]))
