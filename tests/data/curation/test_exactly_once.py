"""A curation that is killed anywhere and started again gives what an unbroken one gives."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_subtitles import write_subtitles

from listenwell.data.curation import manifest

KILLED = Path(__file__).with_name("killed_curation.py")


def start(source: Path, out: Path, *options: str, dies_at: int = 0) -> subprocess.Popen[str]:
    words = [
        "curate",
        "subtitles",
        str(source),
        "--out",
        str(out),
        "--labeller",
        "none",
        "--held-out",
        "none",
        *options,
    ]
    command = [sys.executable, str(KILLED), str(dies_at), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, problem = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), problem
    return process.returncode, said


def hash_of(out: Path) -> str:
    return manifest.verify(out)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """The input, the hash of an unbroken run, and how often such a run puts something in its place."""
    root = tmp_path_factory.mktemp("unbroken")
    source = write_subtitles(root / "subs", files=60)
    code, said = finish(start(source, root / "out", "--workers", "1"))
    assert code == 0
    return source, hash_of(root / "out"), int(said.splitlines()[-1])


def test_three_kills_and_the_same_command_again(unbroken, tmp_path):
    source, expected, calls = unbroken
    rng = random.Random(8)
    # The first thing written, somewhere on the way, and right before the manifest has its name.
    for place in (2, rng.randrange(calls // 3, calls // 2), None):
        dies_at = place or _before_manifest(source, tmp_path, calls)
        code, _ = finish(start(source, tmp_path / "out", "--workers", "1", dies_at=dies_at))
        assert code == -signal.SIGKILL
        assert not (tmp_path / "out" / "manifest.json").exists()
    code, _ = finish(start(source, tmp_path / "out", "--workers", "2"))
    assert code == 0
    assert hash_of(tmp_path / "out") == expected
    assert not (tmp_path / "out" / "work").exists()


def _before_manifest(source: Path, tmp_path: Path, calls: int) -> int:
    """What is left to do after the first kills is less than in an unbroken run: count it on a copy."""
    import shutil

    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    _, said = finish(start(source, tmp_path / "copy", "--workers", "1"))
    # The last two are the manifest and the removal of the work folder.
    return int(said.splitlines()[-1]) - 3


@pytest.mark.soak
def test_fifty_kills_at_random_places(unbroken, tmp_path):
    source, expected, calls = unbroken
    rng = random.Random(50)
    kills = finished = 0
    while kills < 50:
        by_time = rng.random() < 0.5
        began = time.monotonic()
        process = start(
            source,
            tmp_path / "out",
            "--workers",
            "2" if by_time else "1",
            dies_at=0 if by_time else rng.randrange(1, calls),
        )
        if by_time:
            try:
                process.wait(timeout=rng.uniform(0.2, 6))
            except subprocess.TimeoutExpired:
                process.kill()
        code, _ = finish(process)
        kills += code == -signal.SIGKILL
        if code == 0:
            # It was done before the kill: begin anew, with another order of places.
            assert hash_of(tmp_path / "out") == expected, f"after {kills} kills, {time.monotonic() - began:.1f} s"
            (tmp_path / "out" / "manifest.json").unlink()
            finished += 1
    finish(start(source, tmp_path / "out", "--workers", "2"))
    assert hash_of(tmp_path / "out") == expected
