"""Three evaluated systems and their comparison."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_evaluate import MIXED, SAID, STOCK, FakeSystem, parrot, written

from listenwell.evaluation.compare import Comparison, compare
from listenwell.evaluation.store import read_all


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """One system predicts no emotion, one gets half of them right, one gets all right and gives no likelihood."""
    half = [emotion if index % 2 else "lonely" for index, (_, _, emotion) in enumerate(SAID)]
    systems = (
        FakeSystem("plain", STOCK, cost=3.0),
        FakeSystem("hears", MIXED, half, cost=2.0),
        parrot("endpoint"),
    )
    return [str(written(tmp_path, system)) for system in systems]


@pytest.fixture
def comparison(runs: list[str]) -> Comparison:
    return compare(read_all(runs), papers=["mime/2", "dual-emp/1"], resamples=50)
