"""Every equation of the papers is linked to the code that computes it, and that code exists."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = {"mime": 32, "meed2": 2, "dual-emp": 20, "bert-joint": 6, "strategy-memory": 5}
"""How many equations each paper has in its text."""


@pytest.fixture(scope="module")
def hooks():
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(paper: str) -> list[tuple[str, str]]:
    text = (ROOT / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    table = text.split("## The equations, and where they are computed")[1]
    return re.findall(r"^\| ([\d–, ]+) \| [^|]+ \| (.+) \|$", table, re.M)


def numbers(cell: str) -> list[int]:
    """1–3, 5: the numbers 1, 2, 3 and 5."""
    ends = [[int(end) for end in part.split("–")] for part in cell.split(",")]
    return [number for first, *last in ends for number in range(first, (last or [first])[0] + 1)]


@pytest.mark.parametrize("paper", NUMBERS)
def test_every_equation_of_a_paper_stands_once_in_its_table(paper):
    assert sorted(number for cell, _ in rows(paper) for number in numbers(cell)) == [*range(1, NUMBERS[paper] + 1)]


@pytest.mark.parametrize("paper", NUMBERS)
def test_what_a_row_links_to_is_there_and_linked_by_its_own_anchor(paper, hooks):
    for _, cell in rows(paper):
        links = hooks.LINK.findall(cell)
        assert len(links) == cell.count("](")
        for anchor, name in links:
            assert hooks.find_code(name) is not None
            assert anchor == re.sub(r"[._]", "-", name).lower()


def test_their_page_has_the_source_of_each(hooks):
    page = hooks.equations()
    for anchor, name in hooks.equation_code().items():
        assert f"## {name} {{#{anchor}}}" in page
    assert "def refine(self, context" in page


def test_code_that_is_gone_is_named(hooks):
    with pytest.raises(AttributeError):
        hooks.find_code("models.mime.Mime.no_such_function")
