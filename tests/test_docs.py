"""The documentation refers only to things that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "listenwell"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
NO_MODULES = {"dist/", "best/", "last/", "previous/", "parts/"}
"""Folders that the pages speak of and that are no modules."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_module_that_a_page_names_is_there(page: Path):
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`", text)) - NO_MODULES
    places = (ROOT, PACKAGE, *(folder for folder in PACKAGE.iterdir() if folder.is_dir()))
    assert not {name for name in named if not any((place / name).exists() for place in places)}


def test_every_module_on_the_way_of_the_data_is_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = text.split("```text\n")[1].split("```")[0]
    folders = re.findall(r"\b([a-z]+(?:/[a-z]+)*)/", picture)
    assert {"data/sources", "training", "decoding", "metrics", "evaluation"} <= set(folders)
    assert not [name for name in folders if not (PACKAGE / name).is_dir()]


def test_the_tree_of_what_is_where_has_only_what_is_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = text.split("```\nsrc/listenwell/\n")[1].split("```")[0]
    for line in tree.splitlines():
        place = PACKAGE if line.startswith("  ") else ROOT
        for name in re.split(r"\s{2,}", line.strip())[0].split(", "):
            assert (place / name).exists(), name


def test_what_the_readme_links_to_is_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = [name for name in re.findall(r"\]\(([^)#]+)", text) if "://" not in name]
    assert "docs/pictures/chat-1440-light.png" in named
    assert not [name for name in named if not (ROOT / name).is_file()]


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130
