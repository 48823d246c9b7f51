"""docs/extending.md, followed: a separate package adds a model, a source and a metric by entry points."""

from __future__ import annotations

import importlib
import json
import re
import sys
import warnings
from itertools import islice
from pathlib import Path

import pytest

import listenwell
from listenwell import cli, notices
from listenwell.data import sources
from listenwell.data.sources import shipped
from listenwell.metrics import registry
from listenwell.models import all_models, build

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## In a package of your own")[1].split("\n## ")[0]

SMALL = [
    *("model.width=16", "model.heads=2", "model.feed_forward=24"),
    *("stages.0.examples=16", "stages.0.validate_every=9"),
    *("decoding.method=greedy", "decoding.max_length=6"),
]


def install(site: Path, entry_points: str, package: str = "calm-talk") -> None:
    """What pip installs of a package: its metadata. The modules are written by the caller."""
    metadata = site / f"{package.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(entry_points, encoding="utf-8")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(notices, "_shown", set())
    before = dict(registry.known())
    registry._discover.cache_clear()
    yield folder
    registry._METRICS.clear()
    registry._METRICS.update(before)
    registry._discover.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] in ("calm", "broken")]:
        del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture
def calm(site):
    """The package of the page, verbatim."""
    toml = re.search(r"```toml\n(.*?)```", SECTION, re.S)[1]
    groups = re.sub(r'\[project\.entry-points\."(.*?)"\]', r"[\1]", toml).replace('"', "")
    model, source, metrics = re.findall(r"```python\n(.*?)```", SECTION, re.S)
    package = site / "calm"
    package.mkdir()
    for name, text in (("__init__", ""), ("model", model), ("source", source), ("metrics", metrics)):
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    install(site, groups)


@pytest.fixture
def talk(tmp_path, monkeypatch):
    """The source's file, filled from the shipped corpus."""
    folder = tmp_path / "data" / "calm"
    folder.mkdir(parents=True)
    rows = [
        f"{split}\t{dialogue.turns[0].text}\t{dialogue.turns[1].text}\n"
        for split, count in (("train", 64), ("valid", 16), ("test", 16))
        for dialogue in islice(shipped.read(split), count)
    ]
    (folder / "talk.tsv").write_text("".join(rows), encoding="utf-8")
    monkeypatch.setenv("LISTENWELL_DATA", str(folder.parent))


def test_a_package_s_model_trains_on_its_source_is_scored_and_talks(calm, talk, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    changes = ["model.name=calm-trs", "model.calm=0.1", "data.source=calm-talk", *SMALL]
    listenwell_command("train", "tiny", "--out", "runs/calm", *(w for change in changes for w in ("--set", change)))
    listenwell_command("evaluate", "runs/calm", "--data", "calm-talk", "--resamples", "20")
    assert "perplexity" in capsys.readouterr().out
    bot = listenwell.load("runs/calm", care=False)
    assert type(bot.checkpoint.model).__name__ == "CalmTrs"
    assert bot.reply(["I passed my exam"]) is not None


def test_a_package_s_metric_is_computed_by_name(calm, tmp_path, capsys):
    some = ["--data", "shipped", "--items", "2", "--resamples", "0", "--out", str(tmp_path / "scored")]
    listenwell_command("evaluate", "multi-trs", "--metrics", "calm-share", *some)
    assert "calm-share" in capsys.readouterr().out
    (score,) = json.loads((tmp_path / "scored" / "scores.json").read_text(encoding="utf-8"))["scores"]
    assert (score["name"], score["unit"]) == ("calm-share", "%")
    assert 0 <= score["value"] <= 100


def test_models_and_data_list_what_a_package_adds(calm, talk, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    listenwell_command("models")
    listenwell_command("data")
    out = capsys.readouterr().out
    assert "calm-trs" in out
    assert "Exchanges of two turns" in out


@pytest.mark.parametrize(
    ("group", "line"),
    [
        ("models", "gone = no_such_package.model:Model"),
        ("models", "classless = broken.model"),
        ("models", "trs = broken.model:Model"),
        ("models", "odd = not a module"),
        ("sources", "gone = no_such_package.source"),
        ("sources", "shipped = broken.source"),
        ("sources", "unusable = broken.exploding.source"),
        ("metrics", "gone = no_such_package.metrics"),
        ("metrics", "function = broken.metrics:share"),
        ("metrics", "failing = broken.exploding"),
        ("metrics", "taken = broken.taken"),
    ],
)
def test_a_broken_plugin_is_one_warning_that_names_it(site, group, line):
    package = site / "broken"
    (package / "exploding").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "exploding" / "__init__.py").write_text("raise RuntimeError('boom')")
    (package / "taken.py").write_text("from listenwell.metrics.registry import metric\n\nmetric('length')(print)")
    install(site, f"[listenwell.{group}]\n{line}\n", "broken-talk")
    name = line.split(" = ")[0]
    known = {"models": all_models, "sources": sources.all_sources, "metrics": registry.known}[group]
    with pytest.warns(notices.PluginWarning, match=f"{name} = .*of broken-talk") as caught:
        first = known()
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert known() == first  # said once
    assert {"models": "trs", "sources": "shipped", "metrics": "length"}[group] in first


def test_a_plugin_that_fails_when_imported_is_named_where_it_is_used(site, monkeypatch, capsys):
    package = site / "broken"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.py").write_text("import no_such_library")
    (package / "source.py").write_text("FOLDER = 'x'")
    install(site, "[listenwell.models]\nm = broken.model:M\n[listenwell.sources]\ns = broken.source\n", "broken-talk")
    with pytest.raises(ValueError, match=r"m: the plugin module broken\.model cannot be imported.*no_such_library"):
        build("m", {}, None)
    with pytest.raises(ValueError, match=r"s: the plugin module broken\.source lacks HOW_TO_GET, files, read"):
        sources.read("s")
    monkeypatch.setenv("COLUMNS", "200")
    listenwell_command("models")
    listenwell_command("data")
    assert "empathetic-dialogues" in capsys.readouterr().out


def listenwell_command(*words: str) -> None:
    try:
        cli.main(list(words))
    except SystemExit as ended:
        if ended.code:
            raise AssertionError(f"listenwell {' '.join(words)}: {ended.code}") from ended


def test_load_without_a_name_loads_the_default_system(monkeypatch):
    from listenwell import loading

    monkeypatch.setattr(loading, "default_system", lambda language=None: "trs")
    assert listenwell.load(care=False).name == "trs"
