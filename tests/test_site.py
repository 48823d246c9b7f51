"""The documentation site builds strictly, makes no requests to other hosts, can be searched, and its examples run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from listenwell.cli import COMMANDS
from listenwell.training import recipe_names

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr[-3000:]
    return place


def test_no_page_asks_another_host_for_anything(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]*\bsrc=\"(https?:[^\"]*)", text)
        loaded += re.findall(r"<link[^>]*\bhref=\"(https?:[^\"]*)", text)
        assert not loaded, page
    for style in site.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?https?:", style.read_text(encoding="utf-8")), style


def test_it_can_be_searched(site):
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    entries = json.loads(index[index.index("{") : index.rindex("}") + 1])["docs"]
    assert any("consensus" in entry["text"] for entry in entries)
    assert len({entry["location"].split("#")[0] for entry in entries}) > 20


def test_commands_and_recipes_have_an_entry_each(site):
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in commands for name in COMMANDS)
    recipes = (site / "reference" / "recipes.html").read_text(encoding="utf-8")
    assert all(f"<code>{name}</code>" in recipes for name in recipe_names())


def blocks(language):
    """The code blocks of the tutorials in one language."""
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        for number, code in enumerate(re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)):
            yield pytest.param(code, id=f"{page.stem}-{number}")


@pytest.mark.parametrize("code", [*blocks("python")])
def test_python_of_the_tutorials_runs(code, monkeypatch):
    monkeypatch.setattr("listenwell.loading.default_system", lambda language=None: "multi-trs")
    exec(compile(code, "tutorial", "exec"), {})


@pytest.mark.parametrize("code", [*blocks("sh")])
def test_commands_of_the_tutorials_exist_with_their_options(code):
    import inspect
    from importlib import import_module

    for line in code.strip().splitlines():
        words = shlex.split(line.split("|")[-1], comments=True)
        if words[0] == "make":
            assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
            continue
        assert words[0] == "listenwell"
        module, function = COMMANDS[words[1]][0].split(":")
        options = inspect.signature(getattr(import_module(module), function)).parameters
        for flag in (word for word in words[2:] if word.startswith("--")):
            assert flag[2:].replace("-", "_").split("=")[0] in options, line
