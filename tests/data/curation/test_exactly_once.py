"""A curation that is killed at any point and restarted gives the same result as an uninterrupted one."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from made_subtitles import write_subtitles

from listenwell.data.curation import manifest

KILLED = Path(__file__).with_name("killed_curation.py")


def start(source: Path, out: Path, *options: str, when: int | str = 0) -> subprocess.Popen[str]:
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
    command = [sys.executable, str(KILLED), str(when), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, problem = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), problem
    return process.returncode, said


def hash_of(out: Path) -> str:
    return manifest.verify(out)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """The input, the hash of an uninterrupted run, and the number of points at which such a run can be killed."""
    root = tmp_path_factory.mktemp("unbroken")
    source = write_subtitles(root / "subs", files=60)
    code, said = finish(start(source, root / "out", "--workers", "1"))
    assert code == 0
    return source, hash_of(root / "out"), int(said.splitlines()[-1])


def test_three_kills_and_the_same_command_again(unbroken, tmp_path):
    source, expected, places = unbroken
    # The first write, some point in between, and right before the manifest is renamed.
    for when in (1, random.Random(8).randrange(places // 3, places // 2), "manifest.json"):
        code, _ = finish(start(source, tmp_path / "out", "--workers", "1", when=when))
        assert code == -signal.SIGKILL
        assert not (tmp_path / "out" / "manifest.json").exists()
    code, _ = finish(start(source, tmp_path / "out", "--workers", "2"))
    assert code == 0
    assert hash_of(tmp_path / "out") == expected
    assert not (tmp_path / "out" / "work").exists()


@pytest.mark.soak
def test_fifty_kills_at_random_places(unbroken, tmp_path):
    source, expected, places = unbroken
    rng = random.Random(50)
    kills = finished = 0
    while kills < 50 or not finished:
        out = tmp_path / f"out-{finished}"
        # By time with two workers, or at a rename with one.
        if rng.random() < 0.5:
            process = start(source, out, "--workers", "2")
            try:
                process.wait(timeout=rng.uniform(0.2, 8))
            except subprocess.TimeoutExpired:
                process.kill()
        else:
            process = start(source, out, "--workers", "1", when=rng.randrange(1, places + 1))
        code, _ = finish(process)
        kills += code == -signal.SIGKILL
        if code == 0:
            assert hash_of(out) == expected, f"after {kills} kills"
            assert not (out / "work").exists()
            finished += 1
    code, _ = finish(start(source, tmp_path / f"out-{finished}", "--workers", "2"))
    assert code == 0
    assert hash_of(tmp_path / f"out-{finished}") == expected
