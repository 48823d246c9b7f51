"""Process settings, and tensor shapes that suit the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from listenwell.layers.cpu import STEP, WAITING, WAITING_BY_USER, spare_rows

# Stands in for torch: prints the settings when it is first imported, and loads instantly.
FAKE_TORCH = "import json, os; print(json.dumps({name: os.environ.get(name) for name in os.environ['NAMES'].split()}))"


def settings_at_import(code: str, folder, **chosen: str) -> dict[str, str | None]:
    """The settings at the time torch is imported, in a new process that runs `code`."""
    (folder / "torch.py").write_text(FAKE_TORCH)
    environment = {name: value for name, value in os.environ.items() if name not in WAITING_BY_USER}
    environment |= {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "NAMES": " ".join(WAITING_BY_USER)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment | chosen, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[0])


@pytest.mark.parametrize("module", ["listenwell", "listenwell.cli", "listenwell.layers.cpu"])
def test_threads_are_told_to_sleep_before_torch_is_imported(module: str, tmp_path):
    assert settings_at_import(f"import {module}, torch", tmp_path) == {"OMP_WAIT_POLICY": None, **WAITING}


@pytest.mark.parametrize(("name", "value"), [("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "7")])
def test_how_the_user_lets_threads_wait_stays(name: str, value: str, tmp_path):
    expected = dict.fromkeys(WAITING_BY_USER) | {name: value}
    assert settings_at_import("import listenwell, torch", tmp_path, **{name: value}) == expected


def test_torch_may_be_imported_first(tmp_path):
    assert settings_at_import("import torch, listenwell", tmp_path) == dict.fromkeys(WAITING_BY_USER)


def test_importing_the_package_alone_brings_up_no_tensors():
    code = "import sys, listenwell; print('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_rows_come_in_few_numbers_and_few_are_added():
    whole = {rows + spare_rows(rows) for rows in range(1, 2000)}
    assert len(whole) < 50
    assert all(spare_rows(rows) < STEP for rows in range(1, 2000))
    assert all(spare_rows(rows) < STEP // 8 for rows in range(1, STEP + 1))
    assert spare_rows(2 * STEP) == spare_rows(STEP // 8) == 0
