"""Everything that `make test` installs is there; otherwise tests that need it would be skipped unnoticed."""

from __future__ import annotations

import os

import pytest

from listenwell.backbones.locate import SHORT, carried


@pytest.mark.skipif("LISTENWELL_INSTALLED" not in os.environ, reason="only make test says that all is installed")
@pytest.mark.parametrize("name", sorted(SHORT))
def test_a_package_carries_the_backbone(name: str):
    assert carried(SHORT[name]) is not None
